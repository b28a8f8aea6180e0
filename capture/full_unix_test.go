//go:build unix

package capture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/internal/test/fulldisk"
)

// TestNoFileWithoutRoomForHeader checks that there is no file if not even the header fits on the disk.
func TestNoFileWithoutRoomForHeader(t *testing.T) {
	if fulldisk.RunInProcess(t) {
		return
	}
	folder := t.TempDir()
	fulldisk.WithLimit(t, 0, func() {
		if f, err := CreateFrom(filepath.Join(folder, "a.pcapng"), false,
			Interface{Comment: strings.Repeat("c", 9000)}); f != nil || err == nil {
			t.Errorf("made %v, %v", f, err)
		}
	})
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
