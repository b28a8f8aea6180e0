// Package programtest contains helpers for testing switch programs.
package programtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/vector"
)

// RunVectors plays the golden vectors of a program. It fails if there are fewer than least.
func RunVectors(t *testing.T, d program.Description, least int) {
	t.Helper()
	files, err := filepath.Glob("testdata/vectors/*.txt")
	if err != nil || len(files) < least {
		t.Fatalf("%d vectors found, want %d: %v", len(files), least, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			v, err := vector.ParseVector(f)
			if err != nil {
				t.Fatal(err)
			}
			subject, err := v.Build([]program.Description{d})
			if err != nil {
				t.Fatal(err)
			}
			if err := vector.PlayVector(v, subject); err != nil {
				t.Error(err)
			}
		})
	}
}

// CheckAccount checks that a program's accounting identities are satisfied and that every arrival has exactly one
// class.
func CheckAccount(t interface{ Fatalf(string, ...any) }, d *program.Description, p program.Program, arrivals uint64) {
	account, classes := d.CountsOf(p), uint64(0)
	for _, n := range p.Counts()[:d.Classes] {
		classes += n
	}
	if err := account.Balance(); err != nil {
		t.Fatalf("%v", err)
	}
	if classes != arrivals {
		t.Fatalf("%d packets are in classes, %d arrived", classes, arrivals)
	}
}
