package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/store"
)

// ending stores a bench like one on a card, with all frames, and ends it after a number of events.
type ending struct {
	*Keeper
	left atomic.Int64 // runs publish events side by side
	stop func()
}

func (e *ending) Event(event Event) error {
	if s, ok := event.(Started); ok {
		s.Repeats = false
		event = s
	}
	if e.left.Add(-1) == 0 {
		e.stop()
	}
	return e.Keeper.Event(event)
}

// TestABenchThatEndsAtAnyEventVerifies ends a bench at every event of its stream and verifies what was stored.
func TestABenchThatEndsAtAnyEventVerifies(t *testing.T) {
	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s := usualSpec()
	s.Workload.UpdatesPerWorker, s.Runs = 4, 2
	partial, unfinished := 0, int64(0)
	for n := 1; ; n++ {
		ctx, stop := context.WithCancel(t.Context())
		k := &ending{Keeper: NewKeeper(st, time.Unix(int64(1_700_000_000+n), 0)), stop: stop}
		k.left.Store(int64(n))
		report, err := MeasureSpec(ctx, s, Options{Stream: NewStream(k)})
		stop()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if report == nil { // before the first run: nothing is stored
			if err := k.Abort(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		id, err := k.Finish(report)
		if err != nil {
			t.Fatalf("event %d: %v", n, err)
		}
		f, err := st.Load(id)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := archive.Verify(f, system.All().FindDeclaration)
		if err != nil {
			t.Fatalf("ended at event %d: %v", n, err)
		}
		if report.Outcome.Partial {
			partial++
		}
		unfinished += proof.Unfinished
		if k.left.Load() > 0 {
			break
		}
	}
	if partial == 0 || unfinished == 0 {
		t.Errorf("%d benches ended early, with %d frames of unfinished seeds: nothing was tested", partial, unfinished)
	}
}
