package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzFiles puts anything in the place of a run's manifest, of its digests and of the list of its exports: whoever reads them
// is told that they are damaged or newer, and nothing is taken for whole that is not.
func FuzzFiles(f *testing.F) {
	names := []string{manifestName, digestsName, "exports"}
	for which := range names {
		f.Add(byte(which), []byte(`{"schema":"`+ManifestSchema+`","id":"x"}`))
		f.Add(byte(which), []byte(`[{"name":"../x","sha256":"00"}]`))
		f.Add(byte(which), []byte("{"))
	}
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, which byte, raw []byte) {
		s, err := Open(root)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		const id = "x"
		if err := os.MkdirAll(s.path(id), 0o700); err != nil {
			t.Fatal(err)
		}
		path := s.exportsPath(id)
		if k := int(which) % len(names); k < 2 {
			path = filepath.Join(s.path(id), names[k])
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, raw, 0o600)); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		if _, err := s.manifest(id); err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
			t.Errorf("manifest: %v", err)
		}
		folder := &Folder{Manifest: Manifest{ID: id}, dir: s.path(id)}
		if err := folder.VerifyDigests(); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("digests: %v", err)
		}
		if _, err := s.Exports(id); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("exports: %v", err)
		}
	})
}
