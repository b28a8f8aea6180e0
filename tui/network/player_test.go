package network

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
)

// jumping is a clock that nobody waits for: time passes by being waited for, and a little with every look.
type jumping struct {
	mu  sync.Mutex
	now time.Time
}

func (c *jumping) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Microsecond)
	return c.now
}

func (c *jumping) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	ch := make(chan time.Time, 1)
	ch <- c.now
	return ch
}

func multihop(t testing.TB, scale netsim.Scale) *netsim.Topology {
	t.Helper()
	topology, err := netsim.Preset("multihop", scale)
	if err != nil {
		t.Fatal(err)
	}
	topology.Duration = 15 * olaf.Second
	return topology
}

func end(t *netsim.Topology) olaf.Time { return olaf.Time(t.Warmup + t.Duration) }

func simulate(t testing.TB, topology *netsim.Topology, w netsim.Watcher) (*netsim.Result, string) {
	t.Helper()
	r, err := netsim.Run(context.Background(), topology, netsim.Options{Watcher: w})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(text)
}

// TestPaceTakesItsTime runs 20 simulated seconds at several speeds against a clock of its own.
func TestPaceTakesItsTime(t *testing.T) {
	topology := multihop(t, netsim.Scale{})
	_, alone := simulate(t, topology, nil)
	for _, speed := range []Speed{0.5, 1, 20} {
		clock := &jumping{now: time.Unix(0, 0)}
		p := NewPlayer(end(topology), Pace{Speed: speed}, clock)
		_, watched := simulate(t, topology, p)
		if watched != alone {
			t.Errorf("at %v the result is another", speed)
		}
		want := 20 / float64(speed)
		if took := clock.Now().Sub(time.Unix(0, 0)).Seconds(); took < 0.99*want || took > 1.05*want {
			t.Errorf("at %v simulated seconds a second 20 took %.2f s, want %.2f", speed, took, want)
		}
		if v := p.Snapshot(); v == nil || v.Now != v.End {
			t.Errorf("at %v the last picture is not of the end", speed)
		}
	}
}

// TestMeddlingChangesNothing lets somebody pause, hurry and look at random while the run goes on.
func TestMeddlingChangesNothing(t *testing.T) {
	topology := multihop(t, netsim.Scale{})
	topology.Control.Enabled = true
	_, alone := simulate(t, topology, nil)
	for seed := range uint64(3) {
		p := NewPlayer(end(topology), Pace{Speed: 5, Paused: true}, &jumping{now: time.Unix(0, 0)})
		over := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			before := olaf.Time(0)
			for {
				select {
				case <-over:
					return
				default:
				}
				if v := p.Snapshot(); v != nil && v.Now < before {
					t.Errorf("time went back from %v to %v", before, v.Now)
				} else if v != nil {
					before = v.Now
				}
				p.SetPace(Pace{Speed: []Speed{0.1, 3, 700, Full}[r.IntN(4)], Paused: r.IntN(3) == 0})
			}
		})
		_, watched := simulate(t, topology, p)
		close(over)
		wg.Wait()
		if watched != alone {
			t.Errorf("seed %d: the result is another", seed)
		}
	}
}

// TestStop ends a paused run, which is measured up to where it stood.
func TestStop(t *testing.T) {
	topology := multihop(t, netsim.Scale{})
	ctx, cancel := context.WithCancel(context.Background())
	p := NewPlayer(end(topology), Pace{Speed: 1, Paused: true}, &jumping{})
	p.StopWith(ctx)
	cancel()
	if r, _ := simulate(t, topology, p); r.Time != 0 || r.Events != 0 {
		t.Errorf("stopped at %v after %d events", r.Time, r.Events)
	}
	if v := p.Snapshot(); v == nil || v.Now != 0 {
		t.Errorf("picture %+v", v)
	}
}

// TestSpeeds walks all speeds up and down.
func TestSpeeds(t *testing.T) {
	s, n := slowest, 0
	for ; s != Full; n++ {
		next := s.faster()
		if next <= s {
			t.Fatalf("faster than %v is %v", s, next)
		}
		if back := next.slower(); back < s*0.999 || back > s*1.001 {
			t.Errorf("slower than %v is %v, not %v", next, back, s)
		}
		s = next
	}
	if n != 3*15+1 {
		t.Errorf("%d speeds", n)
	}
	if slowest.slower() != slowest {
		t.Errorf("slower than the slowest is %v", slowest.slower())
	}
	for length, want := range map[olaf.Duration]Speed{60 * olaf.Second: 1, 65 * olaf.Second: 1, 59 * olaf.Second: 0.5, olaf.Millisecond: 1e-5, 0: slowest} {
		if got := AboutAMinute(length); got < want*0.999 || got > want*1.001 {
			t.Errorf("a run of %v is shown at %v, want %v", length, got, want)
		}
	}
}
