package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzFiles replaces a run's manifest, its digests and the list of its exports by arbitrary bytes. It checks that
// readers get an error that they are damaged or newer, and that nothing incomplete is accepted as complete.
func FuzzFiles(f *testing.F) {
	names := []string{manifestName, digestsName, "exports"}
	for which := range names {
		f.Add(byte(which), []byte(`{"schema":"`+manifestSchema+`","id":"x"}`))
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
