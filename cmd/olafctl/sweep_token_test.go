package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
)

// TestTokenIsFoundOnThisHostOnly checks that a queue's token is created once and readable only by its owner. It checks
// that commands find it for loopback addresses while the queue serves, and that it is not offered to other addresses.
func TestTokenIsFoundOnThisHostOnly(t *testing.T) {
	store, cache := t.TempDir(), t.TempDir()
	var said bytes.Buffer
	env := testEnvironment(&said, &said)
	env.Getenv = func(name string) string { return map[string]string{"XDG_CACHE_HOME": cache}[name] }
	path, err := sweepcmd.MakeToken(store)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: want mode 0600", info.Mode(), err)
	}
	token, err := sweepcmd.ReadToken(path)
	if err != nil || len(token) < 20 {
		t.Errorf("%q, %v: want a token that can't be guessed", token, err)
	}
	if again, err := sweepcmd.MakeToken(store); err != nil || again != path {
		t.Errorf("%q, %v: want the token of before, for workers that reconnect", again, err)
	}
	unshare := sweepcmd.ShareToken(env, "127.0.0.1:4711", path)
	for address, want := range map[string]string{
		"nats://127.0.0.1:4711": token, "nats://localhost:4711": token, "nats://[::1]:4711": token,
		"nats://127.0.0.1:4712": "", "nats://lab:4711": "", "nats://192.0.2.1:4711": "", "nats://localhost": "",
	} {
		if got := sweepcmd.OwnToken(env, address); got != want {
			t.Errorf("%s is offered the token %q, want %q", address, got, want)
		}
	}
	unshare()
	if got := sweepcmd.OwnToken(env, "nats://127.0.0.1:4711"); got != "" {
		t.Errorf("the token %q is offered after the queue ended", got)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := sweepcmd.MakeToken(store); err == nil || !strings.Contains(err.Error(), "other users") {
		t.Errorf("%v, want that other users can read %s", err, filepath.Base(path))
	}
}
