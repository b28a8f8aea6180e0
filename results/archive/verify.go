package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/store"
)

// Proof is the result of a successful verification.
type Proof struct {
	Files        int   `json:"files"`        // number of files whose digests agree
	Observations int64 `json:"observations"` // number of observations that were measured again
	Runs         int   `json:"runs"`         // number of runs whose recomputed numbers agree
	Rows         int   `json:"rows"`
	Comparisons  int   `json:"comparisons"`
	Paper        int   `json:"paper"`
	// Anew counts lines that were stored with verdicts by earlier rules and are judged again. Dropped counts such lines
	// whose claims were removed.
	Anew    int `json:"judged_anew,omitempty"`
	Dropped int `json:"dropped,omitempty"`
	// Earlier counts lines of a document without runs. They keep their verdicts by earlier rules.
	Earlier int `json:"earlier,omitempty"`
	// Unfinished counts frames of seeds that did not finish because the bench ended early. They are not part of any
	// number.
	Unfinished int64 `json:"unfinished_frames,omitempty"`
	// Raw is false if the run was stored without its frames, so that only digests and statistics were checked.
	Raw bool `json:"raw"`
	// New lists counters and metrics that the olafctl that stored the runs did not have. Unknown lists those that this
	// olafctl cannot compute. Doubts lists violations of new rules.
	New     []string `json:"new,omitempty"`
	Unknown []string `json:"unknown,omitempty"`
	Doubts  []string `json:"doubts,omitempty"`
}

// Verify checks a stored bench. It compares every file with its digest, every run's numbers with its frames, and the
// document's rows, comparisons and paper lines with the runs. Only names that are in the stored document are compared.
// If anything differs, the error names it and matches store.ErrDamaged or ErrMismatch.
func Verify(f *store.Folder, d Declarations) (*Proof, error) {
	if err := f.VerifyDigests(); err != nil {
		return nil, err
	}
	digests, err := f.Digests()
	if err != nil {
		return nil, err
	}
	proof := &Proof{Files: len(digests)}
	if HasDocumentOnly(f) {
		proof.Earlier, err = earlierVerdicts(f)
		return proof, err // there is nothing to compute it from
	}
	stored, err := Runs(f, d)
	if err != nil {
		return nil, err
	}
	for i := range stored {
		proof.addNames(&stored[i], d)
	}
	switch err := proof.checkRuns(f, stored); {
	case errors.Is(err, fs.ErrNotExist):
		// The runs were stored without frames, which is allowed: the digests show that no frames were lost since.
	case err != nil:
		return nil, err
	default:
		proof.Raw = true
	}
	var bench results.Bench
	if err := f.ReadJSON(BenchFile, &bench); err != nil {
		return nil, err
	}
	return proof, proof.checkDocument(f, &bench, stored, d)
}

// earlierVerdicts returns the number of lines in a document that have no basis. Documents of the first version have
// such lines.
func earlierVerdicts(f *store.Folder) (n int, err error) {
	var document struct {
		Paper []results.PaperRow `json:"paper"`
	}
	err = f.ReadJSON(DocumentFile, &document)
	for i := range document.Paper {
		if document.Paper[i].Basis == "" {
			n++
		}
	}
	return n, err
}

// checkRuns recomputes every run from its frames and compares the results.
func (p *Proof) checkRuns(f *store.Folder, stored []StoredRun) error {
	byOrdinal := map[uint32]*StoredRun{}
	for i := range stored {
		byOrdinal[stored[i].Ordinal] = &stored[i]
	}
	collector := results.NewCollector(results.Config{})
	var current *StoredRun
	unfinished := -1 // ordinal of a run of an unfinished seed
	finish := func() error {
		if current == nil {
			return nil
		}
		p.Runs++
		return p.sameRun(f, current, collector.Finish(current.Run.Counters))
	}
	listed := maps.Clone(byOrdinal)
	var failed error
	err := VisitObservations(f, func(ordinal uint32, o *olaf.Observation) bool {
		if current == nil && unfinished != int(ordinal) || current != nil && ordinal != current.Ordinal {
			if failed = finish(); failed != nil {
				return false
			}
			current, unfinished = byOrdinal[ordinal], -1
			switch {
			case current != nil:
				delete(byOrdinal, ordinal)
				collector.Reset(current.Measure)
			case f.Manifest.Partial && listed[ordinal] == nil:
				unfinished = int(ordinal)
			default:
				failed = fmt.Errorf("%w: %s: frames of a run %d that is not listed, or twice", ErrMismatch, f.ID(), ordinal)
				return false
			}
		}
		if current == nil {
			p.Unfinished++
			return true
		}
		p.Observations++
		collector.Observe(o)
		return true
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if err := finish(); err != nil {
		return err
	}
	for i := range stored { // runs without deliveries or without stored frames
		k := byOrdinal[stored[i].Ordinal]
		if k == nil || k.NoFrames {
			continue
		}
		collector.Reset(k.Measure)
		p.Runs++
		if err := p.sameRun(f, k, collector.Finish(k.Run.Counters)); err != nil {
			return err
		}
	}
	return nil
}

// addNames records counter and metric names that were added since the run was stored, and names in the run that are no
// longer known.
func (p *Proof) addNames(k *StoredRun, d Declarations) {
	names, unknown := k.Run.New(d.of(k))
	p.New, p.Unknown = mergeLists(p.New, names), mergeLists(p.Unknown, unknown)
}

// sameRun compares a stored run with the same run computed again. Some values are copied from the stored run because
// the collector cannot know them. These are its names, the testbed's reasons for invalidity and for withheld ages, and
// the twin's ages.
func (p *Proof) sameRun(f *store.Folder, k *StoredRun, again results.Run) error {
	stored := &k.Run
	name := fmt.Sprintf("run %d of %s at %s", stored.Index, stored.Queue, olaf.Rate(stored.OutRateBPS))
	again.Queue, again.OutRateBPS, again.Index, again.Seed = stored.Queue, stored.OutRateBPS, stored.Index, stored.Seed
	doubts, newer := k.Doubts(&again)
	if len(doubts) > 0 {
		return mismatchError(f, "%s was stored as valid, but %s", name, doubts[0])
	}
	if newer != "" {
		p.Doubts = append(p.Doubts, name+": "+newer)
	}
	switch {
	case stored.Metrics.Has(results.AbovePath):
		again.KeepAbovePath()
	case stored.Withheld != "":
		again.Withhold(stored.Withheld)
	}
	again.Recall(stored)
	if why := stored.Differs(&again); why != "" {
		return mismatchError(f, "%s: %s", name, why)
	}
	return nil
}

func mismatchError(f *store.Folder, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s; run it again, or remove it with olafctl runs rm %s", ErrMismatch, f.ID(),
		fmt.Sprintf(format, args...), f.ID())
}

// checkDocument recomputes rows, comparisons and paper lines from the runs and compares them with the document.
func (p *Proof) checkDocument(f *store.Folder, bench *results.Bench, stored []StoredRun, d Declarations) error {
	groups := map[configuration][]results.Run{}
	for i := range stored {
		c := configurationOf(&stored[i].Run)
		groups[c] = append(groups[c], stored[i].Run)
	}
	declareRows(bench, stored, d)
	for i := range bench.Rows {
		stored := &bench.Rows[i]
		again := results.Summarise(ofRow(stored), groups[configuration{stored.Queue, stored.OutRateBPS}])
		again.Queue, again.OutRateBPS = stored.Queue, stored.OutRateBPS
		if why := stored.Differs(&again); why != "" {
			return mismatchError(f, "the row of %s at %s: %s", stored.Queue, olaf.Rate(stored.OutRateBPS), why)
		}
		p.Rows++
	}
	for i := range bench.Comparisons {
		c := &bench.Comparisons[i]
		again := results.CompareRuns(groups[configuration{c.Queue, c.OutRateBPS}],
			groups[configuration{c.Versus, c.OutRateBPS}])
		if why := c.Differs(&again); why != "" {
			return mismatchError(f, "the comparison of %s with %s at %s: %s", c.Queue, c.Versus, olaf.Rate(c.OutRateBPS), why)
		}
		p.Comparisons++
	}
	return p.checkPaper(f, bench)
}

// ofRow returns a declaration of exactly the statistics in a stored row.
func ofRow(row *results.Row) *metric.Declaration {
	d := new(metric.Declaration)
	for i := range row.Stats {
		if m := *row.Stats[i].Metric; m.IsDeclared() {
			m.Aside = false
			d.Metrics = append(d.Metrics, &m)
		}
	}
	return d
}

// checkPaper computes the verdict of each paper line again if the bench itself measured its number, and compares it
// with the stored verdict.
func (p *Proof) checkPaper(f *store.Folder, bench *results.Bench) error {
	ours := paper.FromBench(bench)
	for i := range bench.Paper {
		row := &bench.Paper[i]
		id := paper.Canonical(row.ID) // the run may be older than the names of papers
		again, measured := ours[id]
		if !measured || row.Kind == "" && !row.Published.Known() {
			continue // a trend of the first version records only whether it held
		}
		// Verdicts and notes may have been improved since; the numbers must agree.
		if why := results.Difference(row.Ours, again.Statistic); why != "" {
			return mismatchError(f, "the paper's %s: %s", row.ID, why)
		}
		p.Paper++
	}
	stored := len(bench.Paper)
	if p.Anew = rejudgeRows(bench); p.Anew > 0 {
		p.Dropped = stored - p.Anew
	}
	return nil
}
