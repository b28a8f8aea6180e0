// Package archive reads and writes the folder of a stored bench. The folder contains the document, the runs with the
// configuration of their measurement, and every delivered frame. From these the package can load a result, and
// recompute all numbers to verify that they follow from the raw data.
package archive

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/obsfile"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/store"
)

// Files of a bench's folder.
const (
	BenchFile        = "bench.json"
	RunsFile         = "runs.json"
	ObservationsFile = "observations.olb"
)

// ErrMismatch is the error for stored numbers that do not follow from the stored raw data.
var ErrMismatch = olaf.NewError(olaf.Missed, "stored numbers are not those of the raw data")

// runsSchema is the schema name in RunsFile.
const runsSchema = "olafctl.runs/v1"

// StoredRun is a stored run with the data needed to compute its results again.
type StoredRun struct {
	// Ordinal is the run's number among the observations. Users look at the first runs first, so the smallest numbers
	// should go to the runs with the first seed.
	Ordinal uint32         `json:"ordinal"`
	Measure results.Config `json:"measure"`
	Run     results.Run    `json:"run"`
	// System is the system that declares the counters and metrics; see metric.Declaration.
	System string `json:"system,omitempty"`
	// NoFrames means that the observations were not stored, because the run's owner can repeat it.
	NoFrames bool     `json:"no_frames,omitempty"`
	checks   []string // checks in force when the run was stored
}

// Doubts returns reasons why the recomputed run is invalid although the stored run passed the same checks. newer
// describes a violation of a rule that did not exist when the run was stored, or is "".
func (k *StoredRun) Doubts(again *results.Run) (reasons []string, newer string) {
	var broken *olaf.BrokenError
	if errors.As(again.Counters.Check(), &broken) && !slices.Contains(k.checks, broken.Rule) {
		newer = broken.Error()
	}
	for _, why := range again.Invalid {
		if why != newer && !slices.Contains(k.Run.Invalid, why) {
			reasons = append(reasons, why)
		}
	}
	return reasons, newer
}

type runsDocument struct {
	Schema string `json:"schema"`
	// Checks are the rules that the counters were checked against when the runs were stored; if absent, the
	// identities.
	Checks []string    `json:"checks,omitempty"`
	Runs   []StoredRun `json:"runs"`
}

// Declarations returns the counters and metrics that a system declares, or nil for an unknown system.
type Declarations func(system string) *metric.Declaration

// of returns the declaration for a stored run. For an unknown system it is empty.
func (d Declarations) of(k *StoredRun) *metric.Declaration {
	if declared := d(k.System); declared != nil {
		return declared
	}
	return &metric.Declaration{System: k.System, Ledger: new(olaf.Ledger)}
}

// Recorder writes the observations of runs to a file in a stored run's folder. Several runs may be recorded
// concurrently, each by one goroutine at a time. In the file they are sorted by ordinal, regardless of when they were
// recorded.
type Recorder struct {
	mu      sync.Mutex
	file    *store.File
	buffer  *bufio.Writer
	free    []*obsfile.Encoder
	open    map[uint32]*obsfile.Encoder
	waiting map[uint32][]byte // encoded runs that ended before it was their turn
	next    uint32
	begun   *store.Mark // start of the next run in the file, once a part of the run is written
}

// chunk is the number of encoded bytes after which part of a run is written, before the run has ended.
const chunk = 1 << 20

// NewRecorder creates the file of observations. w must not be used for other files until Close.
func NewRecorder(w *store.Writer) (*Recorder, error) {
	file, err := w.File(ObservationsFile)
	if err != nil {
		return nil, err
	}
	return &Recorder{file: file, buffer: bufio.NewWriterSize(file, 1<<16), open: map[uint32]*obsfile.Encoder{},
		waiting: map[uint32][]byte{}}, nil
}

// Observe adds deliveries of the run with the given ordinal. It does not retain the slice.
func (r *Recorder) Observe(ordinal uint32, observations []olaf.Observation) error {
	e := r.encoder(ordinal)
	for i := range observations {
		e.Append(&observations[i])
	}
	if e.PendingBytes() < chunk {
		return nil
	}
	return r.write(ordinal, e)
}

// write writes the encoded part of a run if all runs before it are written, so that memory use stays constant.
func (r *Recorder) write(ordinal uint32, e *obsfile.Encoder) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ordinal != r.next {
		return nil
	}
	if r.begun == nil {
		if err := r.buffer.Flush(); err != nil {
			return err
		}
		mark, err := r.file.Mark()
		if err != nil {
			return err
		}
		r.begun = &mark
	}
	_, err := r.buffer.Write(e.Take())
	return err
}

func (r *Recorder) encoder(ordinal uint32) *obsfile.Encoder {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.open[ordinal]; e != nil {
		return e
	}
	e := new(obsfile.Encoder)
	if n := len(r.free); n > 0 {
		e, r.free = r.free[n-1], r.free[:n-1]
	}
	e.Begin(ordinal)
	r.open[ordinal] = e
	return e
}

// EndRun records that all observations of a run have been added.
func (r *Recorder) EndRun(ordinal uint32) error {
	e := r.encoder(ordinal)
	blocks := e.End() // encode outside the lock
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, ordinal)
	r.free = append(r.free, e)
	if ordinal != r.next {
		r.waiting[ordinal] = slices.Clone(blocks)
		return nil
	}
	if _, err := r.buffer.Write(blocks); err != nil {
		return err
	}
	r.begun = nil
	for r.next++; r.waiting[r.next] != nil; r.next++ {
		if _, err := r.buffer.Write(r.waiting[r.next]); err != nil {
			return err
		}
		delete(r.waiting, r.next)
	}
	return nil
}

// Close completes the file. Runs that were not ended are dropped. Runs that waited for a run that never came are
// written in order.
func (r *Recorder) Close() error {
	if err := r.takeBack(); err != nil {
		return errors.Join(err, r.file.Close())
	}
	var errs []error
	for _, ordinal := range slices.Sorted(maps.Keys(r.waiting)) {
		_, err := r.buffer.Write(r.waiting[ordinal])
		errs = append(errs, err)
	}
	return errors.Join(append(errs, r.buffer.Flush(), r.file.Close())...)
}

// takeBack removes the part of a run that was already written, because the run was not ended.
func (r *Recorder) takeBack() error {
	if r.begun == nil {
		return nil
	}
	if err := r.buffer.Flush(); err != nil {
		return err
	}
	return r.file.Rewind(*r.begun)
}

// Save writes the document and the runs of a bench to a stored run's folder.
func Save(w *store.Writer, bench *results.Bench, runs []StoredRun) error {
	document := runsDocument{Schema: runsSchema, Runs: slices.Clone(runs)}
	for i := range document.Runs {
		k := &document.Runs[i]
		if d := k.Run.Declared; d != nil {
			k.System = d.System
		}
		if l := k.Run.Counters.Ledger(); l != nil {
			document.Checks = mergeLists(document.Checks, l.Rules())
		}
	}
	for name, document := range map[string]any{BenchFile: bench, RunsFile: document} {
		raw, err := json.Marshal(document)
		if err != nil {
			return fmt.Errorf("%s can't be written: %w", name, err)
		}
		if err := w.Put(name, append(raw, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// mergeLists appends those elements of more to list that are not in it, and returns the result.
func mergeLists(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// samplesPerConfiguration is the number of sample frames per configuration in a loaded result. They are the first
// frames of the configuration's first run.
const samplesPerConfiguration = 500

// Load reads a stored bench with its runs, in the order in which they were saved. The error matches ErrDocumentOnly if
// no runs were stored.
func Load(f *store.Folder, d Declarations) (*sheets.Result, error) {
	if HasDocumentOnly(f) {
		return nil, fmt.Errorf("%w: %s has no single runs; print it with olafctl runs show %s, or write it with "+
			"olafctl export", ErrDocumentOnly, f.ID(), f.ID())
	}
	r := &sheets.Result{Bench: new(results.Bench), RawRows: "olafctl export " + f.ID() + " --parquet DIR"}
	if err := f.ReadJSON(BenchFile, r.Bench); err != nil {
		return nil, err
	}
	stored, err := Runs(f, d)
	if err != nil {
		return nil, err
	}
	declareRows(r.Bench, stored, d)
	rejudgeRows(r.Bench)
	first := map[uint32]*results.Run{}
	seen := map[configuration]bool{}
	for i := range stored {
		run := &stored[i].Run
		r.Runs = append(r.Runs, *run)
		r.Delivered += run.Counters.Of("received")
		if c := configurationOf(run); !seen[c] {
			seen[c] = true
			first[stored[i].Ordinal] = run
		}
	}
	r.Samples, err = readSamples(f, first)
	return r, err
}

// rejudgeRows replaces the verdicts in a document of the first version with verdicts under the current rules, and adds
// a statement saying so. It returns the number of rows judged.
func rejudgeRows(b *results.Bench) int {
	if b.Schema == results.BenchSchema {
		return 0
	}
	b.Schema, b.Paper = results.BenchSchema, paper.JudgeAgain(b.Paper, b)
	if len(b.Paper) > 0 {
		b.Statements = append(b.Statements,
			"stored by an earlier olafctl and judged again: the verdicts follow today's rules, the numbers are "+
				"as stored")
	}
	return len(b.Paper)
}

// Runs reads the runs of a stored bench. Counters and metrics are declared as in this version of olafctl.
func Runs(f *store.Folder, d Declarations) ([]StoredRun, error) {
	document, err := readRuns(f)
	if err != nil {
		return nil, err
	}
	for i := range document.Runs {
		k := &document.Runs[i]
		k.Run.Declare(d.of(k))
		k.Measure.Declared = k.Run.Declared
		if k.checks = document.Checks; k.checks == nil {
			for _, id := range k.Run.Counters.Ledger().Identities {
				k.checks = append(k.checks, id.String())
			}
		}
	}
	return document.Runs, nil
}

func readRuns(f *store.Folder) (*runsDocument, error) {
	document := new(runsDocument)
	if err := f.ReadJSON(RunsFile, document); err != nil {
		return nil, err
	}
	if document.Schema != runsSchema {
		return nil, fmt.Errorf("%w: %s of %s is %q; update olafctl", store.ErrNewer, RunsFile, f.ID(), document.Schema)
	}
	return document, nil
}

// declareRows sets the declaration of each row in a stored bench to the declaration of the row's runs.
func declareRows(bench *results.Bench, stored []StoredRun, d Declarations) {
	for i := range bench.Rows {
		row := &bench.Rows[i]
		declared := d("")
		for k := range stored {
			if configurationOf(&stored[k].Run) == (configuration{row.Queue, row.OutRateBPS}) {
				declared = d.of(&stored[k])
				break
			}
		}
		row.Declare(declared)
	}
}

type configuration struct {
	queue string
	rate  int64
}

func configurationOf(r *results.Run) configuration { return configuration{r.Queue, r.OutRateBPS} }

// readSamples returns the first frames of each of the given runs.
func readSamples(f *store.Folder, of map[uint32]*results.Run) (out []sheets.Sample, err error) {
	taken := map[uint32]int{}
	complete := 0
	err = VisitObservations(f, func(ordinal uint32, o *olaf.Observation) bool {
		run := of[ordinal]
		if run == nil || taken[ordinal] == samplesPerConfiguration {
			return complete < len(of)
		}
		if taken[ordinal]++; taken[ordinal] == samplesPerConfiguration {
			complete++
		}
		sample := sheets.Sample{Queue: run.Queue, OutRateBPS: run.OutRateBPS, Run: run.Index, Observation: *o}
		sample.Observation.Contributors = slices.Clone(o.Contributors)
		out = append(out, sample)
		return true
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return out, err
}

// VisitObservations calls visit for every stored frame, run by run, until visit returns false. If no observations were
// stored, the error matches fs.ErrNotExist.
func VisitObservations(f *store.Folder, visit func(ordinal uint32, o *olaf.Observation) bool) error {
	file, err := f.Open(ObservationsFile)
	if err != nil {
		return err
	}
	defer file.Close()
	reader := obsfile.NewReader(bufio.NewReaderSize(file, 1<<16))
	var o olaf.Observation
	for {
		ordinal, err := reader.Next(&o)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", store.ErrDamaged, f.ID(), err)
		}
		if !visit(ordinal, &o) {
			return nil
		}
	}
}
