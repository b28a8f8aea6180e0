//go:build unix

package fulldisk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAt checks that writes that do not fit fail with an error, and that there is room again afterwards.
func TestAt(t *testing.T) {
	if RunInProcess(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "file")
	var err error
	WithLimit(t, 5, func() { err = os.WriteFile(path, []byte("too long"), 0o600) })
	if text, _ := os.ReadFile(path); !errors.Is(err, unix.EFBIG) || string(text) != "too l" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.WriteFile(path, []byte("too long"), 0o600); err != nil {
		t.Error(err)
	}
}
