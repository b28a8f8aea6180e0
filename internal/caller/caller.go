// Package caller names the user and the command of a process, for messages to other users of a shared device.
package caller

import (
	"cmp"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"unicode"
)

// Name returns user@host. Under sudo it is the name of the invoking user.
func Name() string {
	name := os.Getenv("SUDO_USER")
	if me, err := user.Current(); err == nil && name == "" {
		name = me.Username
	}
	host, _ := os.Hostname()
	return Plain(cmp.Or(name, "unknown") + "@" + cmp.Or(host, "unknown"))
}

// MetadataKey is the key under which clients send Name with gRPC calls. It is a statement, not a proof of identity.
const MetadataKey = "olafctl-user-bin"

// Command returns the name and arguments of this process, shortened.
func Command() string {
	args := append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...)
	return shorten(Plain(strings.Join(args, " ")), mostLetters/4)
}

// mostLetters limits a text from another process.
const mostLetters = 240

// Plain makes a text from another process fit for a line of a message: without control characters, and shortened.
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
