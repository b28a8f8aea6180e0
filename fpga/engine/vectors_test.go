package engine_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf/fpga/engine/enginetest"
)

var update = flag.Bool("update", false, "write what comes out into the golden vectors; read the difference before committing it")

func text(t *testing.T, v *enginetest.Vector) string {
	t.Helper()
	var b bytes.Buffer
	if err := enginetest.WriteVector(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGoldenVectors replays every vector on the queue. It also replays them on the reference, so that a vector does not
// merely record the queue's behavior.
func TestGoldenVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/vectors/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			v, err := enginetest.ParseVector(bytes.NewReader(want))
			if err != nil {
				t.Fatal(err)
			}
			if v.Name != name {
				t.Fatalf("the vector is called %q", v.Name)
			}
			got, err := enginetest.ReplayVector(v)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(text(t, enginetest.ReplayReference(v)), text(t, got)); d != "" {
				t.Fatalf("-reference +queue:\n%s", d)
			}
			if *update {
				want = []byte(text(t, got))
				if err := os.WriteFile(file, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(string(want), text(t, got)); d != "" {
				t.Fatalf("-vector +queue:\n%s", d)
			}
		})
	}
}
