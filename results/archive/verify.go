package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
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
	// Raw is false when the run was stored without its frames, so that only digests and statistics could be checked.
	Raw bool `json:"raw"`
}

// Verify proves a stored bench: every file by its digest, every run's numbers from its frames, and the document's rows,
// comparisons and paper lines from the runs. A difference is an error that names it and matches store.ErrDamaged or
// ErrMismatch.
func Verify(f *store.Folder) (*Proof, error) {
	if err := f.VerifyDigests(); err != nil {
		return nil, err
	}
	digests, err := f.Digests()
	if err != nil {
		return nil, err
	}
	proof := &Proof{Files: len(digests)}
	if HasDocumentOnly(f) {
		return proof, nil // nothing that it could be computed from again
	}
	kept, err := Runs(f)
	if err != nil {
		return nil, err
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
	return proof, proof.document(f, &bench, kept)
}

// runs measures every run again from its frames.
func (p *Proof) runs(f *store.Folder, kept []Kept) error {
	byOrdinal := map[uint32]*Kept{}
	for i := range kept {
		byOrdinal[kept[i].Ordinal] = &kept[i]
	}
	collector := results.NewCollector(results.Config{})
	var current *Kept
	finish := func() error {
		if current == nil {
			return nil
		}
		p.Runs++
		return sameRun(f, current, collector.Finish(current.Run.Counters))
	}
	var failed error
	err := Observations(f, func(ordinal uint32, o *olaf.Observation) bool {
		if current == nil || ordinal != current.Ordinal {
			if failed = finish(); failed != nil {
				return false
			}
			if current = byOrdinal[ordinal]; current == nil {
				failed = fmt.Errorf("%w: %s: frames of a run %d that is not listed, or twice", ErrMismatch, f.ID(), ordinal)
				return false
			}
			delete(byOrdinal, ordinal)
			collector.Reset(current.Measure)
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
	for _, k := range byOrdinal { // runs that delivered nothing, or whose frames were not kept
		if k.NoFrames {
			continue
		}
		collector.Reset(k.Measure)
		p.Runs++
		if err := sameRun(f, k, collector.Finish(k.Run.Counters)); err != nil {
			return err
		}
	}
	return nil
}

// sameRun compares what was measured again. What the collector can't know is taken from the stored run: its names, why the
// testbed called it invalid, and why it withheld the ages.
func sameRun(f *store.Folder, k *Kept, again results.Run) error {
	stored := k.Run
	again.Queue, again.OutRateBPS, again.Index, again.Seed = stored.Queue, stored.OutRateBPS, stored.Index, stored.Seed
	for _, why := range again.Invalid {
		if !slices.Contains(stored.Invalid, why) {
			return mismatch(f, "run %d of %s at %s was stored as valid, but %s", stored.Index, stored.Queue, olaf.Rate(stored.OutRateBPS), why)
		}
	}
	again.Invalid = stored.Invalid
	if stored.Withheld != "" {
		again.Withhold(stored.Withheld)
	}
	return same(f, fmt.Sprintf("run %d of %s at %s", stored.Index, stored.Queue, olaf.Rate(stored.OutRateBPS)), stored, again)
}

func mismatch(f *store.Folder, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s; run it again, or remove it with olafctl runs rm %s", ErrMismatch, f.ID(), fmt.Sprintf(format, args...), f.ID())
}

// same compares two values by their documents.
func same(f *store.Folder, what string, stored, again any) error {
	a, errA := json.Marshal(stored)
	b, errB := json.Marshal(again)
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		at := 0
		for at < min(len(a), len(b)) && a[at] == b[at] {
			at++
		}
		from := max(at-40, 0)
		return mismatch(f, "%s: stored …%s…, computed …%s…", what, clip(a, from), clip(b, from))
	}
	return nil
}

func clip(b []byte, from int) []byte { return b[min(from, len(b)):min(from+80, len(b))] }

// document computes rows, comparisons and paper lines again from the runs.
func (p *Proof) document(f *store.Folder, bench *results.Bench, kept []Kept) error {
	groups := map[configuration][]results.Run{}
	for i := range kept {
		c := configurationOf(&kept[i].Run)
		groups[c] = append(groups[c], kept[i].Run)
	}
	for i := range bench.Rows {
		stored := &bench.Rows[i]
		again := results.Summarise(groups[configuration{stored.Queue, stored.OutRateBPS}])
		again.Queue, again.OutRateBPS = stored.Queue, stored.OutRateBPS
		if err := same(f, fmt.Sprintf("the row of %s at %s", stored.Queue, olaf.Rate(stored.OutRateBPS)), stored, &again); err != nil {
			return err
		}
		p.Rows++
	}
	for i := range bench.Comparisons {
		c := &bench.Comparisons[i]
		again := results.CompareRuns(groups[configuration{c.Queue, c.OutRateBPS}], groups[configuration{c.Versus, c.OutRateBPS}])
		if err := same(f, fmt.Sprintf("the comparison of %s with %s at %s", c.Queue, c.Versus, olaf.Rate(c.OutRateBPS)), c, &again); err != nil {
			return err
		}
		p.Comparisons++
	}
	return p.paper(f, bench)
}

// paper judges again every line that the bench itself measured.
func (p *Proof) paper(f *store.Folder, bench *results.Bench) error {
	ours := paper.FromBench(bench)
	again := map[string]results.PaperRow{}
	for _, row := range paper.Compare(ours) {
		again[row.ID] = row
	}
	for i := range bench.Paper {
		row := &bench.Paper[i]
		if _, measured := ours[row.ID]; !measured {
			continue
		}
		// Tolerances and notes may have been improved since; the numbers may not.
		computed := again[row.ID]
		if err := same(f, "the paper's "+row.ID, row.Ours, computed.Ours); err != nil {
			return err
		}
		p.Paper++
	}
	return nil
}
