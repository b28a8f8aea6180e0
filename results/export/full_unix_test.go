//go:build unix

package export

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/internal/test/fulldisk"
	"github.com/olafctl/olaf/results/internal/test/example"
)

// TestFullDisk fills the disk at every part of an export: files must be complete or absent, a replaced file keeps its
// old content, and the error names the file and a remedy.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	if fulldisk.RunInProcess(t) {
		return
	}
	r := example.Result(2)
	dir, passing := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", passing) // folder for pending files
	path := func(name string) string { return filepath.Join(dir, name) }
	all := slices.Concat(csv(dir, r)[:2], Parquet(dir, r)[:2], Figures(dir, "svg", r)[:1], []Target{workbook(path("w.xlsx"), r), Report(path("r.html"), r), Document(path("d.json"), r.Bench)})
	for _, target := range all {
		if err := Files([]Target{target}, false); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(target.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, force := range []bool{false, true} {
			if err := os.Remove(target.Path); err != nil {
				t.Fatal(err)
			}
			want := 0
			if force {
				want = 1
				if err := os.WriteFile(target.Path, []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for part := range int64(10) {
				var err error
				fulldisk.WithLimit(t, int64(len(whole))*part/10, func() { err = Files([]Target{target}, force) })
				if err == nil || !strings.Contains(err.Error(), target.Path+" can't be written: ") || !strings.Contains(err.Error(), "; choose another place") {
					t.Errorf("with room for %d of 10 parts: %v", part, err)
				}
				left, failed := os.ReadDir(dir)
				pending, _ := os.ReadDir(passing)
				text, _ := os.ReadFile(target.Path)
				if failed != nil || len(left) != want || len(pending) > 0 || force && string(text) != "old" {
					t.Fatalf("with room for %d of 10 parts of %s: %v, %q, %v", part, target.Path, left, text, failed)
				}
			}
			if err := Files([]Target{target}, true); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(target.Path); err != nil {
			t.Fatal(err)
		}
	}
}
