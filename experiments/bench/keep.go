package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/store"
)

// eventsFile is a file in a stored experiment, next to the files of package archive. It lists the order in which runs
// ended, one run per line.
const eventsFile = "events.jsonl"

// Keeper is a sink that stores an experiment with its plan, its delivered frames and all numbers. A twin or a
// simulation can reproduce its frames from the plan, so only the first seed's frames are stored. For a card, all frames
// are stored. The folder stays marked as incomplete until Finish, even if the process dies.
type Keeper struct {
	store    *store.Store
	started  time.Time
	numbers  bool // frames of repeatable work are not stored
	outline  *Outline
	repeats  bool // the same work gives the same frames
	writer   *store.Writer
	recorder *archive.Recorder
	events   []byte
}

// NewKeeper returns a Keeper for an experiment that started at the given time.
func NewKeeper(s *store.Store, started time.Time) *Keeper { return &Keeper{store: s, started: started} }

// StoreNumbersOnly turns off the storage of frames that can be reproduced.
func (k *Keeper) StoreNumbersOnly() { k.numbers = true }

// Event implements Sink.
func (k *Keeper) Event(e Event) error {
	switch e := e.(type) {
	case Started:
		o, err := e.Work.Outline()
		if err != nil {
			return err
		}
		k.repeats = o.Repeats || e.Repeats
		return k.openFolder(o)
	case Observed:
		if !k.Wants(e.Run) {
			return nil
		}
		return k.recorder.Observe(k.outline.ordinalOf(e.Run), e.Observations)
	case RunDone:
		return k.recordDone(e)
	}
	return nil
}

// Wants reports whether the frames of the given run are stored.
func (k *Keeper) Wants(id RunID) bool { return !k.repeats || id.Index == 0 && !k.numbers }

func (k *Keeper) openFolder(o *Outline) (err error) {
	k.outline = o
	if k.writer, err = k.store.Create(paper.FileName(o.Experiment), k.started); err != nil {
		return err
	}
	var plan bytes.Buffer
	if err := json.Indent(&plan, o.Config, "", "  "); err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	if err := k.writer.Put(archive.PlanFile, plan.Bytes()); err != nil {
		return err
	}
	k.recorder, err = archive.NewRecorder(k.writer)
	return err
}

func (k *Keeper) recordDone(e RunDone) error {
	line, err := json.Marshal(struct {
		Event   string   `json:"event"`
		Config  int      `json:"config"`
		Index   int      `json:"index"`
		Frames  int64    `json:"frames"`
		Invalid []string `json:"invalid,omitempty"`
	}{"run_done", e.Run.Config, e.Run.Index, e.Result.Counters.Of("received"), e.Result.Invalid})
	if err != nil {
		return err
	}
	k.events = append(append(k.events, line...), '\n')
	if !k.Wants(e.Run) {
		return nil
	}
	return k.recorder.EndRun(k.outline.ordinalOf(e.Run))
}

// Finish stores a measurement that was made on a testbed and returns its id. The report must contain its provenance.
func (k *Keeper) Finish(r *Measurement) (id string, err error) {
	device := &r.Outcome.Device
	return k.storeRest(r, r.Bench, r.Outcome.Runs, essence{
		Seed: r.Outcome.Plan.Spec.Seed, P4Info: r.Outcome.P4InfoHash, Tables: r.Outcome.TablesHash,
		Trace:      digestTrace(r.Outcome.Plan.Spec.Trace),
		MapVersion: device.MapVersion, DeviceKind: device.Kind, Build: device.Build})
}

// SimulationReport is a report on the runs of a Simulation. FinishSimulation stores it.
type SimulationReport interface {
	result.Report
	Simulation() *Simulated
}

// SimulationResult is a result computed from the runs of a Simulation. It is partial or invalid if the runs are.
type SimulationResult struct {
	*result.Result
	of *Simulated
}

// OverSimulation returns r as a result computed from the runs in s. It marks r as partial or failed if s is.
func OverSimulation(r *result.Result, s *Simulated) *SimulationResult {
	r.Partial, r.Closing = s.Partial, s.DescribeValidity()
	r.Fail(s.Err())
	return &SimulationResult{r, s}
}

// Simulation returns the runs from which the result was computed.
func (r *SimulationResult) Simulation() *Simulated { return r.of }

// FinishSimulation stores a simulation and returns its id. It stores the same document and table that the report
// prints.
func (k *Keeper) FinishSimulation(r SimulationReport, by results.Provenance) (id string, err error) {
	s := r.Simulation()
	b := s.toBench(k.outline)
	b.Provenance, b.Paper = by, r.Paper()
	return k.storeRest(r, b, s.Runs, essence{Seed: s.Simulation.Seeds[0], Simulated: true})
}

// storeRest writes the remaining files: the bench b and, if it differs from b, the report's own document.
func (k *Keeper) storeRest(r result.Report, b *results.Bench, runs [][]results.Run, fixed essence) (id string, err error) {
	if err := k.recorder.Close(); err != nil {
		return "", err
	}
	if r.Document() != any(b) {
		if _, err := archive.PutDocument(k.writer, r); err != nil {
			return "", err
		}
	}
	if err := k.writer.Put(eventsFile, k.events); err != nil {
		return "", err
	}
	var kept []archive.StoredRun
	for config := range runs {
		for i := range runs[config] {
			run := RunID{config, runs[config][i].Index}
			kept = append(kept, archive.StoredRun{Ordinal: k.outline.ordinalOf(run),
				Measure: k.outline.Configurations[config].Measure,
				Run:     runs[config][i], NoFrames: !k.Wants(run)})
		}
	}
	if err := archive.Save(k.writer, b, kept); err != nil {
		return "", err
	}
	fixed.Plan, fixed.Repeatable = k.outline.hashConfig(), k.repeats
	m := store.Manifest{Experiment: k.outline.Experiment, SpecSHA256: fixed.Plan, Provenance: b.Provenance, Valid: true,
		Partial: b.Partial}
	if fault := r.Err(); fault != nil {
		m.Valid, m.Reasons = false, []string{fault.Error()}
	}
	if m.Deterministic, err = json.Marshal(fixed); err != nil {
		return "", fmt.Errorf("write the manifest: %w", err)
	}
	return k.writer.ID(), k.writer.Finish(m)
}

// Digests returns digests of everything that determines the outcome: the plan, the device's P4Info and tables, and the
// recorded trace, if any.
func (o *Outcome) Digests() []results.Digest {
	digests := []results.Digest{{Name: "p4info", SHA256: o.P4InfoHash}, {Name: "tables", SHA256: o.TablesHash}}
	if hash, err := o.Plan.Hash(); err == nil { // a plan that ran can be encoded
		digests = append(digests, results.Digest{Name: "plan", SHA256: hash})
	}
	if trace := digestTrace(o.Plan.Spec.Trace); trace != "" {
		digests = append(digests, results.Digest{Name: "trace", SHA256: trace})
	}
	return digests
}

// essence is the deterministic part of a manifest. It contains everything that determines the result.
type essence struct {
	Seed       uint64 `json:"seed"`
	Plan       string `json:"plan_sha256"`
	P4Info     string `json:"p4info_sha256,omitempty"`
	Tables     string `json:"tables_sha256,omitempty"`
	Trace      string `json:"trace_sha256,omitempty"` // digest of the recording, if any
	MapVersion string `json:"register_map,omitempty"`
	DeviceKind string `json:"device_kind,omitempty"`
	Build      string `json:"device_build,omitempty"`
	Simulated  bool   `json:"simulated,omitempty"` // without a device
	Repeatable bool   `json:"repeatable"`          // the plan alone determines the frames
}

// Abort removes the experiment from the store.
func (k *Keeper) Abort() error {
	if k.writer == nil {
		return nil
	}
	return k.writer.Abort()
}

// RepeatStored runs a stored experiment on the twin or the simulator again from its plan, and compares every run's
// numbers exactly. systems contains the available systems. It returns the number of runs, or 0 if the plan is not
// enough to repeat them, as on a card. A difference matches archive.ErrDiffers and names the run.
func RepeatStored(ctx context.Context, systems system.Set, f *store.Folder, stream *Stream) (runs int, err error) {
	var fixed essence
	if err := json.Unmarshal(f.Manifest.Deterministic, &fixed); err != nil {
		return 0, fmt.Errorf("%w: %s: %w", store.ErrDamaged, f.ID(), err)
	}
	if !fixed.Repeatable {
		return 0, nil
	}
	kept, err := archive.Runs(f, systems.FindDeclaration)
	if err != nil {
		return 0, err
	}
	again := &ordinals{runs: map[uint32]*results.Run{}}
	stream.sinks = append(stream.sinks, again)
	if fixed.Simulated {
		err = repeatSimulation(ctx, systems, f, stream)
	} else {
		err = repeatBench(ctx, systems, f, stream)
	}
	if err != nil {
		return 0, err
	}
	for i := range kept {
		if why := describeDifference(&kept[i], again.runs[kept[i].Ordinal]); why != "" {
			run := &kept[i].Run
			return i, fmt.Errorf("%s: %w: %s at %v, run %d: %s; was it kept by another version of olafctl?", f.ID(),
				archive.ErrDiffers, run.Queue, olaf.Rate(run.OutRateBPS), run.Index, why)
		}
	}
	return len(kept), nil
}

func repeatBench(ctx context.Context, systems system.Set, f *store.Folder, stream *Stream) error {
	spec, err := readSpec(systems, f)
	if err != nil {
		return err
	}
	_, err = MeasureSpec(ctx, spec, Options{Stream: stream})
	return err
}

// readSpec returns the specification of a stored experiment.
func readSpec(systems system.Set, f *store.Folder) (Spec, error) {
	var plan Plan
	err := f.ReadJSON(archive.PlanFile, &plan)
	plan.Spec.Systems = systems
	return plan.Spec, err
}

func repeatSimulation(ctx context.Context, systems system.Set, f *store.Folder, stream *Stream) error {
	var s *Simulation
	err := f.Parse(archive.PlanFile, func(raw []byte) (err error) {
		s, err = readSimulation(systems, raw)
		return err
	})
	if err != nil {
		return err
	}
	_, err = SimulateAll(ctx, s, SimulateOptions{Stream: stream})
	return err
}

// ordinals is a sink that collects the results of runs by their position.
type ordinals struct {
	NumbersOnly
	outline *Outline
	runs    map[uint32]*results.Run
}

func (o *ordinals) Event(e Event) (err error) {
	switch e := e.(type) {
	case Started:
		o.outline, err = e.Work.Outline()
	case RunDone:
		run := *e.Result
		o.runs[o.outline.ordinalOf(e.Run)] = &run
	}
	return err
}

// describeDifference describes how a repeated run differs from the stored one. It returns "" if they are equal.
func describeDifference(stored *archive.StoredRun, repeated *results.Run) string {
	if repeated == nil {
		return "it did not come out again"
	}
	if doubts, _ := stored.Doubts(repeated); len(doubts) > 0 {
		return doubts[0]
	}
	if !stored.Run.Valid() && repeated.Valid() {
		return "it was kept as invalid, and is valid"
	}
	return stored.Run.Differs(repeated)
}

// ErrNoRewind reports that a stored run cannot be reproduced, because it ran on a card.
var ErrNoRewind = errors.New("only what ran on a twin can be watched again")

// RepeatableSpec returns the specification of a stored experiment, so that it can be watched again. systems contains
// the available systems. The error matches ErrNoRewind if the experiment ran on a device that cannot repeat it.
func RepeatableSpec(systems system.Set, f *store.Folder) (Spec, error) {
	spec, err := readSpec(systems, f)
	if err != nil {
		return Spec{}, err
	}
	var fixed essence
	if err := json.Unmarshal(f.Manifest.Deterministic, &fixed); err != nil {
		return Spec{}, fmt.Errorf("read the manifest of %s: %w", f.ID(), err)
	}
	if !fixed.Repeatable {
		return Spec{}, fmt.Errorf("%w: %s ran on a card", ErrNoRewind, f.ID())
	}
	if spec.Loop != nil {
		return Spec{}, fmt.Errorf("%w, and %s is a loop of hosts, which pass no queue", ErrNoRewind, f.ID())
	}
	return spec, spec.Validate()
}
