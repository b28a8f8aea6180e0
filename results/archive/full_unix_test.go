//go:build unix

package archive

import (
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf/internal/test/fulldisk"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/store"
)

// TestFullDisk fills the disk at every byte of a bench: frames, runs and document are stored, or an error reports that
// they are not.
func TestFullDisk(t *testing.T) {
	if fulldisk.RunInProcess(t) {
		return
	}
	run, observations := measured(1)
	kept := []StoredRun{{Ordinal: 0, Measure: keptRun(0).Measure, Run: run}, {Ordinal: 1, Measure: keptRun(0).Measure,
		Run: run}}
	bench := &results.Bench{Schema: results.BenchSchema,
		Statements: []string{strings.Repeat("a longer document than its frames ", 10_000)}}
	refused := 0
	for room := int64(0); ; room += room/8 + 1000 {
		r := record(t, opened(t))
		var err error
		fulldisk.WithLimit(t, room, func() {
			for ordinal := range uint32(2) {
				err = errors.Join(err, r.Observe(ordinal, observations), r.EndRun(ordinal))
			}
			err = errors.Join(err, r.Close(), Save(r.w, bench, kept))
		})
		if err != nil {
			refused++
			if !strings.Contains(err.Error(), "the run can't be stored") || !strings.Contains(err.Error(),
				"olafctl runs prune") {
				t.Fatalf("with room for %d bytes: %v", room, err)
			}
			continue
		}
		f := finished(t, r.s, r.w, store.Manifest{Experiment: "table1"})
		if _, err := Verify(f, toy.Declarations); err != nil {
			t.Errorf("with room for %d bytes: %v", room, err)
		}
		break
	}
	if refused < 10 {
		t.Errorf("only %d sizes were too small", refused)
	}
}

// TestFullDiskInALongRun checks that a long run without room reports this while it continues, and that removing its
// frames does not hide it.
func TestFullDiskInALongRun(t *testing.T) {
	if fulldisk.RunInProcess(t) {
		return
	}
	for _, room := range []int64{0, 1000, chunk, chunk + 1000} {
		r := record(t, opened(t))
		r.whole(0, oneFrame) // waits in the buffer
		var went, closed error
		fulldisk.WithLimit(t, room, func() {
			for n := 0; n < 1000*thousand && went == nil; n += thousand {
				went = r.Observe(1, thousandFrames(n))
			}
			closed = r.Close()
		})
		if went == nil || closed == nil || !strings.Contains(went.Error(), "the run can't be stored") {
			t.Errorf("with room for %d bytes: %v, closed %v", room, went, closed)
		}
	}
}

// TestFullDiskAtTheEndOfARun checks that the end of a run without room returns an error, and so does the end of the run
// that it waited for.
func TestFullDiskAtTheEndOfARun(t *testing.T) {
	if fulldisk.RunInProcess(t) {
		return
	}
	for _, waits := range []bool{false, true} {
		r := record(t, opened(t))
		last := uint32(0)
		if waits {
			last = 1
		}
		r.long(last, 50*thousand) // less than the amount that is written before the end
		var err error
		fulldisk.WithLimit(t, 0, func() {
			if err = r.EndRun(last); waits {
				if err != nil {
					t.Errorf("a run that waits for its turn: %v", err)
				}
				err = r.EndRun(0)
			}
		})
		if err == nil || !strings.Contains(err.Error(), "the run can't be stored") {
			t.Errorf("waits %t: %v", waits, err)
		}
	}
}
