package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/internal/lockfile"
	"github.com/olafctl/olaf/internal/suggest"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/sweep"
)

// Files of a sweep: the plan in its own folder until it is finished, and in its run in the store from then on, with the results
// in the order of the sweep, one a line.
const (
	planFile    = "plan.json"
	resultsFile = "results.jsonl"
	beatFile    = "progress.json"
	lockName    = "lock"
	idTime      = "20060102-150405"
)

// ErrHeld says that another olafctl works on the sweep.
var ErrHeld = olaf.NewError(olaf.Usage, "another olafctl works on this sweep")

// Folders are where sweeps that are not finished wait.
type Folders struct {
	store *store.Store
	dir   string
}

// In are the sweeps of a store.
func In(s *store.Store) *Folders { return &Folders{s, filepath.Join(s.Dir(), "sweeps")} }

// Folder is one sweep that is not finished, held locked.
type Folder struct {
	Plan  *Plan
	store *store.Store
	dir   string
	lock  io.Closer
}

// experiment is what a sweep of a command is called in the store.
func experiment(command string) string { return "sweep-" + strings.ReplaceAll(command, " ", "-") }

// Create makes the folder of a sweep that starts now, and gives the plan its id.
func (f *Folders) Create(p *Plan, started time.Time) (*Folder, error) {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return nil, fmt.Errorf("the sweep can't be kept: %w", err)
	}
	p.Started = started.UTC().Format(time.RFC3339Nano)
	for at := started.UTC(); ; at = at.Add(time.Second) {
		p.ID = at.Format(idTime) + "-" + experiment(p.Command)
		if _, err := f.store.Load(p.ID); err == nil {
			continue
		}
		err := os.Mkdir(filepath.Join(f.dir, p.ID), 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the sweep can't be kept: %w", err)
		}
		p.Started = at.Format(time.RFC3339Nano)
		break
	}
	one := &Folder{Plan: p, store: f.store, dir: filepath.Join(f.dir, p.ID)}
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	if one.lock, err = lockfile.Take(filepath.Join(one.dir, lockName), 0o644); err == nil {
		err = renameio.WriteFile(filepath.Join(one.dir, planFile), raw, 0o644, renameio.WithTempDir(one.dir))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the sweep can't be kept: %w", err), os.RemoveAll(one.dir))
	}
	return one, nil
}

// Open takes a sweep up again. The error matches ErrHeld while another process works on it.
func (f *Folders) Open(id string, all Commands) (*Folder, error) {
	p, err := f.Plan(id, all)
	if err != nil {
		return nil, err
	}
	one := &Folder{Plan: p, store: f.store, dir: filepath.Join(f.dir, id)}
	one.lock, err = lockfile.Take(filepath.Join(one.dir, lockName), 0o644)
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, fmt.Errorf("%s: %w; 'olafctl sweep status %[1]s' shows how far it is", id, ErrHeld)
	}
	return one, err
}

// Plan reads the plan of a sweep that is not finished.
func (f *Folders) Plan(id string, all Commands) (*Plan, error) {
	raw, err := os.ReadFile(filepath.Join(f.dir, id, planFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %s has no plan; remove it with 'olafctl sweep rm %s'", ErrUnknown, id, id)
	}
	return readPlan(id, raw, all)
}

func readPlan(id string, raw []byte, all Commands) (*Plan, error) {
	p := new(Plan)
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, fmt.Errorf("%w: the plan of %s: %w", store.ErrDamaged, id, err)
	}
	return p, p.Bind(all)
}

// List lists the sweeps that are not finished, newest first. Of one that ended between becoming a run of the store and going from here,
// what is left is removed.
func (f *Folders) List() (ids []string, err error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if _, kept := f.store.Load(e.Name()); kept == nil && !f.Held(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.dir, e.Name())))
			continue
		}
		ids = append(ids, e.Name())
	}
	slices.Reverse(ids)
	return ids, err
}

// Held says whether somebody works on a sweep.
func (f *Folders) Held(id string) bool { return lockfile.Held(filepath.Join(f.dir, id, lockName)) }

// Find finds a sweep among those that are not finished and those of the store that are, by its id, the beginning of just one, or
// "last" for the newest. The error matches ErrUnknown and says what there is.
func (f *Folders) Find(name string, finished []string) (id string, err error) {
	ids, err := f.List()
	if err != nil {
		return "", err
	}
	ids = append(ids, finished...)
	var matches []string
	for _, id := range ids {
		if id == name {
			return id, nil
		}
		if name != "" && strings.HasPrefix(id, name) {
			matches = append(matches, id)
		}
	}
	switch {
	case len(ids) == 0:
		return "", fmt.Errorf("%w: %q; nothing was swept in this store yet. 'olafctl sweep run FILE.yaml' does, or 'olafctl bench --sweep NAME=VALUES'", ErrUnknown, name)
	case name == "last":
		return slices.Max(ids), nil // they begin with the time
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		return "", fmt.Errorf("%w: %q begins %d of them, such as %s and %s; type more of it", ErrUnknown, name, len(matches), matches[0], matches[1])
	}
	const some = 3
	if near := suggest.Names(name, ids, some); len(near) > 0 {
		return "", fmt.Errorf("%w: %q; near are %s", ErrUnknown, name, strings.Join(near, ", "))
	}
	return "", fmt.Errorf("%w: %q; 'olafctl sweep status' lists unfinished ones, 'olafctl runs' the others, and the last one is %s", ErrUnknown, name, slices.Max(ids))
}

// Remove removes a sweep that is not finished; its results stay for others that want them.
func (f *Folders) Remove(id string) error {
	if f.Held(id) {
		return fmt.Errorf("%s: %w; stop it first", id, ErrHeld)
	}
	return os.RemoveAll(filepath.Join(f.dir, id))
}

// Beat is what whoever works on a sweep says of it now and then.
type Beat struct {
	Progress
	Host    string  `json:"host"`
	At      string  `json:"at"`      // RFC 3339
	Seconds float64 `json:"seconds"` // since it began, or went on
}

// Beat tells how far the sweep is, for whoever asks. What can't be written is not worth ending for.
func (f *Folder) Beat(b Beat) {
	if raw, err := json.Marshal(b); err == nil {
		_ = os.WriteFile(filepath.Join(f.dir, beatFile+".new"), raw, 0o644)
		_ = os.Rename(filepath.Join(f.dir, beatFile+".new"), filepath.Join(f.dir, beatFile))
	}
}

// LastBeat is what was last told of a sweep; ok is false where nothing was.
func (f *Folders) LastBeat(id string) (b Beat, ok bool) {
	raw, err := os.ReadFile(filepath.Join(f.dir, id, beatFile))
	return b, err == nil && json.Unmarshal(raw, &b) == nil
}

// Leave lets go of the sweep, which waits to be taken up again.
func (f *Folder) Leave() error { return f.lock.Close() }

// Finish makes the sweep a run of the store, under its own id, and returns the id that it has there.
func (f *Folder) Finish(d *sweep.Document, cells []sweep.Outcome) (id string, err error) {
	started, err := time.Parse(time.RFC3339Nano, f.Plan.Started)
	if err != nil {
		return "", fmt.Errorf("%w: the plan of %s: %w", store.ErrDamaged, f.Plan.ID, err)
	}
	w, err := f.store.Create(experiment(f.Plan.Command), started)
	if err != nil {
		return "", err
	}
	d.ID = w.ID()
	m, err := f.put(w, d, cells)
	if err != nil {
		return "", errors.Join(err, w.Abort())
	}
	if err := w.Finish(m); err != nil {
		return "", errors.Join(err, w.Abort())
	}
	return d.ID, errors.Join(os.RemoveAll(f.dir), f.lock.Close())
}

func (f *Folder) put(w *store.Writer, d *sweep.Document, cells []sweep.Outcome) (m store.Manifest, err error) {
	if _, err := bench.PutDocument(w, d); err != nil {
		return m, err
	}
	raw, err := json.Marshal(f.Plan)
	if err != nil {
		return m, err
	}
	if err := w.Put(planFile, raw); err != nil {
		return m, err
	}
	lines, err := w.File(resultsFile)
	if err != nil {
		return m, err
	}
	for i := range cells {
		if err = writeCell(lines, &cells[i]); err != nil {
			break
		}
	}
	if err := errors.Join(err, lines.Close()); err != nil {
		return m, err
	}
	fixed, err := json.Marshal(struct {
		Config json.RawMessage `json:"config"`
		Build  Build           `json:"build"`
		Essence
	}{f.Plan.Config, f.Plan.Build, Essence{len(cells), d.Digest, d.Found()}})
	m = store.Manifest{Experiment: experiment(f.Plan.Command), Deterministic: fixed, SpecSHA256: hashOf(f.Plan.Config), Provenance: d.Provenance, Valid: true, Partial: d.Partial}
	if fault := d.Err(); fault != nil {
		m.Valid, m.Reasons = false, []string{fault.Error()}
	}
	return m, err
}

// Essence is what the manifest of a kept sweep says of it, for lists.
type Essence struct {
	Cells  int    `json:"cells"`
	Digest string `json:"digest"`
	Found  string `json:"found,omitempty"` // in a few words; empty for sweeps of older versions
}

// EssenceOf reads it; ok is false of a run that is no sweep.
func EssenceOf(f *store.Folder) (e Essence, ok bool) {
	return e, json.Unmarshal(f.Manifest.Deterministic, &e) == nil && e.Cells > 0
}

// keptCell is a line of the file of results.
type keptCell struct {
	State     sweep.State       `json:"state"`
	Error     string            `json:"error,omitempty"`
	Looks     int               `json:"looks,omitempty"`
	HalfWidth results.Float     `json:"half_width"`
	Keys      []string          `json:"keys"`
	Lots      []json.RawMessage `json:"lots"`
}

func writeCell(w io.Writer, o *sweep.Outcome) error {
	raw, err := json.Marshal(keptCell{o.State, o.Error, o.Looks, results.Float(o.HalfWidth), o.Keys, o.Lots})
	if err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// IsKept says whether a run of the store is a sweep.
func IsKept(f *store.Folder) bool {
	_, err := os.Stat(f.Path(resultsFile))
	return err == nil
}

// Kept reads a finished sweep: its plan, and what there is of every cell.
func Kept(f *store.Folder, all Commands) (*Plan, []sweep.Outcome, error) {
	raw, err := f.ReadFile(planFile)
	if err != nil {
		return nil, nil, err
	}
	p, err := readPlan(f.ID(), raw, all)
	if err != nil {
		return nil, nil, err
	}
	if raw, err = f.ReadFile(resultsFile); err != nil {
		return nil, nil, err
	}
	var cells []sweep.Outcome
	for line := range bytes.Lines(raw) {
		var k keptCell
		if err := json.Unmarshal(line, &k); err != nil || len(cells) == len(p.Cells) {
			return nil, nil, fmt.Errorf("%w: %s: cell %d of its results", store.ErrDamaged, f.ID(), len(cells))
		}
		c := &p.Cells[len(cells)]
		cells = append(cells, sweep.Outcome{Parameters: c.Values, At: c.at, State: k.State, Error: k.Error, Looks: k.Looks, HalfWidth: float64(k.HalfWidth), Keys: k.Keys, Lots: k.Lots})
	}
	if len(cells) != len(p.Cells) {
		return nil, nil, fmt.Errorf("%w: %s has results of %d of %d cells", store.ErrDamaged, f.ID(), len(cells), len(p.Cells))
	}
	return p, cells, nil
}
