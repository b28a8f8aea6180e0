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

// Proof is what a verification found in order.
type Proof struct {
	Files        int   `json:"files"`        // whose digests agree
	Observations int64 `json:"observations"` // that were measured again
	Runs         int   `json:"runs"`         // whose numbers came out the same
	Rows         int   `json:"rows"`
	Comparisons  int   `json:"comparisons"`
	Paper        int   `json:"paper"`
	// Anew counts lines that were kept with verdicts of earlier rules and are judged anew; Dropped those of claims that are no
	// longer made.
	Anew    int `json:"judged_anew,omitempty"`
	Dropped int `json:"dropped,omitempty"`
	// Earlier counts lines of a document that was kept alone, whose verdicts are of earlier rules and stay so.
	Earlier int `json:"earlier,omitempty"`
	// Unfinished counts frames of seeds that were not finished when the bench ended early. They enter no number.
	Unfinished int64 `json:"unfinished_frames,omitempty"`
	// Raw is false when the run was stored without its frames, so that only digests and statistics could be checked.
	Raw bool `json:"raw"`
	// New are counters and metrics that this olafctl has and the one that kept the runs had not; Unknown are those of the
	// runs that this one can't compute. Doubts say what speaks against runs by rules that are new.
	New     []string `json:"new,omitempty"`
	Unknown []string `json:"unknown,omitempty"`
	Doubts  []string `json:"doubts,omitempty"`
}

// Verify proves a stored bench: every file by its digest, every run's numbers from its frames, and the document's rows,
// comparisons and paper lines from the runs. Numbers are compared over the names that are stored. A difference is an error
// that names it and matches store.ErrDamaged or ErrMismatch.
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
		return proof, err // nothing that it could be computed from again
	}
	kept, err := Runs(f, d)
	if err != nil {
		return nil, err
	}
	for i := range kept {
		proof.news(&kept[i], d)
	}
	switch err := proof.runs(f, kept); {
	case errors.Is(err, fs.ErrNotExist):
		// Stored without frames, which is allowed: the digests say that none was lost since.
	case err != nil:
		return nil, err
	default:
		proof.Raw = true
	}
	var bench results.Bench
	if err := f.ReadJSON(BenchFile, &bench); err != nil {
		return nil, err
	}
	return proof, proof.document(f, &bench, kept, d)
}

// earlierVerdicts counts the lines of a document of its own that say no basis, as those of the first version.
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

// runs measures every run again from its frames.
func (p *Proof) runs(f *store.Folder, kept []Kept) error {
	byOrdinal := map[uint32]*Kept{}
	for i := range kept {
		byOrdinal[kept[i].Ordinal] = &kept[i]
	}
	collector := results.NewCollector(results.Config{})
	var current *Kept
	unfinished := -1 // the ordinal of a run of an unfinished seed
	finish := func() error {
		if current == nil {
			return nil
		}
		p.Runs++
		return p.sameRun(f, current, collector.Finish(current.Run.Counters))
	}
	listed := maps.Clone(byOrdinal)
	var failed error
	err := Observations(f, func(ordinal uint32, o *olaf.Observation) bool {
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
	for i := range kept { // runs that delivered nothing, or whose frames were not kept
		k := byOrdinal[kept[i].Ordinal]
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

// news notes what is new since the run was kept, and what this olafctl doesn't know of it.
func (p *Proof) news(k *Kept, d Declarations) {
	names, unknown := k.Run.New(d.of(k))
	p.New, p.Unknown = union(p.New, names), union(p.Unknown, unknown)
}

// sameRun compares what was measured again. What the collector can't know is taken from the stored run: its names, why the
// testbed called it invalid, why it withheld the ages, and what it was set beside.
func (p *Proof) sameRun(f *store.Folder, k *Kept, again results.Run) error {
	stored := &k.Run
	name := fmt.Sprintf("run %d of %s at %s", stored.Index, stored.Queue, olaf.Rate(stored.OutRateBPS))
	again.Queue, again.OutRateBPS, again.Index, again.Seed = stored.Queue, stored.OutRateBPS, stored.Index, stored.Seed
	doubts, newer := k.Doubts(&again)
	if len(doubts) > 0 {
		return mismatch(f, "%s was stored as valid, but %s", name, doubts[0])
	}
	if newer != "" {
		p.Doubts = append(p.Doubts, name+": "+newer)
	}
	if stored.Withheld != "" {
		again.Withhold(stored.Withheld)
	}
	again.Recall(stored)
	if why := stored.Differs(&again); why != "" {
		return mismatch(f, "%s: %s", name, why)
	}
	return nil
}

func mismatch(f *store.Folder, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s; run it again, or remove it with olafctl runs rm %s", ErrMismatch, f.ID(), fmt.Sprintf(format, args...), f.ID())
}

// document computes rows, comparisons and paper lines again from the runs.
func (p *Proof) document(f *store.Folder, bench *results.Bench, kept []Kept, d Declarations) error {
	groups := map[configuration][]results.Run{}
	for i := range kept {
		c := configurationOf(&kept[i].Run)
		groups[c] = append(groups[c], kept[i].Run)
	}
	declareRows(bench, kept, d)
	for i := range bench.Rows {
		stored := &bench.Rows[i]
		again := results.Summarise(ofRow(stored), groups[configuration{stored.Queue, stored.OutRateBPS}])
		again.Queue, again.OutRateBPS = stored.Queue, stored.OutRateBPS
		if why := stored.Differs(&again); why != "" {
			return mismatch(f, "the row of %s at %s: %s", stored.Queue, olaf.Rate(stored.OutRateBPS), why)
		}
		p.Rows++
	}
	for i := range bench.Comparisons {
		c := &bench.Comparisons[i]
		again := results.CompareRuns(groups[configuration{c.Queue, c.OutRateBPS}], groups[configuration{c.Versus, c.OutRateBPS}])
		if why := c.Differs(&again); why != "" {
			return mismatch(f, "the comparison of %s with %s at %s: %s", c.Queue, c.Versus, olaf.Rate(c.OutRateBPS), why)
		}
		p.Comparisons++
	}
	return p.paper(f, bench)
}

// ofRow declares a statistic of everything that a stored row has one of, and of nothing else.
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

// paper judges again every line that the bench itself measured.
func (p *Proof) paper(f *store.Folder, bench *results.Bench) error {
	ours := paper.FromBench(bench)
	for i := range bench.Paper {
		row := &bench.Paper[i]
		id := paper.Canonical(row.ID) // a run may be older than papers' names
		again, measured := ours[id]
		if !measured || row.Kind == "" && !row.Published.Known() {
			continue // a trend of the first version says only whether it held
		}
		// Verdicts and notes may have been improved since; the numbers may not.
		if why := results.Difference(row.Ours, again.Statistic); why != "" {
			return mismatch(f, "the paper's %s: %s", row.ID, why)
		}
		p.Paper++
	}
	stored := len(bench.Paper)
	if p.Anew = judgeAnew(bench); p.Anew > 0 {
		p.Dropped = stored - p.Anew
	}
	return nil
}
