//go:build unix

package sshlink

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSocketOfSudoIsShared checks that the user whose sshd forwards an agent's socket owns the socket, even if the
// agent runs as root.
func TestSocketOfSudoIsShared(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	const user = 54321
	folder := t.TempDir()
	socket := filepath.Join(folder, "s")
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, owner := range []int{0, user} {
		if err := os.Chown(folder, owner, owner); err != nil {
			t.Fatal(err)
		}
		if err := ShareSocket("unix:" + socket); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(socket)
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != owner {
			t.Errorf("in a folder of user %d the socket belongs to %+v, %v", owner, info.Sys(), err)
		}
	}
}
