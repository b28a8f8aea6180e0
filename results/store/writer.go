package store

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/olafctl/olaf/internal/lockfile"
)

// FileDigest is the digest that a file had when the run was finished.
type FileDigest struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Writer writes the folder of one run. It is not safe for concurrent use.
type Writer struct {
	store   *Store
	id      string
	dir     string
	lock    io.Closer
	digests []FileDigest
	open    *File
}

var experimentName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// NewID returns the id of the n-th run, from 1, of an experiment that started in the same second.
func NewID(experiment string, started time.Time, n int) string {
	id := started.UTC().Format(idTime) + "-" + experiment
	if n > 1 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return id
}

// Create creates a run of the named experiment that started at the given time. The caller must call Finish or Abort.
func (s *Store) Create(experiment string, started time.Time) (*Writer, error) {
	if !experimentName.MatchString(experiment) {
		return nil, fmt.Errorf("%w: the experiment %q: use small letters, digits, dots and dashes", ErrName, experiment)
	}
	for n := 1; ; n++ {
		id := NewID(experiment, started, n)
		if _, err := os.Stat(s.path(id)); err == nil {
			continue
		}
		dir := s.incompletePath(id)
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, notStored("the run", err)
		}
		if _, err := os.Stat(s.path(id)); err == nil {
			// In between, another process finished a run with this id.
			if err := os.Remove(dir); err != nil {
				return nil, notStored("the run", err)
			}
			continue
		}
		lock, err := lockfile.Take(filepath.Join(dir, lockName), 0o644)
		if err != nil {
			return nil, notStored("the run", err)
		}
		return &Writer{store: s, id: id, dir: dir, lock: lock}, nil
	}
}

// notStored describes why something can't be stored. If there is no room for it, the advice follows.
func notStored(what string, err error) error {
	noRoom := []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
	if slices.ContainsFunc(noRoom, func(full error) bool { return errors.Is(err, full) }) {
		return fmt.Errorf("%s can't be stored: %w; free space with olafctl runs prune, or choose another place with --store",
			what, err)
	}
	return fmt.Errorf("%s can't be stored: %w", what, err)
}

// ID returns the run's id.
func (w *Writer) ID() string { return w.id }

// File is a file of a run that is being written. Its digest is computed while it is written.
type File struct {
	w     *Writer
	name  string
	f     *os.File
	hash  hash.Hash
	bytes int64
}

// File creates a file of the run. Only one file can be open at a time.
func (w *Writer) File(name string) (*File, error) {
	if name == "" || filepath.Base(name) != name || strings.HasPrefix(name, ".") ||
		slices.Contains([]string{manifestName, digestsName, lockName}, name) {
		return nil, fmt.Errorf("%w: file %q of a run", ErrName, name)
	}
	if w.open != nil {
		return nil, fmt.Errorf("store: %s is still open", w.open.name)
	}
	return w.file(name)
}

func (w *Writer) file(name string) (*File, error) {
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, notStored("the run", err)
	}
	w.open = &File{w: w, name: name, f: f, hash: sha256.New()}
	return w.open, nil
}

// Write appends b to the file.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.f.Write(b)
	f.hash.Write(b[:n])
	f.bytes += int64(n)
	if err != nil {
		return n, notStored("the run", err)
	}
	return n, nil
}

// Mark is a position in a file to which the file can be rewound.
type Mark struct {
	bytes int64
	hash  []byte
}

// Mark returns the position at the current end of the file.
func (f *File) Mark() (Mark, error) {
	state, err := f.hash.(encoding.BinaryMarshaler).MarshalBinary()
	return Mark{f.bytes, state}, err
}

// Rewind removes everything that was written after position m.
func (f *File) Rewind(m Mark) error {
	_, seek := f.f.Seek(m.bytes, io.SeekStart)
	if err := errors.Join(f.f.Truncate(m.bytes), seek,
		f.hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(m.hash)); err != nil {
		return notStored("the run", err)
	}
	f.bytes = m.bytes
	return nil
}

// Close completes the file and records its digest.
func (f *File) Close() error {
	f.w.open = nil
	if err := f.f.Close(); err != nil {
		return notStored("the run", err)
	}
	f.w.digests = append(f.w.digests, FileDigest{f.name, f.bytes, hex.EncodeToString(f.hash.Sum(nil))})
	return nil
}

// Put writes a complete file of the run.
func (w *Writer) Put(name string, data []byte) error {
	f, err := w.File(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Finish writes the manifest and the digests and adds the run to the store. It sets the schema and the id in the
// manifest.
func (w *Writer) Finish(m Manifest) error {
	m.Schema, m.ID = manifestSchema, w.id
	raw, err := json.MarshalIndent(&m, "", "  ")
	if err != nil {
		return fmt.Errorf("the manifest can't be written: %w", err)
	}
	f, err := w.file(manifestName)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	slices.SortFunc(w.digests, func(a, b FileDigest) int { return strings.Compare(a.Name, b.Name) })
	if raw, err = json.MarshalIndent(w.digests, "", "  "); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(w.dir, digestsName), append(raw, '\n')); err != nil {
		return notStored("the run", err)
	}
	if err := errors.Join(os.Remove(filepath.Join(w.dir, lockName)), os.Rename(w.dir, w.store.path(w.id)),
		w.lock.Close()); err != nil {
		return notStored("the run", err)
	}
	return nil
}

// Abort discards the run and removes its files.
func (w *Writer) Abort() error {
	if w.open != nil {
		w.open.f.Close()
	}
	return errors.Join(os.RemoveAll(w.dir), w.lock.Close())
}
