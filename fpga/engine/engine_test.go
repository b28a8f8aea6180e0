package engine_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	names := engine.Names()
	if !slices.Contains(names, "fifo") || !slices.Contains(names, "olaf") || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("names %v", names)
	}
	for _, name := range names {
		if _, err := engine.New(name, engine.Config{Slots: 8, Clusters: 9}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKinds holds what disciplines say of themselves, by which they are told apart.
func TestKinds(t *testing.T) {
	for name, want := range map[string]struct{ merges, filters bool }{"fifo": {false, false}, "olaf": {true, true}} {
		k, known := engine.Describe(name)
		if !known || k.Merges != want.merges || k.FiltersReward != want.filters {
			t.Errorf("%s: %+v, known %t", name, k, known)
		}
	}
}

// TestRatesAreRounded holds that a rate is the nearest whole one to its increment's.
func TestRatesAreRounded(t *testing.T) {
	for i := engine.Increment(1); i < 1000; i++ {
		if exact := float64(i) * 8 * float64(olaf.Second/olaf.Cycle) / (1 << 24); math.Abs(float64(i.Rate())-exact) > 0.5 {
			t.Errorf("%d is %v, exactly %v", i, i.Rate(), exact)
		}
	}
}

func TestBadConfig(t *testing.T) {
	good := engine.Config{Slots: 8, Clusters: 9}
	for _, c := range []struct {
		name string
		edit func(*engine.Config)
		want string
	}{
		{"lifo", func(*engine.Config) {}, `unknown queue "lifo"; there are ` + strings.Join(engine.Names(), ", ")},
		{"olaf", func(c *engine.Config) { c.Slots = 0 }, "slots is 0; it must be 1 to 65536"},
		{"olaf", func(c *engine.Config) { c.Slots = 65537 }, "slots is 65537; it must be 1 to 65536"},
		{"fifo", func(c *engine.Config) { c.Clusters = -1 }, "clusters is -1; it must be 1 to 65536"},
		{"fifo", func(c *engine.Config) { c.Clusters = 65537 }, "clusters is 65537; it must be 1 to 65536"},
		{"olaf", func(c *engine.Config) { c.LaneMemory = 2244 }, "lane memory is 2244; it must be 0 to 2243"},
		{"olaf", func(c *engine.Config) { c.RewardThreshold = -1 }, "the reward threshold is -1; it must not be negative"},
	} {
		cfg := good
		c.edit(&cfg)
		_, err := engine.New(c.name, cfg)
		if !errors.Is(err, engine.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v; want %q", c.name, cfg, err, c.want)
		}
	}
}

func TestBadOutput(t *testing.T) {
	for _, c := range []struct {
		out  engine.Output
		want string
	}{
		{engine.Output{Rate: engine.Line + 1}, "the line's is 128Gbps"},
		{engine.Output{OverheadBytes: -1}, "overhead bytes is -1; it must be 0 to 255"},
		{engine.Output{DequeueCycles: 256}, "dequeue cycles is 256; it must be 0 to 255"},
		{engine.Output{MergeCycles: -2}, "merge cycles is -2; it must be 0 to 255"},
		{engine.Output{BypassSlots: -3}, "bypass slots is -3; it must be 0 to 1048576"},
	} {
		_, err := engine.NewPort("olaf", engine.Config{Slots: 1, Clusters: 1}, c.out, nil)
		if !errors.Is(err, engine.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want %q", c.out, err, c.want)
		}
	}
}

func TestIncrement(t *testing.T) {
	for _, c := range []struct {
		rate  olaf.Rate
		want  engine.Increment
		exact bool
	}{
		{128 * olaf.Gbps, engine.Line, true},
		{40 * olaf.Gbps, 20 << 24, true},
		{20 * olaf.Gbps, 10 << 24, true},
		{5 * olaf.Gbps, 5 << 23, true},
		{100 * olaf.Gbps, 50 << 24, true},
		{olaf.Mbps, 8389, false},
		{60, 1, false},
	} {
		got, err := engine.FromRate(c.rate)
		if err != nil || got != c.want || got.Exactly(c.rate) != c.exact {
			t.Errorf("%v: %d, exact %v, %v; want %d, %v", c.rate, got, got.Exactly(c.rate), err, c.want, c.exact)
		}
		if c.exact && got.Rate() != c.rate {
			t.Errorf("%v comes back as %v", c.rate, got.Rate())
		}
	}
	for _, r := range []olaf.Rate{0, -1, 59, 128*olaf.Gbps + 1} {
		if _, err := engine.FromRate(r); !errors.Is(err, engine.ErrConfig) {
			t.Errorf("%v: %v", r, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		i := engine.Increment(rapid.Uint32Range(1, uint32(engine.Line)).Draw(t, "increment"))
		if back, err := engine.FromRate(i.Rate()); err != nil || back != i {
			t.Fatalf("%d is %v is %d, %v", i, i.Rate(), back, err)
		}
	})
}

func TestProfiles(t *testing.T) {
	for _, c := range []struct {
		profile engine.Profile
		queue   string
		want    engine.Output
	}{
		{engine.Calibrated, "olaf", engine.Output{DequeueCycles: 2, MergeCycles: 1}},
		{engine.Calibrated, "fifo", engine.Output{}},
		{engine.Ideal, "olaf", engine.Output{}},
	} {
		if got, err := c.profile.Costs(c.queue); err != nil || got != c.want {
			t.Errorf("%s of %s: %+v, %v", c.profile, c.queue, got, err)
		}
	}
	if _, err := engine.Profile("free").Costs("olaf"); !errors.Is(err, engine.ErrConfig) {
		t.Error(err)
	}
}

// TestCheckTellsEveryIdentity changes one number at a time of a balanced account.
func TestCheckTellsEveryIdentity(t *testing.T) {
	balanced := func() engine.Stats {
		s := engine.Stats{Offered: 20, SumAccepted: 16, Released: 5, Flushed: 1, SumReleased: 10, SumFlushed: 2, SumDiscarded: 3}
		s.Class = [engine.Classes]uint64{7, 5, 2, 2, 1, 2, 1}
		return s
	}
	if err := engine.Check(balanced(), 1, 1); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*engine.Stats){
		"in = ":                                 func(s *engine.Stats) { s.Offered++ },
		"appended = ":                           func(s *engine.Stats) { s.Released++ },
		"Σcount(":                               func(s *engine.Stats) { s.SumDiscarded-- },
		"the accepted arrivals held 11 updates": func(s *engine.Stats) { s.SumAccepted, s.SumDiscarded = 11, 0 },
	} {
		s := balanced()
		edit(&s)
		if err := engine.Check(s, 1, 1); !errors.Is(err, olaf.ErrAccounting) || !strings.Contains(err.Error(), ": "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	void := balanced()
	void.SumReleased--
	void.CountSaturations = 1
	if err := engine.Check(void, 1, 1); err != nil {
		t.Errorf("after a saturated count: %v", err)
	}
}

// linePort is an olaf port of two slots at 20 bytes a cycle: 256 bytes take 12.8.
func linePort(t *testing.T, sink engine.Sink) *engine.Port {
	t.Helper()
	p, err := engine.NewPort("olaf", engine.Config{Slots: 2, Clusters: 4}, engine.Output{Rate: 20 << 24, DequeueCycles: 2}, sink)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestArrivalBetweenCycles(t *testing.T) {
	var sink collector
	p := linePort(t, &sink)
	u := olaf.Update{Count: 1, Lanes: 48}
	p.Offer(at(10)+1, &u, nil)
	if next, ok := p.Next(); !ok || next != at(24) {
		t.Errorf("an arrival just after cycle 10 leaves at %v; want cycle 24", next)
	}
	p.Advance(at(24) - 1)
	if len(sink.gone) != 0 {
		t.Error("it left before its last bit was out")
	}
	p.Advance(at(24) + 1)
	if len(sink.gone) != 1 || sink.gone[0].Queued != 13 {
		t.Errorf("departures %+v", sink.gone)
	}
}

func TestTimeNeverRunsBackwards(t *testing.T) {
	var sink collector
	p := linePort(t, &sink)
	u := olaf.Update{Count: 1, Lanes: 48}
	p.Advance(at(100))
	p.Offer(at(50), &u, nil)
	if next, _ := p.Next(); next != at(113) {
		t.Errorf("next is %v; want cycle 113", next)
	}
}

func TestNextBusyAndStall(t *testing.T) {
	var sink collector
	p := linePort(t, &sink)
	if _, ok := p.Next(); ok {
		t.Error("an idle output has something to come")
	}
	for c := range 2 {
		p.Offer(0, &olaf.Update{Cluster: olaf.ClusterID(c), Count: 1, Lanes: 48}, nil)
	}
	var seen []int64
	for next, ok := p.Next(); ok; next, ok = p.Next() {
		seen = append(seen, cyclesOf(next))
		p.Advance(next)
	}
	// last bit at 12.8, engine cycles until 14.8, last bit at 27.6, engine cycles until 29.6
	if want := []int64{13, 15, 28, 30}; !slices.Equal(seen, want) {
		t.Errorf("instants %v; want %v", seen, want)
	}
	if want := 256 * olaf.Duration(2*olaf.Cycle) / 20; p.Busy() != want {
		t.Errorf("busy %v; want %v", p.Busy(), want)
	}
	if p.StallCycles() != 4 {
		t.Errorf("%d stall cycles; want 4", p.StallCycles())
	}
}

// TestBusyCountsOverhead sends two frames of 256 bytes with 24 more each at 20 bytes a cycle.
func TestBusyCountsOverhead(t *testing.T) {
	p, err := engine.NewPort("fifo", engine.Config{Slots: 2, Clusters: 1}, engine.Output{Rate: 20 << 24, OverheadBytes: 24, DequeueCycles: 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p.Offer(0, &olaf.Update{Count: 1, Lanes: 48}, nil)
	}
	p.Drain()
	if want := 28 * olaf.Duration(olaf.Cycle); p.Busy() != want {
		t.Errorf("busy %v; want %v", p.Busy(), want)
	}
}

// TestSaturatedOutputRunsAtItsRate sends 10,000 frames back to back at a rate that divides nothing.
func TestSaturatedOutputRunsAtItsRate(t *testing.T) {
	const rate = 123456789
	p, err := engine.NewPort("fifo", engine.Config{Slots: 10000, Clusters: 1}, engine.Output{Rate: rate}, &collector{})
	if err != nil {
		t.Fatal(err)
	}
	for range 10000 {
		p.Offer(0, &olaf.Update{Count: 1, Lanes: 48}, nil)
	}
	want := (int64(256*10000)<<24 + rate - 1) / rate
	if got := cyclesOf(p.Drain()); got != want {
		t.Errorf("idle at cycle %d; want %d", got, want)
	}
}

func TestLockHoldsOneFrame(t *testing.T) {
	e, err := engine.New("olaf", engine.Config{Slots: 4, Clusters: 4})
	if err != nil {
		t.Fatal(err)
	}
	for c := range 2 {
		e.Offer(0, &olaf.Update{Cluster: olaf.ClusterID(c), Count: 1, Lanes: 48}, nil, nil)
	}
	slot, size, ok := e.Lock()
	if !ok || size != 256 || e.Waiting() != 1 {
		t.Fatalf("the head does not leave: %v, %v, %d waiting", ok, size, e.Waiting())
	}
	if _, _, ok := e.Lock(); ok {
		t.Error("a second frame leaves beside the first")
	}
	e.Release(slot)
	defer func() {
		if recover() == nil {
			t.Error("a slot is released twice in silence")
		}
	}()
	e.Release(slot)
}

// discard is a sink that keeps nothing.
type discard struct{}

func (discard) Deliver(*engine.Departure) {}

// TestNothingAllocates runs the longest path there is: gradients, provenance and a serialiser, after a warm-up.
func TestNothingAllocates(t *testing.T) {
	for _, name := range engine.Names() {
		p, err := engine.NewPort(name, engine.Config{Slots: 8, Clusters: 9, LaneMemory: 48, Provenance: true},
			engine.Output{Rate: 10 << 24, DequeueCycles: 2, MergeCycles: 1}, discard{})
		if err != nil {
			t.Fatal(err)
		}
		lanes := make([]int32, 48)
		var u olaf.Update
		run := func() {
			for i := range 1000 {
				u = olaf.Update{Cluster: olaf.ClusterID(i * 7 % 9), Worker: olaf.WorkerID(i % 4), Count: 1, Lanes: 48}
				p.Offer(at(int64(5*i)), &u, lanes)
			}
			p.Drain()
			p.Reset()
		}
		run()
		if n := testing.AllocsPerRun(10, run); n > 0 {
			t.Errorf("%s: %v allocations in 1,000 updates", name, n)
		}
	}
}
