package network

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/tui/pace"
	"github.com/olafctl/olaf/tui/tuitest"
)

// preset returns a built-in network for 15 s; it panics if there is none.
func preset(name string, scale netsim.Scale) *netsim.Topology {
	topology, err := netsim.Preset(system.All(), name, scale)
	if err != nil {
		panic(err)
	}
	if name == "multihop" {
		topology.Duration = 15 * olaf.Second
	}
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

// TestPaceTakesItsTime checks how long 20 simulated seconds take at several speeds on a test clock.
func TestPaceTakesItsTime(t *testing.T) {
	topology := preset("multihop", netsim.Scale{})
	_, alone := simulate(t, topology, nil)
	for _, speed := range []pace.Speed{0.5, 1, 20} {
		clock := &tuitest.Jumping{}
		p := NewPlayer(end(topology), pace.Pace{Speed: speed}, clock)
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

// TestUserActionsDoNotChangeRun checks that pausing, hurrying, stepping and looking at random do not change a run.
func TestUserActionsDoNotChangeRun(t *testing.T) {
	topology := preset("multihop", netsim.Scale{})
	topology.Control.Enabled = true
	_, alone := simulate(t, topology, nil)
	for seed := range uint64(3) {
		p := NewPlayer(end(topology), pace.Pace{Speed: 5, Paused: true}, &tuitest.Jumping{})
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
				switch r.IntN(4) {
				case 0:
					p.Step()
				case 1:
					p.Advance(before + olaf.Time(r.Int64N(int64(olaf.Second))))
				default:
					p.SetPace(pace.Pace{Speed: []pace.Speed{0.1, 3, 700, pace.Full}[r.IntN(4)], Paused: r.IntN(3) == 0})
				}
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

// TestStop checks that a paused run that is stopped is measured until then.
func TestStop(t *testing.T) {
	topology := preset("multihop", netsim.Scale{})
	ctx, cancel := context.WithCancel(context.Background())
	p := NewPlayer(end(topology), pace.Pace{Speed: 1, Paused: true}, &tuitest.Jumping{})
	p.StopWith(ctx)
	cancel()
	if r, _ := simulate(t, topology, p); r.Time != 0 || r.Events != 0 {
		t.Errorf("stopped at %v after %d events", r.Time, r.Events)
	}
	if v := p.Snapshot(); v == nil || v.Now != 0 {
		t.Errorf("picture %+v", v)
	}
}

// scripted looks at a player between events and runs the next step of a script.
type scripted struct {
	*Player
	script []func(last, next olaf.Time)
}

func (s *scripted) Before(last, next olaf.Time, look func(at olaf.Time) *netsim.Snapshot) (olaf.Time, bool) {
	if len(s.script) > 0 {
		s.script[0](last, next)
		s.script = s.script[1:]
	}
	return s.Player.Before(last, next, look)
}

// TestSteps checks that a paused run moves from event to event.
func TestSteps(t *testing.T) {
	topology := preset("multihop", netsim.Scale{})
	p := NewPlayer(end(topology), pace.Pace{Speed: 1, Paused: true}, &tuitest.Jumping{})
	var events []olaf.Time
	step := func(last, next olaf.Time) {
		events = append(events, next)
		p.Step()
	}
	s := &scripted{Player: p}
	for range 50 {
		s.script = append(s.script, step)
	}
	s.script = append(s.script, func(last, _ olaf.Time) {
		events = append(events, last)
		p.Stop()
	})
	r, _ := simulate(t, topology, s)
	for i := 1; i < 50; i++ {
		if events[i] <= events[i-1] {
			t.Errorf("step %d leads from %v to %v", i, events[i-1], events[i])
		}
	}
	if events[50] != events[49] || r.Time.Seconds() > 1 {
		t.Errorf("after 50 steps at %v, the run stopped at %v; the last event was at %v", events[50], r.Time, events[49])
	}
}

// TestAdvance checks that a paused run advances to an instant between two events and stops there.
func TestAdvance(t *testing.T) {
	p := NewPlayer(olaf.Time(20*olaf.Second), pace.Pace{Speed: 1, Paused: true}, &tuitest.Jumping{})
	look := func(at olaf.Time) *netsim.Snapshot { return &netsim.Snapshot{Now: at} }
	goal := olaf.Time(olaf.Millisecond)
	p.Advance(goal)
	if until, on := p.Before(0, goal/2, look); !on || until < goal/2 || until > goal {
		t.Errorf("half-way it may go on to %v, %v", until, on)
	}
	p.Stop()
	if until, on := p.Before(goal/2, 3*goal, look); on || until != goal || p.Snapshot().Now != goal {
		t.Errorf("it stands at %v, want %v", until, goal)
	}
}

// TestHistory checks that the history is the same at every pace, on a grid until the end, and equal to snapshots taken
// at its instants.
func TestHistory(t *testing.T) {
	topology := preset("multihop", netsim.Scale{})
	var first *History
	for _, way := range []pace.Pace{{Speed: pace.Full}, {Speed: 3}} {
		p := NewPlayer(end(topology), way, &tuitest.Jumping{})
		simulate(t, topology, p)
		h := p.History()
		n := len(h.Instants)
		if n < mostInstants/2 || n > mostInstants || h.Instants[0].At != 0 {
			t.Fatalf("%d instants from %v on", n, h.Instants[0].At)
		}
		for i := 1; i < n; i++ {
			if h.Instants[i].At-h.Instants[i-1].At != h.Instants[1].At {
				t.Fatalf("instant %d at %v, the one before at %v", i, h.Instants[i].At, h.Instants[i-1].At)
			}
		}
		if last := h.Instants[n-1].At; last+h.Instants[1].At < end(topology) {
			t.Errorf("the last instant is at %v", last)
		}
		if first == nil {
			first = h
		} else if fmt.Sprint(first.Instants[1:]) != fmt.Sprint(h.Instants[1:]) {
			t.Error("another pace, another history")
		}
	}
	mid := first.Instants[len(first.Instants)/2]
	seen := at(topology, mid.At).snapshot
	if got := fmt.Sprint(instantOf(seen)); got != fmt.Sprint(mid) {
		t.Errorf("in the history %v, seen %v", mid, got)
	}
}
