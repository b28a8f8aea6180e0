package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Folder is the folder of a finished run.
type Folder struct {
	Manifest Manifest
	Note     string
	dir      string
}

// Load opens the finished run with the given id.
func (s *Store) Load(id string) (*Folder, error) {
	if !isID(id) {
		return nil, s.unknownError(id)
	}
	if _, err := os.Stat(s.path(id)); err != nil {
		if _, err := os.Stat(s.incompletePath(id)); err == nil {
			return nil, fmt.Errorf("%w: %s; remove it with olafctl runs rm %s", ErrIncomplete, id, id)
		}
		return nil, s.unknownError(id)
	}
	m, err := s.manifest(id)
	if err != nil {
		return nil, err
	}
	return &Folder{Manifest: *m, Note: s.entryOf(id).Note, dir: s.path(id)}, nil
}

func (s *Store) manifest(id string) (*Manifest, error) {
	raw, err := os.ReadFile(filepath.Join(s.path(id), manifestName))
	if err != nil {
		return nil, damagedError(id, err)
	}
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, damagedError(id, err)
	}
	if m.Schema != manifestSchema {
		return nil, fmt.Errorf("%w: the manifest of %s is %q, this one knows %q; update olafctl", ErrNewer, id,
			m.Schema, manifestSchema)
	}
	if m.ID != id {
		return nil, damagedError(id, fmt.Errorf("its manifest is that of %s", m.ID))
	}
	return &m, nil
}

func damagedError(id string, err error) error {
	return fmt.Errorf("%w: %s: %w; run it again, or remove it with olafctl runs rm %s", ErrDamaged, id, err, id)
}

func (f *Folder) ID() string { return f.Manifest.ID }

// Path returns the path of a file in the run's folder.
func (f *Folder) Path(name string) string { return filepath.Join(f.dir, name) }

// Open opens a file in the run's folder. If there is no such file, the error matches fs.ErrNotExist.
func (f *Folder) Open(name string) (*os.File, error) {
	file, err := os.Open(f.Path(name))
	if err != nil {
		return nil, damagedError(f.ID(), err)
	}
	return file, nil
}

// ReadFile reads a complete file in the run's folder.
func (f *Folder) ReadFile(name string) ([]byte, error) {
	raw, err := os.ReadFile(f.Path(name))
	if err != nil {
		return nil, damagedError(f.ID(), err)
	}
	return raw, nil
}

// ReadJSON decodes a JSON file in the run's folder into v.
func (f *Folder) ReadJSON(name string, v any) error {
	return f.Parse(name, func(raw []byte) error { return json.Unmarshal(raw, v) })
}

// Parse calls read with the content of a file in the run's folder. If read fails, the file is reported as damaged.
func (f *Folder) Parse(name string, read func(raw []byte) error) error {
	raw, err := f.ReadFile(name)
	if err != nil {
		return err
	}
	if err := read(raw); err != nil {
		return damagedError(f.ID(), fmt.Errorf("%s: %w", name, err))
	}
	return nil
}

// Digests returns the digests of the run's files, as recorded when the run was finished.
func (f *Folder) Digests() ([]FileDigest, error) {
	var digests []FileDigest
	return digests, f.ReadJSON(digestsName, &digests)
}

// VerifyDigests compares every file with its digest. If a file was changed, is missing or was added, the error names it
// and matches ErrDamaged.
func (f *Folder) VerifyDigests() error {
	digests, err := f.Digests()
	if err != nil {
		return err
	}
	names := []string{digestsName}
	for _, d := range digests {
		names = append(names, d.Name)
		got, err := digestOf(f.Path(d.Name))
		if errors.Is(err, fs.ErrNotExist) {
			return damagedError(f.ID(), fmt.Errorf("%s is missing", d.Name))
		}
		if err != nil {
			return damagedError(f.ID(), err)
		}
		if got != d.SHA256 {
			return damagedError(f.ID(), fmt.Errorf("%s is not what was stored (SHA-256 %.12s…, stored %.12s…)", d.Name,
				got, d.SHA256))
		}
	}
	if !slices.Contains(names, manifestName) {
		return damagedError(f.ID(), errors.New("its digests leave out the manifest"))
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return damagedError(f.ID(), err)
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			return damagedError(f.ID(), fmt.Errorf("%s was not stored with it", e.Name()))
		}
	}
	return nil
}

func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
