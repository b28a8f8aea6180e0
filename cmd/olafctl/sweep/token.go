package sweep

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// tokenName is the name of the file in a store that contains the token of the store's work queue.
const tokenName = "queue-token"

// MakeToken returns the path of the file with the queue's token in a store's folder. It creates the file if necessary.
// The file is kept, so that workers can reconnect to a restarted server.
func MakeToken(folder string) (path string, err error) {
	path, err = filepath.Abs(filepath.Join(folder, tokenName))
	if err != nil {
		return "", err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return path, checkToken(path)
	}
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintln(file, rand.Text())
	return path, errors.Join(err, file.Close())
}

// checkToken rejects a token file that other users can read.
func checkToken(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return cli.UsageError("%s can be read by other users (mode %04o); delete it for a new token, or run 'chmod "+
			"600' on it", path, info.Mode().Perm())
	}
	return nil
}

// tokenPointer returns the path of a file in the user's cache that contains the path of the token file for the queue at
// a loopback address. It returns "" for other addresses, because the token is not offered to other hosts.
func tokenPointer(env *cli.Env, address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return ""
	}
	return env.UserPath("XDG_CACHE_HOME", ".cache", "queues", port)
}

// ShareToken lets this user's commands on this host find the token for the queue at a loopback address until unshare is
// called.
func ShareToken(env *cli.Env, address, token string) (unshare func()) {
	if host, port, err := net.SplitHostPort(address); err == nil && net.ParseIP(host).IsUnspecified() {
		address = net.JoinHostPort("localhost", port)
	}
	pointer := tokenPointer(env, address)
	if token == "" || pointer == "" {
		return func() {}
	}
	err := os.MkdirAll(filepath.Dir(pointer), 0o700)
	if err == nil {
		err = os.WriteFile(pointer, []byte(token+"\n"), 0o600)
	}
	if err != nil {
		fmt.Fprintf(env.Stderr, "clients need --token-file %s (%v)\n", token, err)
		return func() {}
	}
	return func() { _ = os.Remove(pointer) } // a leftover file refers to a useless token
}

// OwnToken returns the token for this user's queue at a loopback address, or "" if there is none.
func OwnToken(env *cli.Env, address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	path, _ := ReadToken(tokenPointer(env, at.Host)) // "" if the queue belongs to another user or has no token
	token, _ := ReadToken(path)                      // "" if its store was removed; the server's error names what is missing
	return token
}
