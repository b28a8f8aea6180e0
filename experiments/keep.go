package experiments

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/store"
)

// Files of a kept experiment beside those of package archive.
const (
	planFile   = "plan.json"    // the Plan: what to run again
	eventsFile = "events.jsonl" // the order in which runs ended, one line each
)

// ErrDiffers says that a kept run does not come out again as it was.
var ErrDiffers = errors.New("the run does not repeat")

// Keeper is a sink that keeps an experiment in a store: plan, delivered frames, every number. A twin repeats its frames
// from the plan, so that those of the first seed are enough; of a card all are kept. Until Finish the folder is marked
// incomplete, whatever happens to the process.
type Keeper struct {
	store    *store.Store
	started  time.Time
	plan     *Plan
	repeats  bool // the device gives the same frames again
	writer   *store.Writer
	recorder *archive.Recorder
	events   []byte
}

// Keep prepares to keep the experiment that starts now.
func Keep(s *store.Store, started time.Time) *Keeper { return &Keeper{store: s, started: started} }

// Event takes what happens as it happens.
func (k *Keeper) Event(e Event) error {
	switch e := e.(type) {
	case Started:
		k.repeats = e.Device.Kind == repeatableKind
		return k.begin(e.Plan)
	case Observed:
		if !k.frames(e.Run.Index) {
			return nil
		}
		return k.recorder.Observe(k.plan.ordinal(e.Run), e.Observations)
	case RunDone:
		return k.done(e)
	}
	return nil
}

// repeatableKind is the kind of device that gives the same frames for the same plan.
const repeatableKind = "twin"

// frames says whether the frames of a seed's runs are kept.
func (k *Keeper) frames(index int) bool { return !k.repeats || index == 0 }

// ordinal numbers runs seed by seed, so that the first seed's frames stand first.
func (p *Plan) ordinal(id RunID) uint32 { return uint32(id.Index*len(p.Configs) + id.Config) }

func (k *Keeper) begin(p *Plan) (err error) {
	k.plan = p
	if k.writer, err = k.store.Create(p.Spec.Experiment, k.started); err != nil {
		return err
	}
	doc, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	if err := k.writer.Put(planFile, doc); err != nil {
		return err
	}
	k.recorder, err = archive.NewRecorder(k.writer)
	return err
}

func (k *Keeper) done(e RunDone) error {
	line, err := json.Marshal(struct {
		Event   string   `json:"event"`
		Config  int      `json:"config"`
		Index   int      `json:"index"`
		Frames  int64    `json:"frames"`
		Invalid []string `json:"invalid,omitempty"`
	}{"run_done", e.Run.Config, e.Run.Index, e.Result.Counters.Received, e.Result.Invalid})
	if err != nil {
		return err
	}
	k.events = append(append(k.events, line...), '\n')
	if !k.frames(e.Run.Index) {
		return nil
	}
	return k.recorder.Done(k.plan.ordinal(e.Run))
}

// Finish makes the experiment part of the store and returns its id. The report must carry its provenance.
func (k *Keeper) Finish(r *BenchReport) (id string, err error) {
	if err := k.recorder.Close(); err != nil {
		return "", err
	}
	if err := k.writer.Put(eventsFile, k.events); err != nil {
		return "", err
	}
	var kept []archive.Kept
	for config, runs := range r.Outcome.Runs {
		for i := range runs {
			kept = append(kept, archive.Kept{
				Ordinal: k.plan.ordinal(RunID{config, runs[i].Index}), Measure: k.plan.measure(&k.plan.Configs[config]),
				Run: runs[i], NoFrames: !k.frames(runs[i].Index)})
		}
	}
	if err := archive.Save(k.writer, r.Bench, kept); err != nil {
		return "", err
	}
	manifest, err := k.manifest(r)
	if err != nil {
		return "", err
	}
	return k.writer.ID(), k.writer.Finish(manifest)
}

// Digests names what the outcome is a function of by what it contained: the plan, the device's P4Info and tables, and
// the recording that was played, if one was.
func (o *Outcome) Digests() []results.Digest {
	digests := []results.Digest{{Name: "p4info", SHA256: o.P4InfoHash}, {Name: "tables", SHA256: o.TablesHash}}
	if hash, err := o.Plan.Hash(); err == nil { // a plan that ran can be written
		digests = append(digests, results.Digest{Name: "plan", SHA256: hash})
	}
	if trace := o.Plan.Spec.Trace.digest(); trace != "" {
		digests = append(digests, results.Digest{Name: "trace", SHA256: trace})
	}
	return digests
}

// essence is the deterministic part of a manifest: what the result is a function of.
type essence struct {
	Seed       uint64 `json:"seed"`
	Plan       string `json:"plan_sha256"`
	P4Info     string `json:"p4info_sha256"`
	Tables     string `json:"tables_sha256"`
	Trace      string `json:"trace_sha256,omitempty"` // of the recording that was played, if one was
	MapVersion string `json:"register_map"`
	DeviceKind string `json:"device_kind"`
	Build      string `json:"device_build"`
	Repeatable bool   `json:"repeatable"` // the plan alone gives the same frames
}

func (k *Keeper) manifest(r *BenchReport) (store.Manifest, error) {
	hash, err := k.plan.Hash()
	if err != nil {
		return store.Manifest{}, err
	}
	device := &r.Outcome.Device
	fixed, err := json.Marshal(essence{k.plan.Spec.Seed, hash, r.Outcome.P4InfoHash, r.Outcome.TablesHash, k.plan.Spec.Trace.digest(),
		device.MapVersion, device.Kind, device.Build, k.repeats})
	if err != nil {
		return store.Manifest{}, fmt.Errorf("write the manifest: %w", err)
	}
	m := store.Manifest{
		Experiment: k.plan.Spec.Experiment, Deterministic: fixed, SpecSHA256: hash,
		Provenance: r.Bench.Provenance, Valid: r.Err() == nil, Partial: r.Bench.Partial,
	}
	if err := r.Err(); err != nil {
		m.Reasons = []string{err.Error()}
	}
	return m, nil
}

// Abort gives the experiment up; nothing of it stays in the store.
func (k *Keeper) Abort() error {
	if k.writer == nil {
		return nil
	}
	return k.writer.Abort()
}

// Repeat runs a kept experiment of the twin again from its plan alone and compares every run's numbers exactly. It says
// how many runs there were; none where a card was measured, which does not repeat. A difference matches ErrDiffers and
// names the run.
func Repeat(ctx context.Context, f *store.Folder, stream *Stream) (runs int, err error) {
	var fixed essence
	if err := json.Unmarshal(f.Manifest.Deterministic, &fixed); err != nil {
		return 0, fmt.Errorf("%w: %s: %w", store.ErrDamaged, f.ID(), err)
	}
	if !fixed.Repeatable {
		return 0, nil
	}
	var plan Plan
	if err := f.ReadJSON(planFile, &plan); err != nil {
		return 0, err
	}
	kept, err := archive.Runs(f)
	if err != nil {
		return 0, err
	}
	made, err := Bench(ctx, plan.Spec, BenchOptions{Stream: stream})
	if err != nil {
		return 0, err
	}
	again := map[uint32]*results.Run{}
	for config, runs := range made.Outcome.Runs {
		for i := range runs {
			again[plan.ordinal(RunID{config, runs[i].Index})] = &runs[i]
		}
	}
	for i := range kept {
		if err := repeated(&kept[i].Run, again[kept[i].Ordinal]); err != nil {
			return i, fmt.Errorf("%s: %w", f.ID(), err)
		}
	}
	return len(kept), nil
}

// repeated compares two runs by their documents, which hold every number in full.
func repeated(kept, made *results.Run) error {
	a, errA := json.Marshal(kept)
	b, errB := json.Marshal(made)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%w: %s at %v, run %d; was it kept by another version of olafctl?", ErrDiffers, kept.Queue, olaf.Rate(kept.OutRateBPS), kept.Index)
	}
	return nil
}
