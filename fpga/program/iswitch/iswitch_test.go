package iswitch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/vector"
)

func TestVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/vectors/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d vectors found: %v", len(files), err)
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
			subject, err := v.Build([]program.Description{Describe()})
			if err != nil {
				t.Fatal(err)
			}
			if err := vector.Play(v, subject); err != nil {
				t.Error(err)
			}
		})
	}
}
