// Package programtest holds what the tests of all switch programs have in common.
package programtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/vector"
)

// Vectors plays the golden vectors of a program, of which there are at least so many.
func Vectors(t *testing.T, d program.Description, least int) {
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
			v, err := vector.Parse(f)
			if err != nil {
				t.Fatal(err)
			}
			subject, err := v.Build([]program.Description{d})
			if err != nil {
				t.Fatal(err)
			}
			if err := vector.Play(v, subject); err != nil {
				t.Error(err)
			}
		})
	}
}

// Account checks that a program's counts balance and that every arrival is in one class.
func Account(t interface{ Fatalf(string, ...any) }, d *program.Description, p program.Program, arrivals uint64) {
	account, classes := d.Account(p), uint64(0)
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
