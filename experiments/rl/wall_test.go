package rl

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/olafctl/olaf/pktgen/trace"
)

// ticking is a clock that advances whenever it is read.
type ticking struct{ now, slept atomic.Int64 }

func (c *ticking) NowNS() int64                      { return c.now.Add(1000) }
func (c *ticking) ThreadCPUNS() int64                { return c.now.Add(10) }
func (c *ticking) Sleep(_ context.Context, ns int64) { c.slept.Add(ns); c.now.Add(ns) }

func TestLiveTrainingMakesAValidTrace(t *testing.T) {
	c := small()
	c.Iterations = 2
	h, err := TraceHeader(&c, trace.Wall, false)
	if err != nil {
		t.Fatal(err)
	}
	w, err := trace.NewWriter(discard{}, h)
	if err != nil {
		t.Fatal(err)
	}
	clock := &ticking{}
	out, err := TrainLive(context.Background(), c, clock, writes{w})
	if err != nil {
		t.Fatal(err)
	}
	if w.Rows() != uint64(c.Workers*c.Iterations) || out.Servers[0].Versions != w.Rows() || clock.slept.Load() <= 0 {
		t.Errorf("%d rows, %d versions, slept %d ns", w.Rows(), out.Servers[0].Versions, clock.slept.Load())
	}
}

type writes struct{ to *trace.Writer }

func (w writes) OnUpdate(u *trace.Update, _ *Weights) error { return w.to.Write(u) }

func TestLiveTrainingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &stopper{after: 3, stop: cancel}
	if _, err := TrainLive(ctx, small(), &ticking{}, r); !errors.Is(err, context.Canceled) || r.seen != 3 {
		t.Errorf("%d updates, error %v", r.seen, err)
	}
}

func TestLiveTrainingRejectsSync(t *testing.T) {
	c := small()
	c.Mode = Sync
	if _, err := TrainLive(context.Background(), c, &ticking{}, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("sync: %v", err)
	}
}
