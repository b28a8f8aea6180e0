package archive

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/store"
)

// flip is one bit of one file.
type flip struct {
	file string
	bit  int
}

// flips returns every bit of the small files that describe a run, and a number of random bits of each other file.
func flips(t *testing.T, f *store.Folder, drawn int) (all []flip) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(f.Path("x")))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		bits := int(info.Size()) * 8
		whole := e.Name() == "manifest.json" || e.Name() == "digests.json"
		random := rand.New(rand.NewPCG(1, uint64(bits)))
		n := bits
		if !whole || testing.Short() {
			n = min(drawn, bits)
		}
		for i := range n {
			bit := i
			if n < bits {
				bit = random.IntN(bits)
			}
			all = append(all, flip{e.Name(), bit})
		}
	}
	return all
}

// verified opens a run again, verifies it like 'olafctl runs verify', and returns its content.
func verified(s *store.Store, id string) (content string, err error) {
	f, err := s.Load(id)
	if err != nil {
		return "", err
	}
	proof, err := Verify(f, toy.Declarations)
	if err != nil {
		return "", err
	}
	loaded, err := Load(f, toy.Declarations)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal([]any{f.Manifest, proof, loaded.Bench, loaded.Runs, loaded.Samples})
	return string(raw), err
}

// TestEveryFlippedBitOfAKeptRun flips one bit at a time. Each flip must be detected, unless the run that is read is the
// same to the last digit, because JSON ignores the case of a field's name.
func TestEveryFlippedBitOfAKeptRun(t *testing.T) {
	s := opened(t)
	f := keep(t, s, 1)
	drawn := 2000
	if testing.Short() {
		drawn = 50
	}
	want, err := verified(s, f.ID())
	if err != nil {
		t.Fatal(err)
	}
	noticed, harmless := map[string]int{}, map[string]int{}
	for _, c := range flips(t, f, drawn) {
		path := f.Path(c.file)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		raw[c.bit/8] ^= 1 << (c.bit % 8)
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := verified(s, f.ID())
		switch {
		case errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrNewer):
			noticed[c.file]++
		case err != nil:
			t.Errorf("bit %d of %s: an error of another kind: %v", c.bit, c.file, err)
		case got != want:
			t.Errorf("bit %d of %s: another run is taken for the one that was kept: %s", c.bit, c.file, cmp.Diff(want, got))
		default:
			harmless[c.file]++
		}
		raw[c.bit/8] ^= 1 << (c.bit % 8)
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"manifest.json", "digests.json", BenchFile, RunsFile, ObservationsFile} {
		t.Logf("%s: %d noticed, %d harmless", file, noticed[file], harmless[file])
		if noticed[file] == 0 || harmless[file] > 0 && file != "digests.json" {
			t.Errorf("%s: %d noticed, %d harmless", file, noticed[file], harmless[file])
		}
	}
	if got, err := verified(s, f.ID()); err != nil || got != want {
		t.Errorf("afterwards: %v", err)
	}
}
