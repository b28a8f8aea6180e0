package realtime

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
)

// TestStalledPacer stops the output in the middle of a run, as a busy machine does. It checks that ages are withheld
// with the reason and that counts are unaffected.
func TestStalledPacer(t *testing.T) {
	c := open(t, backends[0])
	const updates = 1000                                                                    // one second, because a busy machine delays the stalling thread
	workload{workers: 2, clusters: 2, updates: updates, gap: 250_000, size: 256}.load(t, c) // 1 ms apart
	configure(t, c, "olaf", 2*olaf.Mbps)                                                    // 1.1 ms per frame: the output is always busy, so a stall makes it late
	ctx, sent := context.WithCancel(t.Context())
	defer sent()
	stalled := make(chan struct{})
	go func() {
		defer close(stalled)
		for c.pacing().Frames < 50 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		c.mu.Lock()
		time.Sleep(50 * time.Millisecond)
		c.mu.Unlock()
	}()
	n := fire(t, c)
	sent()
	<-stalled
	p := c.Pacing()
	if !strings.Contains(p.Withheld, "the pacer") || p.Stalls == 0 || p.LatenessNS.Max < 30_000_000 {
		t.Errorf("%+v", p)
	}
	if n.Queue.In != updates || len(c.Faults()) > 0 {
		t.Errorf("%+v, %q", n.Queue, c.Faults())
	}
}

// TestIdleOutput delays an idle output when a frame arrives. It checks that the frame is late, although no frame before
// it was.
func TestIdleOutput(t *testing.T) {
	c := open(t, backends[0])
	w := workload{workers: 2, clusters: 2, updates: 40, gap: 2_500_000, size: 256} // 10 ms apart
	for held := false; !held; {                                                    // repeat if this test was delayed before the last update was sent
		w.load(t, c)
		configure(t, c, "fifo", 100*olaf.Mbps) // 20 µs per frame
		held = heldUp(t, c, uint64(w.updates))
	}
	if p := c.Pacing(); p.Stalls == 0 || p.LatenessNS.Max < 10_000_000 || p.Withheld == "" {
		t.Errorf("%+v", p)
	}
}

// heldUp sends updates, and stops the output while three of them arrive. It reports whether that many remained.
func heldUp(t *testing.T, c *Card, updates uint64) bool {
	t.Helper()
	held := make(chan bool, 1)
	go func() {
		counted := func() uint64 {
			n, _ := c.generator.readCounters(false)
			return n.SentPackets
		}
		for counted() < 10 && t.Context().Err() == nil {
			napFor(napNS)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		until := counted() + 3
		for counted() < min(until, updates) && t.Context().Err() == nil {
			napFor(napNS)
		}
		held <- until <= updates
	}()
	fire(t, c)
	return <-held
}

// TestLogOverflow gives the decision log too little room. It checks that the comparison is void, with the reason, and
// that the run is not invalid because of it.
func TestLogOverflow(t *testing.T) {
	b := backends[0]
	b.LogBytes = 1 << 12
	c := open(t, b)
	workload{workers: 2, clusters: 2, updates: 500, gap: 2_500, size: 256}.load(t, c) // 10 µs apart, while the log is not read for 5 ms
	configure(t, c, "olaf", 100*olaf.Mbps)
	n := fire(t, c)
	d, err := c.Decisions()
	must(t, err)
	if !strings.Contains(d.Void, "the log had no room for") || d.Differ() || n.Queue.In != 500 {
		t.Errorf("%+v, %+v", d, n.Queue)
	}
}
