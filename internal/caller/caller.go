// Package caller identifies the user and the command of a process, for messages to other users of a shared device.
package caller

import (
	"cmp"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"unicode"
)

// Name returns user@host. Under sudo, it returns the name of the user who called sudo.
func Name() string {
	name := os.Getenv("SUDO_USER")
	if me, err := user.Current(); err == nil && name == "" {
		name = me.Username
	}
	host, _ := os.Hostname()
	return Plain(cmp.Or(name, "unknown") + "@" + cmp.Or(host, "unknown"))
}

// MetadataKey is the key under which clients send Name with gRPC calls. The name is not proof of the client's identity.
const MetadataKey = "olafctl-user-bin"

// Command returns the name and the arguments of this process, shortened if necessary.
func Command() string {
	args := append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...)
	return shorten(Plain(strings.Join(args, " ")), mostLetters/4)
}

// mostLetters is the maximum length of a text from another process, in characters.
const mostLetters = 240

// Plain prepares a text from another process for use in a message. It replaces unprintable characters with question
// marks and shortens the text.
func Plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	return shorten(text, mostLetters)
}

func shorten(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}
