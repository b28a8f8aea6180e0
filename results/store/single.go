package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/olafctl/olaf"
)

// ErrConflict is returned if a different result is already stored with the same key. Both results are kept.
var ErrConflict = olaf.NewError(olaf.Missed, "not the same result")

// Singles stores single results, which all sweeps share. The key of a result identifies everything that determines it,
// and a stored result never changes. A file has two lines. The first is the result, and the second has its maker, its
// time and its digest. A file that does not agree with its name or digest counts as missing. It stays until the result
// replaces it.
//
//	singles/<2 letters>/<key>               a result
//	singles/<2 letters>/<key>.differs-<12>  a second, different result with the same key
type Singles struct{ dir string }

// Single is a single result with information about who made it.
type Single struct {
	Key    string
	Result json.RawMessage
	By     Maker
}

// Maker describes who made a result, and when.
type Maker struct {
	Host     string  `json:"host"`
	Worker   string  `json:"worker,omitempty"` // process that took the job from a work queue; empty for our own
	Build    string  `json:"build"`
	Finished string  `json:"finished"` // RFC 3339
	Seconds  float64 `json:"seconds"`  // wall time
}

// seal is the second line of a result's file.
type seal struct {
	Key    string `json:"key"`
	SHA256 string `json:"sha256"` // digest of the first line
	Maker
}

// Singles returns the single results of the store.
func (s *Store) Singles() *Singles { return &Singles{filepath.Join(s.dir, "singles")} }

var singleKey = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (s *Singles) path(key string) string { return filepath.Join(s.dir, key[:2], key) }

// Get reads the result with the given key. ok is false if there is none that is complete and has this key.
func (s *Singles) Get(key string) (one Single, ok bool, err error) {
	if !singleKey.MatchString(key) {
		return one, false, fmt.Errorf("%w: the key %q of a result", ErrName, key)
	}
	raw, err := os.ReadFile(s.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return one, false, nil
	}
	if err != nil {
		return one, false, fmt.Errorf("a result can't be read: %w", err)
	}
	one, ok = unsealResult(key, raw)
	return one, ok, nil
}

// unsealResult parses the file of a result. ok is false if the file is incomplete or has another key.
func unsealResult(key string, raw []byte) (one Single, ok bool) {
	result, rest, cut := bytes.Cut(raw, []byte("\n"))
	var by seal
	if !cut || json.Unmarshal(rest, &by) != nil || by.Key != key || by.SHA256 != sumOf(result) {
		return one, false
	}
	return Single{key, result, by.Maker}, true
}

// sealResult returns the content of a result's file.
func sealResult(one Single) ([]byte, error) {
	by, err := json.Marshal(seal{one.Key, sumOf(one.Result), one.By})
	return slices.Concat(one.Result, []byte("\n"), by, []byte("\n")), err
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Put stores a result. If there is already a result with the same key, it must be equal byte for byte. Otherwise the
// new result is stored next to it, and the error matches ErrConflict and names both makers.
func (s *Singles) Put(one Single) error {
	if !singleKey.MatchString(one.Key) || bytes.ContainsAny(one.Result, "\n") {
		return fmt.Errorf("%w: the key %q of a result, or its form", ErrName, one.Key)
	}
	raw, err := sealResult(one)
	if err != nil {
		return err
	}
	path := s.path(one.Key)
	err = s.create(path, raw)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	have, ok, err := s.Get(one.Key)
	switch {
	case err != nil:
		return err
	case !ok: // a result cut short by a full disk, or a foreign file
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("a result can't be replaced: %w", err)
		}
		return s.create(path, raw)
	case bytes.Equal(have.Result, one.Result):
		return nil
	}
	if err := s.create(path+".differs-"+sumOf(one.Result)[:12], raw); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fmt.Errorf("%w: %.12s… of %s (%s, %s) and of %s (%s, %s)", ErrConflict, one.Key,
		have.By.Host, have.By.Build, have.By.Finished, one.By.Host, one.By.Build, one.By.Finished)
}

// create writes a temporary file and links it to path, so that the file at path is always complete. If there is already
// a file at path, the error is fs.ErrExist.
func (s *Singles) create(path string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return notStored("a result", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return notStored("a result", err)
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Link(f.Name(), path)
	}
	if gone := os.Remove(f.Name()); err == nil {
		err = gone
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return notStored("a result", err)
	}
	return err
}
