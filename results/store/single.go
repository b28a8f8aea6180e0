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
	"strings"

	"github.com/olafctl/olaf"
)

// ErrConflict says that a result of the same key came out otherwise before. Both are kept.
var ErrConflict = olaf.NewError(olaf.Missed, "not the same result")

// Singles are single results, each under the key of everything that decides it: created once, never changed, shared by all
// sweeps. A file has two lines: the result, and who made it when, with the result's digest. Whatever does not agree with its
// name or its digest is as good as missing, and stays where it is until the result takes its place.
//
//	singles/<2 letters>/<key>               a result
//	singles/<2 letters>/<key>.differs-<12>  another one of the same key
type Singles struct{ dir string }

// Single is a result with who made it.
type Single struct {
	Key    string
	Result json.RawMessage
	By     Maker
}

// Maker says who made a result, and when.
type Maker struct {
	Host     string  `json:"host"`
	Worker   string  `json:"worker,omitempty"` // the process that took the job from a work queue; empty for our own
	Build    string  `json:"build"`
	Finished string  `json:"finished"` // RFC 3339
	Seconds  float64 `json:"seconds"`  // of wall time
}

// seal is the second line of a file.
type seal struct {
	Key    string `json:"key"`
	SHA256 string `json:"sha256"` // of the first line
	Maker
}

// Singles are the single results of the store.
func (s *Store) Singles() *Singles { return &Singles{filepath.Join(s.dir, "singles")} }

var singleKey = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (s *Singles) path(key string) string { return filepath.Join(s.dir, key[:2], key) }

// Get reads a result; ok is false where there is none, or none that is whole and of that key.
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
	one, ok = unseal(key, raw)
	return one, ok, nil
}

// unseal takes a file apart; ok is false of what is not whole or not of that key.
func unseal(key string, raw []byte) (one Single, ok bool) {
	result, rest, cut := bytes.Cut(raw, []byte("\n"))
	var by seal
	if !cut || json.Unmarshal(rest, &by) != nil || by.Key != key || by.SHA256 != sumOf(result) {
		return one, false
	}
	return Single{key, result, by.Maker}, true
}

// sealed is the file of a result.
func sealed(one Single) ([]byte, error) {
	by, err := json.Marshal(seal{one.Key, sumOf(one.Result), one.By})
	return slices.Concat(one.Result, []byte("\n"), by, []byte("\n")), err
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Put creates a result. Where there is one already it must be the same, byte for byte: another one is kept beside it, and the
// error, which matches ErrConflict, names both makers.
func (s *Singles) Put(one Single) error {
	if !singleKey.MatchString(one.Key) || bytes.ContainsAny(one.Result, "\n") {
		return fmt.Errorf("%w: the key %q of a result, or its form", ErrName, one.Key)
	}
	raw, err := sealed(one)
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
	case !ok: // cut short by a full disk, or somebody else's
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

// create writes a file beside its place and links it there, so that it is whole or not there; fs.ErrExist where there is one.
func (s *Singles) create(path string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("a result can't be stored: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return fmt.Errorf("a result can't be stored: %w", err)
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Link(f.Name(), path)
	}
	if gone := os.Remove(f.Name()); err == nil {
		err = gone
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("a result can't be stored: %w; free space with olafctl runs prune, or choose another place with --store", err)
	}
	return err
}

// List lists the keys of all results in ascending order, and the files among them that are none: foreign ones, and second
// results that differ.
func (s *Singles) List() (keys, others []string, err error) {
	folders, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the results can't be read: %w", err)
	}
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(s.dir, folder.Name()))
		if err != nil {
			others = append(others, folder.Name())
		}
		for _, e := range entries {
			switch name := e.Name(); {
			case singleKey.MatchString(name) && name[:2] == folder.Name():
				keys = append(keys, name)
			case !strings.HasPrefix(name, ".new-"):
				others = append(others, folder.Name()+"/"+name)
			}
		}
	}
	return keys, others, nil
}
