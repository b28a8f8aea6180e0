package engine_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"pgregory.net/rapid"
)

// Effects of an update on a gate, selected by its worker id.
const (
	appends olaf.WorkerID = iota
	merges                // merges with the last frame, if there is one
	drops
	holds // appends and closes the gate
	opens // opens the gate, which is as much work as a merge
	whats
)

// gate is a discipline that differs from those in the package: its frames may have to wait although the output is idle,
// an update may be appended without making a frame ready, and an update may make a frame ready without being appended.
type gate struct {
	waiting []olaf.Update
	leaving bool
	closed  bool
	sizes   []olaf.Size // of locked frames, by slot
}

func (g *gate) Offer(_ olaf.Time, u *olaf.Update, _ []int32, _ []olaf.Contributor) engine.Outcome {
	slot := engine.Slot(len(g.sizes) + len(g.waiting)) // slots are never reused
	switch {
	case u.Worker == drops:
		return engine.Outcome{Slot: engine.NoSlot, Class: engine.DroppedFull}
	case u.Worker == merges && len(g.waiting) > 0:
		return engine.Outcome{Slot: slot - 1, Class: engine.Aggregated, Merged: true}
	case u.Worker == opens:
		g.closed = false
		return engine.Outcome{Slot: engine.NoSlot, Class: engine.Aggregated, Merged: true, Ready: len(g.waiting) > 0}
	}
	g.waiting = append(g.waiting, *u)
	g.closed = g.closed || u.Worker == holds
	return engine.Outcome{Slot: slot, Class: engine.Appended, Ready: !g.closed}
}

func (g *gate) Lock() (engine.Slot, olaf.Size, bool) {
	if g.closed || g.leaving || len(g.waiting) == 0 {
		return engine.NoSlot, 0, false
	}
	size := g.waiting[0].Size()
	g.waiting = g.waiting[1:]
	g.leaving = true
	g.sizes = append(g.sizes, size)
	return engine.Slot(len(g.sizes) - 1), size, true
}

func (g *gate) Release(s engine.Slot) {
	if !g.leaving || int(s) != len(g.sizes)-1 {
		panic("released what is not leaving")
	}
	g.leaving = false
}

func (g *gate) Flush()                                { g.waiting, g.leaving = nil, false }
func (g *gate) Reset()                                {}
func (g *gate) View(engine.Slot, *engine.Frame)       {}
func (g *gate) Waiting() int                          { return len(g.waiting) }
func (g *gate) Occupancy() int                        { return len(g.waiting) }
func (g *gate) ActiveClusters() int                   { return 0 }
func (g *gate) Queued(func(engine.Slot, bool) bool)   {}
func (g *gate) QueuedCount() (frames, updates uint64) { return uint64(len(g.waiting)), 0 }
func (g *gate) Stats() engine.Stats                   { return engine.Stats{} }

// pace is a clock together with its exact rates as fractions.
type pace struct {
	clock    engine.Clock
	perFrame *big.Rat // ticks
	perByte  *big.Rat
	cycle    int64 // ticks of an engine cycle
	tick     olaf.Time
	begun    bool // a tick that has begun counts as complete
	ns3      bool // frames have ns-3's durations, and no remainder is carried over
}

// drawPace draws a clock of the given kind, with rates that leave fractions. A port has only one kind of clock.
func drawPace(t *rapid.T, kind string) pace {
	overhead := rapid.SampledFrom([]int64{0, 24}).Draw(t, "overhead")
	links := []int64{3e12, 7e12, 8e12, 997e9, 123456789012}
	switch kind {
	case "cycles":
		rate := rapid.SampledFrom([]engine.Increment{20 << 24, 33333333, 123456789, engine.Line}).Draw(t, "increment")
		perByte := big.NewRat(1<<24, int64(rate))
		return pace{clock: engine.CycleClock(rate, int(overhead)), perFrame: times(perByte, overhead), perByte: perByte, cycle: 1,
			tick: olaf.Time(olaf.Cycle), begun: true}
	case "steps":
		n := rapid.Int64Range(1, 9).Draw(t, "steps")
		return pace{clock: engine.StepClock(n), perFrame: big.NewRat(n, 1), perByte: new(big.Rat), cycle: int64(olaf.Cycle), tick: 1}
	}
	rate := rapid.SampledFrom(links).Draw(t, "rate")
	perByte := big.NewRat(8e12, rate)
	p := pace{clock: engine.PicosecondClock(olaf.Rate(rate), olaf.Size(overhead)), perFrame: times(perByte, overhead), perByte: perByte,
		cycle: int64(olaf.Cycle), tick: 1}
	if kind == "ns-3" {
		p.clock, p.ns3 = engine.NS3Clock(olaf.Rate(rate), olaf.Size(overhead)), true
	}
	return p
}

func times(r *big.Rat, n int64) *big.Rat { return new(big.Rat).Mul(r, big.NewRat(n, 1)) }

// takes returns the number of ticks that a frame takes.
func (p *pace) takes(size olaf.Size) *big.Rat {
	exact := new(big.Rat).Add(p.perFrame, times(p.perByte, int64(size)))
	if !p.ns3 {
		return exact
	}
	// ns-3 represents seconds with 64 fractional bits; parts is their number per ps.
	parts := new(big.Rat).SetFrac(new(big.Int).Lsh(big.NewInt(1), 64), big.NewInt(1e12))
	known := new(big.Rat).SetInt64(floor(exact.Mul(exact, parts)))
	ps := known.Quo(known, parts)
	return big.NewRat((floor(ps)+500)/1000*1000, 1)
}

func floor(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() }

// slowPort implements docs/reference/semantics.md, Ports of a network, without regard to speed: with exact fractions,
// lists, and strings for states.
type slowPort struct {
	gate   *gate
	beside []olaf.Size
	first  int32 // handle of beside[0]
	slots  int
	pace   pace
	out    engine.Output

	state  string
	last   string // the last thing that started
	free   *big.Rat
	merged int
	down   bool
	stall  uint64
}

// next returns the tick at which the state ends.
func (s *slowPort) next() int64 {
	if s.pace.begun {
		return -floor(new(big.Rat).Neg(s.free))
	}
	return floor(s.free)
}

func (s *slowPort) pay(cycles int) {
	s.free = new(big.Rat).Add(s.free, big.NewRat(int64(cycles)*s.pace.cycle, 1))
	s.stall += uint64(cycles)
}

func (s *slowPort) heed(now int64, o engine.Outcome) string {
	if o.Merged && s.state == "paying" {
		s.pay(s.out.MergeCycles)
	} else if o.Merged {
		s.merged++
	}
	return s.wake(now)
}

// wake starts an idle output if that is possible, even if the event did not announce it.
func (s *slowPort) wake(now int64) string {
	if s.state != "idle" {
		return ""
	}
	s.free = big.NewRat(now, 1)
	return s.start()
}

func (s *slowPort) start() string {
	s.state = "idle"
	if s.down {
		return ""
	}
	if len(s.beside) == 0 || s.last != "queue" {
		if slot, size, ok := s.gate.Lock(); ok {
			s.state, s.last = "sending", "queue"
			s.free = new(big.Rat).Add(s.free, s.pace.takes(size))
			return fmt.Sprint("slot ", slot)
		}
	}
	if len(s.beside) == 0 {
		return ""
	}
	s.state, s.last = "sending", "bypass"
	s.free = new(big.Rat).Add(s.free, s.pace.takes(s.beside[0]))
	s.beside = s.beside[1:]
	s.first++
	return fmt.Sprint("handle ", s.first-1)
}

func (s *slowPort) step(now int64) string {
	switch {
	case s.state == "idle" || s.next() > now:
		return ""
	case s.state == "paying":
		return s.start()
	}
	merged := s.merged
	s.merged = 0
	if s.last == "bypass" {
		return s.start()
	}
	s.gate.Release(engine.Slot(len(s.gate.sizes) - 1))
	if cycles := s.out.DequeueCycles + merged*s.out.MergeCycles; cycles > 0 {
		s.state = "paying"
		s.pay(cycles)
		return ""
	}
	return s.start()
}

func (s *slowPort) flush(now int64) {
	for s.state != "idle" && s.next() <= now {
		s.step(now)
	}
	s.gate.Flush()
	s.first += int32(len(s.beside))
	s.state, s.last, s.merged, s.beside = "idle", "", 0, nil
}

// both is a port that is driven event by event, together with its reference.
type both struct {
	port *engine.Port
	gate *gate
	slow slowPort
	next int32 // handle
}

// started returns a description of what the port started, in the format of the reference.
func (b *both) started(yes bool) string {
	if !yes {
		return ""
	}
	if slot, _ := b.port.Sending(); slot != engine.NoSlot {
		return fmt.Sprint("slot ", slot)
	}
	return fmt.Sprint("handle ", b.port.BypassHandle())
}

// do carries out one event and returns what the port and the reference started because of it.
func (b *both) do(t *rapid.T, what, kind string, now int64) (got, want string) {
	at := olaf.Time(now) * b.slow.pace.tick
	switch what {
	case "offer":
		u := olaf.Update{Worker: olaf.WorkerID(rapid.IntRange(0, int(whats)-1).Draw(t, "worker")),
			Lanes: rapid.SampledFrom([]uint16{0, 1, 48}).Draw(t, "lanes")}
		got = b.started(b.port.HandleOutcome(at, b.gate.Offer(at, &u, nil, nil)))
		return got, b.slow.heed(now, b.slow.gate.Offer(at, &u, nil, nil))
	case "bypass":
		size := olaf.Size(rapid.SampledFrom([]int{64, 65, 1500}).Draw(t, "size"))
		taken, started := b.port.Bypass(at, size, b.next)
		if taken != (len(b.slow.beside) < b.slow.slots) {
			t.Fatalf("taken %v with %d of %d waiting", taken, len(b.slow.beside), b.slow.slots)
		}
		if taken {
			b.slow.beside = append(b.slow.beside, size)
			b.next++
		}
		return b.started(started), b.slow.wake(now)
	case "down", "up":
		got = b.started(b.port.SetLink(at, what == "up"))
		b.slow.down = what == "down"
		return got, b.slow.wake(now)
	case "step", "early":
		return b.started(b.port.Step(at)), b.slow.step(now)
	case "flush":
		b.port.Flush(at)
		b.slow.flush(now)
	case "pace":
		b.slow.free = big.NewRat(b.slow.next(), 1)
		b.slow.pace = drawPace(t, kind)
		b.port.SetClock(b.slow.pace.clock)
	}
	return "", ""
}

func (b *both) compare(t *rapid.T, what string, now int64, got, want string) {
	if got != want {
		t.Fatalf("%s at %d started %q, reference %q", what, now, got, want)
	}
	next, busy := b.port.Next()
	if busy != (b.slow.state != "idle") || busy && next != olaf.Time(b.slow.next())*b.slow.pace.tick {
		t.Fatalf("after %s at %d: busy %v until %d, reference %s until %d", what, now, busy, next, b.slow.state, b.slow.next())
	}
	if _, sending := b.port.Sending(); sending != (b.slow.state == "sending") || b.port.StallCycles() != b.slow.stall ||
		b.port.Up() == b.slow.down {
		t.Fatalf("after %s at %d: sending %v, %d stall cycles, up %v; reference %s, %d, down %v",
			what, now, sending, b.port.StallCycles(), b.port.Up(), b.slow.state, b.slow.stall, b.slow.down)
	}
}

// TestPortEventByEvent drives ports with every clock as the simulator does and checks every start and every end against
// the reference.
func TestPortEventByEvent(t *testing.T) {
	for _, kind := range []string{"cycles", "picoseconds", "ns-3", "steps"} {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				out := engine.Output{
					DequeueCycles: rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "dequeue"),
					MergeCycles:   rapid.SampledFrom([]int{0, 1}).Draw(t, "merge"),
					BypassSlots:   rapid.IntRange(0, 5).Draw(t, "bypass slots"),
				}
				b := both{gate: new(gate), slow: slowPort{gate: new(gate), slots: out.BypassSlots, out: out, state: "idle",
					free: new(big.Rat), pace: drawPace(t, kind)}}
				var err error
				if b.port, err = engine.NewPortOf(b.gate, out, nil); err != nil {
					t.Fatal(err)
				}
				b.port.SetClock(b.slow.pace.clock)
				now := int64(0)
				for range rapid.IntRange(1, 60).Draw(t, "events") {
					what := rapid.SampledFrom([]string{"offer", "offer", "offer", "offer", "bypass", "bypass", "down", "up", "up",
						"pace", "step", "step", "step", "early", "flush"}).Draw(t, "what")
					if what == "step" && b.slow.state != "idle" {
						now = max(now, b.slow.next())
					} else if b.slow.state == "idle" || now < b.slow.next() {
						now += rapid.SampledFrom([]int64{0, 0, 1, 7, 5000}).Draw(t, "gap")
						if b.slow.state != "idle" {
							now = min(now, b.slow.next())
						}
					}
					got, want := b.do(t, what, kind, now)
					b.compare(t, what, now, got, want)
				}
				if d := cmp.Diff(b.slow.gate.sizes, b.gate.sizes); d != "" {
					t.Fatalf("sizes sent (-reference +port): %s", d)
				}
			})
		})
	}
}

// TestStepEqualsAdvance checks that a port driven by time and a port driven event by event have the same departures, if
// the events of one instant come in the order of docs/reference/semantics.md.
func TestStepEqualsAdvance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, cfg, out := drawSetup(t)
		var byTime, byEvent collector
		timed, err := engine.NewPort(name, cfg, out, &byTime)
		if err != nil {
			t.Fatal(err)
		}
		stepped, err := engine.NewPort(name, cfg, out, &byEvent)
		if err != nil {
			t.Fatal(err)
		}
		steps := func(until olaf.Time) {
			for next, busy := stepped.Next(); busy && next <= until; next, busy = stepped.Next() {
				stepped.Step(next)
			}
		}
		cycle := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			cycle += int64(rapid.SampledFrom([]int{0, 0, 1, 2, 7, 13, 30}).Draw(t, "gap"))
			u, lanes, inside := drawArrival(t, cfg)
			timed.OfferMerged(at(cycle), &u, lanes, inside)
			steps(at(cycle))
			stepped.HandleOutcome(at(cycle), stepped.Discipline().Offer(at(cycle), &u, lanes, inside))
		}
		timed.Drain()
		steps(at(1 << 40))
		if d := cmp.Diff(byTime.gone, byEvent.gone, equateEmpty); d != "" {
			t.Fatalf("departures (-by time +by event):\n%s", d)
		}
		if timed.StallCycles() != stepped.StallCycles() || timed.Busy() != stepped.Busy() {
			t.Fatalf("stall %d and %d, busy %v and %v", timed.StallCycles(), stepped.StallCycles(), timed.Busy(), stepped.Busy())
		}
	})
}

// TestClocks checks frames whose times are known.
func TestClocks(t *testing.T) {
	for _, c := range []struct {
		name  string
		clock engine.Clock
		size  olaf.Size
		want  int64
	}{
		{"20 B a cycle: 12.8", engine.CycleClock(20<<24, 0), 256, 12},
		{"20 B a cycle with overhead: 14", engine.CycleClock(20<<24, 24), 256, 14},
		{"the line", engine.CycleClock(engine.Line, 0), 256, 4},
		{"10 Mbps", engine.PicosecondClock(10*olaf.Mbps, 30), 1000, 824e6},
		{"a prime rate", engine.PicosecondClock(999_983, 0), 125, 1_000_017_000},
		{"1 bps, 9 kB", engine.PicosecondClock(1, 0), 9036, 72288e12},
		{"ns-3, whole", engine.NS3Clock(10*olaf.Mbps, 30), 1000, 824e6},
		{"ns-3, down", engine.NS3Clock(999_983, 0), 125, 1_000_017_000},
		{"ns-3, up", engine.NS3Clock(3, 0), 1, 2_666_666_667_000},
		{"ns-3, half a ns, which is less in binary", engine.NS3Clock(16*olaf.Gbps, 0), 1, 0},
		{"ns-3, nothing", engine.NS3Clock(64*olaf.Gbps, 0), 1, 0},
		{"steps", engine.StepClock(7), 256, 7},
	} {
		if got := c.clock.Ticks(c.size); got != c.want {
			t.Errorf("%s: %d ticks, want %d", c.name, got, c.want)
		}
	}
}

// TestBypassKeepsItsOrder checks that frames that bypass the discipline leave in order of arrival, each with its size,
// even if many wait and more arrive while some leave.
func TestBypassKeepsItsOrder(t *testing.T) {
	for first := range 12 { // position of the first frame in the ring when the ring grows
		p, err := engine.NewPort("fifo", engine.Config{Slots: 1, Clusters: 1}, engine.Output{BypassSlots: 40}, nil)
		if err != nil {
			t.Fatal(err)
		}
		handle, now := int32(0), olaf.Time(0)
		next := func() {
			began := now
			if p.BypassHandle() != handle {
				t.Fatalf("first %d: %d is on the wire, want %d", first, p.BypassHandle(), handle)
			}
			now, _ = p.Next()
			if took := now.Sub(began); took != olaf.Duration(1+handle%7)*olaf.Duration(olaf.Cycle) {
				t.Fatalf("first %d: frame %d took %v", first, handle, took)
			}
			p.Step(now)
			handle++
		}
		add := func(n int32) {
			if taken, _ := p.Bypass(now, olaf.Size(64*(1+n%7)), n); !taken {
				t.Fatalf("first %d: frame %d is not taken", first, n)
			}
		}
		given := int32(0)
		for ; given < 3; given++ {
			add(given)
		}
		for range first { // one frame leaves and one arrives
			next()
			add(given)
			given++
		}
		for ; given < int32(first+40); given++ {
			add(given)
		}
		for handle < given {
			next()
		}
		if _, busy := p.Next(); busy {
			t.Errorf("first %d: something is left", first)
		}
	}
}

// TestViewClearsOldFields checks that View clears gradients and provenance that the frame contained before, if the
// queue has none.
func TestViewClearsOldFields(t *testing.T) {
	d, err := engine.New("olaf", engine.Config{Slots: 1, Clusters: 1})
	if err != nil {
		t.Fatal(err)
	}
	o := d.Offer(0, &olaf.Update{Count: 1}, nil, nil)
	f := engine.Frame{Lanes: []int32{1}, Contributors: []olaf.Contributor{{}}, AppendedAt: 5}
	if d.View(o.Slot, &f); f.Lanes != nil || f.Contributors != nil || f.AppendedAt != 0 {
		t.Errorf("%+v", f)
	}
}
