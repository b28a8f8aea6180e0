package experiments

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/columns"
	"github.com/olafctl/olaf/results/report"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/xlsx"
)

// Files of a kept run beside the store's own.
const (
	planFile    = "plan.json"    // the Plan: what to run again
	benchFile   = "bench.json"   // the document, provenance included
	runsFile    = "runs.json"    // every single run with its digest
	eventsFile  = "events.jsonl" // what happened, one line an event
	samplesFile = "samples.olb"  // the first frames of each configuration, in columns; a block's run is its configuration
)

// maxSamples is how many delivered frames of each configuration's first run are kept in full, for sawtooths and the
// sample sheet; all others are kept as a digest, because the plan repeats them exactly.
const maxSamples = 1000

// ErrDiffers says that a kept run does not come out again as it was.
var ErrDiffers = errors.New("the run does not repeat")

// keptRun is one run and the digest of its observations.
type keptRun struct {
	results.Run
	Observations int64  `json:"observations"`
	Digest       string `json:"observations_sha256"`
}

// Keeper is a sink that keeps an experiment in a store: an immutable folder from which everything can be computed again.
// Until Finish it is marked incomplete, whatever happens to the process.
type Keeper struct {
	store   *store.Store
	started time.Time
	plan    *Plan
	writer  *store.Writer
	events  *store.File
	log     *json.Encoder
	digests map[RunID]keptRun
	samples []*columns.Encoder // by configuration
	counts  []int              // samples taken, by configuration
	total   int64
}

// Keep prepares to keep the experiment that starts now.
func Keep(s *store.Store, started time.Time) *Keeper {
	return &Keeper{store: s, started: started, digests: map[RunID]keptRun{}}
}

// Event takes what happens as it happens.
func (k *Keeper) Event(e Event) error {
	switch e := e.(type) {
	case Started:
		return k.begin(e.Plan)
	case Observed:
		k.sample(e)
	case RunDone:
		k.digests[e.Run] = keptRun{Observations: e.Observations, Digest: e.Digest}
		k.total += e.Observations
		return k.log.Encode(struct {
			Event        string   `json:"event"`
			Config       int      `json:"config"`
			Index        int      `json:"index"`
			Observations int64    `json:"observations"`
			Digest       string   `json:"observations_sha256"`
			Invalid      []string `json:"invalid,omitempty"`
		}{"run", e.Run.Config, e.Run.Index, e.Observations, e.Digest, e.Result.Invalid})
	}
	return nil
}

func (k *Keeper) begin(p *Plan) (err error) {
	k.plan, k.counts, k.samples = p, make([]int, len(p.Configs)), make([]*columns.Encoder, len(p.Configs))
	for config := range k.samples {
		if k.samples[config], err = columns.NewEncoder(); err != nil {
			return err
		}
		k.samples[config].Begin(uint32(config))
	}
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
	if k.events, err = k.writer.File(eventsFile); err != nil {
		return err
	}
	k.log = json.NewEncoder(k.events)
	return nil
}

// sample keeps the beginning of each configuration's first run.
func (k *Keeper) sample(e Observed) {
	if e.Run.Index != 0 {
		return
	}
	for i := range e.Observations {
		if k.counts[e.Run.Config] == maxSamples {
			return
		}
		k.counts[e.Run.Config]++
		k.samples[e.Run.Config].Append(&e.Observations[i])
	}
}

// Finish makes the experiment part of the store and returns its id. The report must carry its provenance.
func (k *Keeper) Finish(r *BenchReport) (id string, err error) {
	if err := k.events.Close(); err != nil {
		return "", err
	}
	var samples []byte
	for _, encoder := range k.samples {
		samples = append(samples, encoder.End()...)
	}
	if err := k.writer.Put(samplesFile, samples); err != nil {
		return "", err
	}
	for _, f := range []struct {
		name string
		doc  any
	}{{benchFile, r.Bench}, {runsFile, k.kept(r)}} {
		doc, err := json.Marshal(f.doc)
		if err != nil {
			return "", fmt.Errorf("keep %s: %w", f.name, err)
		}
		if err := k.writer.Put(f.name, doc); err != nil {
			return "", err
		}
	}
	manifest, err := k.manifest(r)
	if err != nil {
		return "", err
	}
	return k.writer.ID(), k.writer.Finish(manifest)
}

// kept lists the runs of the report by configuration and seed, with their digests.
func (k *Keeper) kept(r *BenchReport) []keptRun {
	var out []keptRun
	for config, runs := range r.Outcome.Runs {
		for i := range runs {
			run := k.digests[RunID{config, runs[i].Index}]
			run.Run = runs[i]
			out = append(out, run)
		}
	}
	return out
}

// essence is the deterministic part of a manifest.
type essence struct {
	Seed       uint64 `json:"seed"`
	Plan       string `json:"plan_sha256"`
	Tables     string `json:"tables_sha256"`
	MapVersion string `json:"register_map"`
	DeviceKind string `json:"device_kind"`
	Build      string `json:"device_build"`
	Delivered  int64  `json:"delivered"`
	Repeatable bool   `json:"repeatable"` // the plan alone gives the same frames
}

// manifest describes the run; its deterministic part is what a repetition must agree with.
func (k *Keeper) manifest(r *BenchReport) (store.Manifest, error) {
	hash, err := k.plan.Hash()
	if err != nil {
		return store.Manifest{}, err
	}
	device := &r.Outcome.Device
	fixed, err := json.Marshal(essence{k.plan.Spec.Seed, hash, r.Outcome.TablesHash, device.MapVersion, device.Kind, device.Build, k.total, device.Kind == "twin"})
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

// Load reads a kept run back as workbook, report and comparison take it.
func Load(f *store.Folder) (*sheets.Result, error) {
	r := &sheets.Result{Bench: new(results.Bench)}
	var kept []keptRun
	var plan Plan
	if err := errors.Join(f.ReadJSON(benchFile, r.Bench), f.ReadJSON(runsFile, &kept), f.ReadJSON(planFile, &plan)); err != nil {
		return nil, err
	}
	var err error
	if r.Samples, err = loadSamples(f, &plan); err != nil {
		return nil, err
	}
	for i := range kept {
		r.Runs = append(r.Runs, kept[i].Run)
		r.Delivered += kept[i].Observations
	}
	r.RawRows = "the plan repeats every frame: olafctl runs verify " + f.ID()
	return r, nil
}

// loadSamples reads the sampled frames of every configuration.
func loadSamples(f *store.Folder, plan *Plan) ([]sheets.Sample, error) {
	file, err := f.Open(samplesFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	blocks, err := columns.NewReader(file)
	if err != nil {
		return nil, err
	}
	defer blocks.Close()
	var samples []sheets.Sample
	for {
		var o olaf.Observation
		config, err := blocks.Next(&o)
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil || int(config) >= len(plan.Configs) {
			return nil, fmt.Errorf("%w: %s: %s: %w", store.ErrDamaged, f.ID(), samplesFile, cmp.Or(err, columns.ErrFormat))
		}
		o.Contributors = slices.Clone(o.Contributors)
		samples = append(samples, sheets.Sample{Queue: plan.Configs[config].Queue, OutRateBPS: int64(plan.Configs[config].OutRate), Observation: o})
	}
}

// Verify checks that a kept run is what it says: every file by its digest, and, on the twin, everything again from the
// plan: observations by digest, every number exactly, workbook and report byte for byte. The error matches
// store.ErrDamaged or ErrDiffers and names the first difference.
func Verify(ctx context.Context, f *store.Folder, stream *Stream) error {
	if err := f.VerifyDigests(); err != nil {
		return err
	}
	stored, err := Load(f)
	if err != nil {
		return err
	}
	var fixed essence
	if err := json.Unmarshal(f.Manifest.Deterministic, &fixed); err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrDamaged, f.ID(), err)
	}
	if !fixed.Repeatable {
		return nil // a card does not repeat; its files are what they were
	}
	var plan Plan
	var kept []keptRun
	if err := errors.Join(f.ReadJSON(planFile, &plan), f.ReadJSON(runsFile, &kept)); err != nil {
		return err
	}
	again := &repetition{kept: map[RunID]*keptRun{}}
	for i := range kept {
		config := slices.IndexFunc(plan.Configs, func(c Config) bool {
			return c.Queue == kept[i].Queue && int64(c.OutRate) == kept[i].OutRateBPS
		})
		again.kept[RunID{config, kept[i].Index}] = &kept[i]
	}
	stream.sinks = append(stream.sinks, again)
	made, err := Bench(ctx, plan.Spec, BenchOptions{Stream: stream})
	if err != nil {
		return err
	}
	if stored.Bench.Partial {
		return nil // what was done agrees; the rest has nothing to agree with
	}
	made.Bench.Provenance = stored.Bench.Provenance
	return sameDocuments(stored, made)
}

// repetition compares every run as it comes out again.
type repetition struct{ kept map[RunID]*keptRun }

func (r *repetition) Event(e Event) error {
	done, ok := e.(RunDone)
	if !ok {
		return nil
	}
	kept := r.kept[done.Run]
	if kept == nil {
		return nil // a partial experiment did not get that far
	}
	if kept.Digest != done.Digest {
		return fmt.Errorf("%w: %s at %v, run %d delivered other frames", ErrDiffers, kept.Queue, olaf.Rate(kept.OutRateBPS), done.Run.Index)
	}
	return nil
}

// sameDocuments compares numbers exactly, and workbook and report byte for byte. The samples are the stored ones: the
// digests have just shown that the frames are the same.
func sameDocuments(stored *sheets.Result, made *BenchReport) error {
	fresh := made.Result()
	fresh.Samples, fresh.Delivered, fresh.RawRows = stored.Samples, stored.Delivered, stored.RawRows
	for _, c := range []struct {
		what  string
		write func(io.Writer, *sheets.Result) error
	}{
		{"the numbers", func(w io.Writer, r *sheets.Result) error { return json.NewEncoder(w).Encode(r.Bench) }},
		{"the single runs", func(w io.Writer, r *sheets.Result) error { return json.NewEncoder(w).Encode(r.Runs) }},
		{"the workbook", func(w io.Writer, r *sheets.Result) error { return xlsx.Write(w, sheets.Book(r)) }},
		{"the report", report.Write},
	} {
		var a, b bytes.Buffer
		if err := errors.Join(c.write(&a, stored), c.write(&b, fresh)); err != nil {
			return err
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			return fmt.Errorf("%w: %s differ", ErrDiffers, c.what)
		}
	}
	return nil
}
