// Package store stores runs, each in an immutable folder, and lists them by their manifests.
//
// A writer creates a hidden folder whose name ends in .incomplete and locks it. Finishing writes the digests of all
// files and renames the folder, so a killed process never leaves a partial run that looks complete. Several
// processes may write at once. The store reads only manifests and digests; the other files belong to the caller.
// Notes are stored separately and may change.
//
//	VERSION                        the layout's version
//	runs/<id>/                     a finished run: manifest.json, digests.json, and the caller's files
//	runs/.<id>.incomplete/         a run that is being written, or was when its process died
//	notes/<id>                     a line of text
//	exports/<id>                   digests of its exports
//	singles/<2 letters>/<key>      single results shared by sweeps (Singles)
//	sweeps/<id>/                   an unfinished sweep
package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/lockfile"
	"github.com/olafctl/olaf/internal/suggest"
	"github.com/olafctl/olaf/results"
)

// Kinds of errors, for errors.Is.
var (
	ErrUnknown    = olaf.NewError(olaf.Usage, "no such run")
	ErrIncomplete = olaf.NewError(olaf.Usage, "the run was never finished")
	ErrDamaged    = olaf.NewError(olaf.Failed, "the run is damaged")
	ErrNewer      = olaf.NewError(olaf.Usage, "the store was written by a newer olafctl")
	ErrName       = olaf.NewError(olaf.Usage, "not a usable name")
)

const (
	layoutVersion  = "olafctl.store/v1"
	manifestSchema = "olafctl.run/v1"
	manifestName   = "manifest.json"
	digestsName    = "digests.json"
	lockName       = "lock"
	incomplete     = ".incomplete"
	idTime         = "20060102-150405"
)

// Manifest describes a run. Deterministic contains everything that determines the result, and Provenance describes its
// origin.
type Manifest struct {
	Schema     string `json:"schema"`
	ID         string `json:"id"`
	Experiment string `json:"experiment"`
	// Deterministic is not interpreted by the store. It contains seed, resolved spec, and hashes of tables, trace and
	// register map.
	Deterministic json.RawMessage `json:"deterministic"`
	// SpecSHA256 is the hash of the resolved spec. Runs with the same hash and experiment may be compared.
	SpecSHA256 string             `json:"spec_sha256"`
	Provenance results.Provenance `json:"provenance"`
	Valid      bool               `json:"valid"`
	Reasons    []string           `json:"invalid_reasons,omitempty"`
	Partial    bool               `json:"partial,omitempty"`
}

// State is the state of a run's folder: complete, running or incomplete.
type State string

const (
	Complete   State = "complete"
	Running    State = "running"    // the process that writes it has the lock
	Incomplete State = "incomplete" // the process that wrote it is gone
)

// Entry describes a run in a list of runs.
type Entry struct {
	ID         string `json:"id"`
	Experiment string `json:"experiment"`
	Device     string `json:"device"`
	Started    string `json:"started"` // RFC 3339
	State      State  `json:"state"`
	Valid      bool   `json:"valid"`
	Partial    bool   `json:"partial"`
	SpecSHA256 string `json:"spec_sha256"`
	Bytes      int64  `json:"bytes"`
	Note       string `json:"note"`
}

// Store is an open store of runs. It is safe for concurrent use, and several processes may use the same store.
type Store struct {
	dir    string
	person *Person // owner that gets the files of root on Close; nil if they stay with root
}

// Open opens the store in dir. If it does not exist, Open creates it.
func Open(dir string) (*Store, error) {
	for _, d := range []string{dir, filepath.Join(dir, "runs"), filepath.Join(dir, "notes"),
		filepath.Join(dir, "exports")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, fmt.Errorf("the run store can't be made: %w; choose another place with --store", blameOwner(err, dir))
		}
	}
	if err := checkVersion(dir); err != nil {
		return nil, err
	}
	return &Store{dir: dir}, nil
}

func checkVersion(dir string) error {
	path := filepath.Join(dir, "VERSION")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := replaceFile(path, []byte(layoutVersion+"\n")); err != nil {
			return fmt.Errorf("the run store can't be written: %w; choose another place with --store", blameOwner(err, dir))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("the run store can't be read: %w", blameOwner(err, dir))
	}
	if version := strings.TrimSpace(string(raw)); version != layoutVersion {
		return fmt.Errorf("%w: its layout is %q, this one knows %q; "+
			"update olafctl or choose another place with --store", ErrNewer, version, layoutVersion)
	}
	return nil
}

// replaceFile replaces a file atomically. The temporary file is in the same folder, so that a killed process leaves
// nothing in $TMPDIR.
func replaceFile(path string, data []byte) error {
	return renameio.WriteFile(path, data, 0o644, renameio.WithTempDir(filepath.Dir(path)))
}

// Close closes the store. If the store was opened with OpenFor, Close also makes the invoking user the owner of files
// that root owns.
func (s *Store) Close() error { return s.handOver() }

// CheckWritable returns an error if no run can be added, because another user owns the store or its disk is read-only
// or full. It creates and removes a file in the store, so it should be called only before adding a run.
func (s *Store) CheckWritable() error {
	probe, err := os.CreateTemp(filepath.Join(s.dir, "runs"), ".probe-*")
	if err == nil {
		_, err = probe.Write(make([]byte, 4096))
		err = errors.Join(err, probe.Close(), os.Remove(probe.Name()))
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("the run store %s can't be written: %w; choose another place with --store", s.dir,
			blameOwner(innermostReason(err), s.dir, filepath.Join(s.dir, "runs")))
	}
	if err != nil {
		return fmt.Errorf("the run store %s can't be written: %w; make room ('olafctl runs prune') or choose another "+
			"place with --store", s.dir, innermostReason(err))
	}
	return nil
}

// innermostReason returns the innermost wrapped error, which does not mention the operation and the test file's name.
func innermostReason(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}

func (s *Store) Dir() string { return s.dir }

func (s *Store) path(id string) string { return filepath.Join(s.dir, "runs", id) }

// isID reports whether a name can be the id of a run. It must be usable as the name of a folder and must not be
// reserved.
func isID(name string) bool {
	return name != "" && filepath.Base(name) == name && !strings.HasPrefix(name, ".")
}

func (s *Store) incompletePath(id string) string {
	return filepath.Join(s.dir, "runs", "."+id+incomplete)
}

func (s *Store) notePath(id string) string { return filepath.Join(s.dir, "notes", id) }

func (s *Store) exportsPath(id string) string { return filepath.Join(s.dir, "exports", id) }

// Export describes an export of a run that was made earlier.
type Export struct {
	Kind   string `json:"kind"` // xlsx, report
	Tool   string `json:"tool"` // version that created it
	SHA256 string `json:"sha256"`
}

// Exports returns the exports of a run that were made earlier.
func (s *Store) Exports(id string) ([]Export, error) {
	raw, err := os.ReadFile(s.exportsPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the exports of %s can't be read: %w", id, err)
	}
	var exports []Export
	if err := json.Unmarshal(raw, &exports); err != nil {
		return nil, damagedError(id, fmt.Errorf("the list of its exports: %w", err))
	}
	return exports, nil
}

// SetExport records an export of a run. It replaces an earlier export with the same kind and tool.
func (s *Store) SetExport(id string, e Export) error {
	exports, err := s.Exports(id)
	if err != nil {
		return err
	}
	exports = slices.DeleteFunc(exports, func(old Export) bool { return old.Kind == e.Kind && old.Tool == e.Tool })
	raw, err := json.Marshal(append(exports, e))
	if err != nil {
		return err
	}
	if err := replaceFile(s.exportsPath(id), append(raw, '\n')); err != nil {
		return fmt.Errorf("the exports of %s can't be written: %w", id, err)
	}
	return nil
}

// folders returns the ids of all finished and all unfinished runs, each in ascending order.
func (s *Store) folders() (finished, unfinished []string, err error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "runs"))
	if err != nil {
		return nil, nil, fmt.Errorf("the run store can't be read: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		id, hidden := strings.CutPrefix(name, ".")
		if !e.IsDir() {
			continue
		}
		if !hidden {
			finished = append(finished, name)
		} else if id, ok := strings.CutSuffix(id, incomplete); ok {
			unfinished = append(unfinished, id)
		}
	}
	return finished, unfinished, nil
}

// List returns all runs, newest first. It omits runs that another process removes at the same time.
func (s *Store) List() ([]Entry, error) {
	finished, unfinished, err := s.folders()
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, id := range finished {
		if _, err := os.Stat(s.path(id)); err == nil {
			entries = append(entries, s.entryOf(id))
		}
	}
	for _, id := range unfinished {
		entries = append(entries, s.unfinishedEntry(id))
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(strings.Compare(b.Started, a.Started), strings.Compare(b.ID, a.ID))
	})
	return entries, nil
}

// ListAbandoned returns the ids of unfinished runs that no process is writing any more, oldest first.
func (s *Store) ListAbandoned() ([]string, error) {
	_, unfinished, err := s.folders()
	return slices.DeleteFunc(unfinished,
		func(id string) bool { return lockfile.IsHeld(filepath.Join(s.incompletePath(id), lockName)) }), err
}

// entryOf returns the entry of a run, read from its folder. A damaged run is listed as invalid.
func (s *Store) entryOf(id string) Entry {
	e := Entry{ID: id, State: Complete, Started: startedOf(id), Experiment: experimentOf(id)}
	m, err := s.manifest(id)
	if err == nil {
		e = m.entry()
	}
	if note, err := os.ReadFile(s.notePath(id)); err == nil {
		e.Note = strings.TrimSpace(string(note))
	}
	e.Bytes = sizeOf(s.path(id))
	return e
}

func (m *Manifest) entry() Entry {
	return Entry{ID: m.ID, Experiment: m.Experiment, Device: m.Provenance.Device, Started: m.Provenance.Started,
		State: Complete,
		Valid: m.Valid, Partial: m.Partial, SpecSHA256: m.SpecSHA256}
}

func (s *Store) unfinishedEntry(id string) Entry {
	e := Entry{ID: id, State: Incomplete, Started: startedOf(id), Experiment: experimentOf(id),
		Bytes: sizeOf(s.incompletePath(id))}
	if lockfile.IsHeld(filepath.Join(s.incompletePath(id), lockName)) {
		e.State = Running
	}
	return e
}

// startedOf returns the start time that is contained in a run's id, or "" if there is none.
func startedOf(id string) string {
	if len(id) >= len(idTime) {
		if t, err := time.Parse(idTime, id[:len(idTime)]); err == nil {
			return t.Format(time.RFC3339)
		}
	}
	return ""
}

func experimentOf(id string) string {
	if len(id) <= len(idTime) {
		return ""
	}
	return sameSecond.ReplaceAllString(id[len(idTime)+1:], "")
}

// sameSecond matches the suffix in the id of a run that was not the first to start in its second.
var sameSecond = regexp.MustCompile(`-[0-9]+$`)

func sizeOf(dir string) (bytes int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// Note sets the note of a run. An empty note removes it.
func (s *Store) Note(id, note string) error {
	if _, err := s.Load(id); err != nil {
		return err
	}
	note = strings.Join(strings.Fields(note), " ")
	if err := replaceFile(s.notePath(id), []byte(note+"\n")); err != nil {
		return fmt.Errorf("the note can't be written: %w", err)
	}
	return nil
}

// Remove removes a run with its note, whether or not the run is finished. It returns an error for a run that is being
// written.
func (s *Store) Remove(id string) error {
	if !isID(id) {
		return s.unknownError(id)
	}
	path := s.path(id)
	if _, err := os.Stat(path); err != nil {
		if path = s.incompletePath(id); lockfile.IsHeld(filepath.Join(path, lockName)) {
			return fmt.Errorf("%s is still being written; stop the olafctl that writes it first", id)
		}
		if _, err := os.Stat(path); err != nil {
			return s.unknownError(id)
		}
	}
	// The run is renamed first, so that an interrupted removal does not leave a partial run.
	trash := filepath.Join(s.dir, "runs", "."+id+".removed")
	if err := errors.Join(os.RemoveAll(trash), os.Rename(path, trash)); err != nil {
		return fmt.Errorf("%s can't be removed: %w", id, err)
	}
	if err := os.RemoveAll(trash); err != nil {
		return fmt.Errorf("%s can't be removed: %w", id, err)
	}
	for _, beside := range []string{s.notePath(id), s.exportsPath(id)} {
		if err := os.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("what belongs to %s can't be removed: %w", id, err)
		}
	}
	return nil
}

// Older returns the runs that started before t and are not being written, oldest first. It is used for pruning.
func (s *Store) Older(t time.Time) ([]Entry, error) {
	entries, err := s.List()
	if err != nil {
		return nil, err
	}
	slices.Reverse(entries)
	return slices.DeleteFunc(entries, func(e Entry) bool {
		started, err := time.Parse(time.RFC3339, e.Started)
		return err != nil || e.State == Running || !started.Before(t)
	}), nil
}

// Resolve returns the id of the run that a name refers to. The name is an id, a unique prefix of an id, or "last" for
// the newest finished run.
func (s *Store) Resolve(name string) (string, error) {
	if isID(name) {
		if _, err := os.Stat(s.path(name)); err == nil {
			return name, nil
		}
	}
	finished, unfinished, err := s.folders()
	if err != nil {
		return "", err
	}
	if slices.Contains(unfinished, name) { // an exact name is accepted even if other names begin with it
		return name, nil
	}
	if name == "last" && len(finished) > 0 {
		entries, err := s.List()
		if err != nil {
			return "", err
		}
		return entries[slices.IndexFunc(entries, func(e Entry) bool { return e.State == Complete })].ID, nil
	}
	var matches []string
	for _, id := range append(finished, unfinished...) {
		if name != "" && strings.HasPrefix(id, name) {
			matches = append(matches, id)
		}
	}
	switch len(matches) {
	case 1:
		return matches[0], nil
	case 0:
		return "", s.unknownError(name)
	}
	return "", fmt.Errorf("%w: %q is the beginning of %d ids, such as %s and %s; type more characters", ErrUnknown, name,
		len(matches), matches[0], matches[1])
}

// unknownError returns the error for an id that does not exist. It suggests similar ids.
func (s *Store) unknownError(id string) error {
	finished, unfinished, err := s.folders()
	if err != nil {
		return err
	}
	all := append(finished, unfinished...)
	if len(all) == 0 {
		return fmt.Errorf("%w: %q; the store in %s is empty, so make one with olafctl bench", ErrUnknown, id, s.dir)
	}
	if near := suggest.NearestNames(id, all, 3); len(near) > 0 {
		return fmt.Errorf("%w: %q; similar names: %s; olafctl runs lists all", ErrUnknown, id, strings.Join(near, ", "))
	}
	return fmt.Errorf("%w: %q; olafctl runs lists the stored runs", ErrUnknown, id)
}
