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

// ending stores a bench like one on a card, with all frames, and stops the bench after a number of events.
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

// endEverywhere ends a bench at every event of its stream, beginning with event number first, verifies the stored data
// each time, and fails if no bench was partial. measure runs the bench. If brief is set, endEverywhere stops at the
// first bench that reached its end. It returns the number of frames of unfinished seeds.
func endEverywhere(t *testing.T, first int, brief bool, measure func(context.Context, *Stream) (*Measurement, error)) (unfinished int64) {
	t.Helper()
	st, err := store.Open(t.TempDir())
	must(t, err)
	defer st.Close()
	partial := 0
	for n := first; ; n++ {
		ctx, stop := context.WithCancel(t.Context())
		k := &ending{Keeper: NewKeeper(st, time.Unix(int64(1_700_000_000+n), 0)), stop: stop}
		k.left.Store(int64(n))
		report, err := measure(ctx, NewStream(k))
		stop()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("event %d: %v", n, err)
		}
		if report == nil { // interrupted before the first run, so nothing is stored
			must(t, k.Abort())
			continue
		}
		id, err := k.Finish(report)
		if err != nil {
			t.Fatalf("event %d: %v", n, err)
		}
		f, err := st.Load(id)
		must(t, err)
		proof, err := archive.Verify(f, system.All().FindDeclaration)
		if err != nil {
			t.Fatalf("ended at event %d: %v", n, err)
		}
		if report.Outcome.Partial {
			partial++
		}
		unfinished += proof.Unfinished
		if k.left.Load() > 0 || brief && !report.Outcome.Partial {
			break
		}
	}
	if partial == 0 {
		t.Error("no bench ended early: nothing was tested")
	}
	return unfinished
}

// TestBenchStoppedAtAnyEventVerifies checks for every event of a bench's stream that the stored data verifies if the
// bench ends there.
func TestBenchStoppedAtAnyEventVerifies(t *testing.T) {
	s := usualSpec()
	s.Workload.UpdatesPerWorker, s.Runs = 4, 2
	unfinished := endEverywhere(t, 1, false, func(ctx context.Context, to *Stream) (*Measurement, error) {
		return MeasureSpec(ctx, s, Options{Stream: to})
	})
	if unfinished == 0 {
		t.Error("no bench left frames of an unfinished seed: nothing was tested")
	}
}
