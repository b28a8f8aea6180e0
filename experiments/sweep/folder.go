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
	"github.com/olafctl/olaf/internal/lockfile"
	"github.com/olafctl/olaf/internal/suggest"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/sweep"
)

// Files of a sweep: the plan is in the sweep's own folder until the end. Then plan and results, one line per cell in
// the order of the sweep, go to a run in the store.
const (
	planFile    = "plan.json"
	resultsFile = "results.jsonl"
	beatFile    = "progress.json"
	lockName    = "lock"
)

// ErrHeld reports that another olafctl is working on the sweep.
var ErrHeld = olaf.NewError(olaf.Usage, "another olafctl is working on this sweep")

// Folders manages the folder in which unfinished sweeps are stored.
type Folders struct {
	store *store.Store
	dir   string
}

// FoldersOf returns the folders of a store's unfinished sweeps.
func FoldersOf(s *store.Store) *Folders { return &Folders{s, filepath.Join(s.Dir(), "sweeps")} }

// Folder is the folder of one unfinished sweep. This process has locked it.
type Folder struct {
	Plan  *Plan
	store *store.Store
	dir   string
	lock  io.Closer
}

// experimentName returns the experiment name under which sweeps of a command are stored.
func experimentName(command string) string { return "sweep-" + strings.ReplaceAll(command, " ", "-") }

// Create creates the folder of a new sweep and sets the plan's id.
func (f *Folders) Create(p *Plan, started time.Time) (*Folder, error) {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return nil, fmt.Errorf("the sweep can't be stored: %w", err)
	}
	p.Started = started.UTC().Format(time.RFC3339Nano)
	for n := 1; ; n++ {
		p.ID = store.NewID(experimentName(p.Command), started, n)
		if _, err := f.store.Load(p.ID); err == nil {
			continue
		}
		err := os.Mkdir(filepath.Join(f.dir, p.ID), 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the sweep can't be stored: %w", err)
		}
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
		return nil, errors.Join(fmt.Errorf("the sweep can't be stored: %w", err), os.RemoveAll(one.dir))
	}
	return one, nil
}

// Open opens an unfinished sweep, so that it can be continued. The error matches ErrHeld if another process is working
// on it.
func (f *Folders) Open(id string, all Commands) (*Folder, error) {
	p, err := f.Plan(id, all)
	if err != nil {
		return nil, err
	}
	one := &Folder{Plan: p, store: f.store, dir: filepath.Join(f.dir, id)}
	one.lock, err = lockfile.Take(filepath.Join(one.dir, lockName), 0o644)
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, fmt.Errorf("%s: %w; 'olafctl sweep status %[1]s' shows its progress", id, ErrHeld)
	}
	return one, err
}

// Plan reads the plan of an unfinished sweep.
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

// List returns the ids of the unfinished sweeps, newest first. It removes what is left of a sweep that was interrupted
// after its run was stored.
func (f *Folders) List() (ids []string, err error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if _, kept := f.store.Load(e.Name()); kept == nil && !f.IsHeld(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.dir, e.Name())))
			continue
		}
		ids = append(ids, e.Name())
	}
	slices.Reverse(ids)
	return ids, err
}

// IsHeld reports whether a process is working on a sweep.
func (f *Folders) IsHeld(id string) bool { return lockfile.IsHeld(filepath.Join(f.dir, id, lockName)) }

// Find returns the id of an unfinished or finished sweep. name is the id, a unique prefix of it, or "last" for the
// newest sweep. The error matches ErrUnknown and names candidates.
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
		return "", fmt.Errorf("%w: %q; this store has no sweeps yet; start one with 'olafctl sweep run FILE.yaml' or "+
			"'olafctl bench --sweep NAME=VALUES'", ErrUnknown, name)
	case name == "last":
		return slices.Max(ids), nil // they begin with the time
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		return "", fmt.Errorf("%w: %q is the beginning of %d sweeps, such as %s and %s; type more characters",
			ErrUnknown, name, len(matches), matches[0], matches[1])
	}
	const some = 3
	if near := suggest.NearestNames(name, ids, some); len(near) > 0 {
		return "", fmt.Errorf("%w: %q; similar names: %s", ErrUnknown, name, strings.Join(near, ", "))
	}
	return "", fmt.Errorf("%w: %q; 'olafctl sweep status' lists unfinished sweeps and 'olafctl runs' finished ones; "+
		"the last one is %s", ErrUnknown, name, slices.Max(ids))
}

// Remove removes an unfinished sweep. Its results remain in the store, where other sweeps can use them.
func (f *Folders) Remove(id string) error {
	if f.IsHeld(id) {
		return fmt.Errorf("%s: %w; stop it first", id, ErrHeld)
	}
	return os.RemoveAll(filepath.Join(f.dir, id))
}

// Beat is a progress report that a running sweep writes periodically.
type Beat struct {
	Progress
	Host    string  `json:"host"`
	At      string  `json:"at"`      // RFC 3339
	Seconds float64 `json:"seconds"` // since it began or resumed
}

// Beat writes a progress report for other processes. It ignores errors, because the sweep can continue without the
// report.
func (f *Folder) Beat(b Beat) {
	if raw, err := json.Marshal(b); err == nil {
		_ = os.WriteFile(filepath.Join(f.dir, beatFile+".new"), raw, 0o644)
		_ = os.Rename(filepath.Join(f.dir, beatFile+".new"), filepath.Join(f.dir, beatFile))
	}
}

// LastBeat returns the latest progress report of a sweep. ok is false if there is none.
func (f *Folders) LastBeat(id string) (b Beat, ok bool) {
	raw, err := os.ReadFile(filepath.Join(f.dir, id, beatFile))
	return b, err == nil && json.Unmarshal(raw, &b) == nil
}

// Leave unlocks the sweep. It can be continued later.
func (f *Folder) Leave() error { return f.lock.Close() }

// Finish stores the sweep as a run in the store and returns the run's id.
func (f *Folder) Finish(d *sweep.Document, cells []sweep.Outcome) (id string, err error) {
	started, err := time.Parse(time.RFC3339Nano, f.Plan.Started)
	if err != nil {
		return "", fmt.Errorf("%w: the plan of %s: %w", store.ErrDamaged, f.Plan.ID, err)
	}
	w, err := f.store.Create(experimentName(f.Plan.Command), started)
	if err != nil {
		return "", err
	}
	d.ID = w.ID()
	m, err := f.storeFiles(w, d, cells)
	if err != nil {
		return "", errors.Join(err, w.Abort())
	}
	if err := w.Finish(m); err != nil {
		return "", errors.Join(err, w.Abort())
	}
	return d.ID, errors.Join(os.RemoveAll(f.dir), f.lock.Close())
}

func (f *Folder) storeFiles(w *store.Writer, d *sweep.Document, cells []sweep.Outcome) (m store.Manifest, err error) {
	if _, err := archive.PutDocument(w, d); err != nil {
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
	}{f.Plan.Config, f.Plan.Build, Essence{len(cells), d.Digest, d.Summary()}})
	m = store.Manifest{Experiment: experimentName(f.Plan.Command), Deterministic: fixed,
		SpecSHA256: hashBytes(f.Plan.Config), Provenance: d.Provenance, Valid: true, Partial: d.Partial}
	if fault := d.Err(); fault != nil {
		m.Valid, m.Reasons = false, []string{fault.Error()}
	}
	return m, err
}

// Essence is the summary of a sweep that its manifest contains. Lists of runs show it.
type Essence struct {
	Cells  int    `json:"cells"`
	Digest string `json:"digest"`
	Found  string `json:"found,omitempty"` // in a few words; empty for sweeps from older versions
}

// EssenceOf reads the summary of a sweep. ok is false if the run is not a sweep.
func EssenceOf(f *store.Folder) (e Essence, ok bool) {
	return e, json.Unmarshal(f.Manifest.Deterministic, &e) == nil && e.Cells > 0
}

// storedCell is one line in the file of a sweep's results.
type storedCell struct {
	State     sweep.State       `json:"state"`
	Error     string            `json:"error,omitempty"`
	Looks     int               `json:"looks,omitempty"`
	HalfWidth results.Float     `json:"half_width"`
	Keys      []string          `json:"keys"`
	Lots      []json.RawMessage `json:"lots"`
}

func writeCell(w io.Writer, o *sweep.Outcome) error {
	raw, err := json.Marshal(storedCell{o.State, o.Error, o.Looks, results.Float(o.HalfWidth), o.Keys, o.Lots})
	if err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

// IsKept reports whether a run in the store is a sweep.
func IsKept(f *store.Folder) bool {
	_, err := os.Stat(f.Path(resultsFile))
	return err == nil
}

// ReadKept reads the plan of a finished sweep and the outcome of every cell.
func ReadKept(f *store.Folder, all Commands) (*Plan, []sweep.Outcome, error) {
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
		var k storedCell
		if err := json.Unmarshal(line, &k); err != nil || len(cells) == len(p.Cells) {
			return nil, nil, fmt.Errorf("%w: %s: cell %d of its results can't be read", store.ErrDamaged, f.ID(),
				len(cells))
		}
		c := &p.Cells[len(cells)]
		cells = append(cells, sweep.Outcome{Parameters: c.Values, At: c.at, State: k.State, Error: k.Error,
			Looks: k.Looks, HalfWidth: float64(k.HalfWidth), Keys: k.Keys, Lots: k.Lots})
	}
	if len(cells) != len(p.Cells) {
		return nil, nil, fmt.Errorf("%w: %s has results of %d of %d cells", store.ErrDamaged, f.ID(), len(cells),
			len(p.Cells))
	}
	return p, cells, nil
}
