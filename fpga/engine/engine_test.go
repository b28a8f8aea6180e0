package engine_test

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	names := engine.DisciplineNames()
	if !slices.Contains(names, "fifo") || !slices.Contains(names, "olaf") ||
		len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("names %v", names)
	}
	for _, name := range names {
		if _, err := engine.New(name, engine.Config{Slots: 8, Clusters: 9}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKinds checks the properties that each discipline declares and by which disciplines are distinguished.
func TestKinds(t *testing.T) {
	for name, want := range map[string]struct{ merges, filters bool }{"fifo": {false, false}, "olaf": {true, true}} {
		k, known := engine.FindDiscipline(name)
		if !known || k.Merges != want.merges || k.FiltersReward != want.filters {
			t.Errorf("%s: %+v, known %t", name, k, known)
		}
	}
}

// TestRatesAreRounded checks that a rate is the integer nearest to the exact rate of its increment.
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
		{"lifo", func(*engine.Config) {}, `unknown queue "lifo"; there are ` + strings.Join(engine.DisciplineNames(), ", ")},
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

// TestRatesAreNearest checks that an increment is the nearest to a rate, and that a rate is the nearest to its
// increment. Both are rounded up from the middle.
func TestRatesAreNearest(t *testing.T) {
	const perByte = 8 * int64(olaf.Second/olaf.Cycle) // bits per second of one byte a cycle
	step := func(i engine.Increment) *big.Rat { return big.NewRat(int64(i)*perByte, 1<<24) }
	half := func(r *big.Rat, by int64) *big.Rat { return new(big.Rat).Add(r, big.NewRat(by, 2)) }
	rapid.Check(t, func(t *rapid.T) {
		i := engine.Increment(rapid.OneOf(rapid.Uint32Range(1, uint32(engine.Line)), rapid.Just(uint32(1<<13))).Draw(t, "increment"))
		rate := new(big.Rat).SetInt64(int64(i.Rate()))
		if rate.Cmp(half(step(i), 1)) > 0 || rate.Cmp(half(step(i), -1)) <= 0 {
			t.Fatalf("%d is %v, exactly %s", i, i.Rate(), step(i).FloatString(3))
		}
		r := olaf.Rate(rapid.Int64Range(60, int64(128*olaf.Gbps)).Draw(t, "rate"))
		got, err := engine.FromRate(r)
		if err != nil {
			t.Fatal(err)
		}
		off := new(big.Rat).Sub(step(got), new(big.Rat).SetInt64(int64(r)))
		apart := new(big.Rat).Mul(step(1), big.NewRat(1, 2))
		if off.Cmp(apart) > 0 || off.Cmp(new(big.Rat).Neg(apart)) <= 0 || got.IsExact(r) != (off.Sign() == 0) {
			t.Fatalf("%v is %d, off by %s; exactly %t", r, got, off.FloatString(3), got.IsExact(r))
		}
	})
	if got := engine.Increment(1 << 13).Rate(); got != 976_563 {
		t.Errorf("976,562.5 bps are %d", got)
	}
	for rate, want := range map[olaf.Rate]string{
		0:  "the output rate is 0bps; it must be more than 0bps and at most the line's 128Gbps",
		59: "the output rate 59bps is below the limiter's resolution",
	} {
		if _, err := engine.FromRate(rate); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", rate, err)
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
		if err != nil || got != c.want || got.IsExact(c.rate) != c.exact {
			t.Errorf("%v: %d, exact %v, %v; want %d, %v", c.rate, got, got.IsExact(c.rate), err, c.want, c.exact)
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

// TestProfiles checks the costs of every discipline in every profile, and which profiles have read ports.
func TestProfiles(t *testing.T) {
	if want := []string{"calibrated", "ideal", "measured", "measured-shared"}; !slices.Equal(engine.ProfileNames(), want) {
		t.Errorf("%v, want %v", engine.ProfileNames(), want)
	}
	for _, c := range []struct {
		profile engine.Profile
		queue   string
		want    engine.Output
	}{
		{engine.Calibrated, "olaf", engine.Output{DequeueCycles: 2, MergeCycles: 1}},
		{engine.Calibrated, "fifo", engine.Output{}},
		{engine.Ideal, "olaf", engine.Output{}},
		{engine.Ideal, "fifo", engine.Output{}},
		{engine.Measured, "olaf", engine.Output{ReadPorts: 2}},
		{engine.Measured, "fifo", engine.Output{ReadPorts: 2}},
		{engine.MeasuredShared, "olaf", engine.Output{ReadPorts: 1}},
		{engine.MeasuredShared, "fifo", engine.Output{ReadPorts: 1}},
	} {
		if got, err := c.profile.Costs(c.queue); err != nil || got != c.want {
			t.Errorf("%s of %s: %+v, %v", c.profile, c.queue, got, err)
		}
		c.want.Rate = 20 << 24
		if got, err := c.profile.Output(c.queue, 40*olaf.Gbps); err != nil || got != c.want {
			t.Errorf("%s of %s at 40Gbps: %+v, %v", c.profile, c.queue, got, err)
		}
		if _, err := c.profile.Output(c.queue, 0); !errors.Is(err, engine.ErrConfig) {
			t.Errorf("%s of %s at 0bps: %v", c.profile, c.queue, err)
		}
		if got := c.profile.ReadPorts(); got != c.want.ReadPorts || c.profile.Validate() != nil {
			t.Errorf("%s has %d read ports, want %d; %v", c.profile, got, c.want.ReadPorts, c.profile.Validate())
		}
	}
	const unknown = `unknown cycle profile "free"; there are calibrated, ideal, measured, measured-shared`
	_, costs := engine.Profile("free").Costs("olaf")
	_, output := engine.Profile("free").Output("olaf", olaf.Gbps)
	for _, err := range []error{engine.Profile("free").Validate(), costs, output} {
		if !errors.Is(err, engine.ErrConfig) || !strings.Contains(err.Error(), unknown) {
			t.Error(err)
		}
	}
}

// TestProfilesWithPorts checks every profile with every number of read ports.
func TestProfilesWithPorts(t *testing.T) {
	const none, odd = "counts no cycles of a memory", "the logic is built with 1 or 2"
	for _, c := range []struct {
		profile engine.Profile
		ports   int
		want    engine.Profile
		refused string
	}{
		{engine.Measured, 1, engine.MeasuredShared, ""}, {engine.Measured, 2, engine.Measured, ""},
		{engine.MeasuredShared, 1, engine.MeasuredShared, ""}, {engine.MeasuredShared, 2, engine.Measured, ""},
		{engine.Measured, 0, engine.Measured, odd}, {engine.Measured, 3, engine.Measured, odd},
		{engine.MeasuredShared, 0, engine.MeasuredShared, odd}, {engine.MeasuredShared, -1, engine.MeasuredShared, odd},
		{engine.Calibrated, 0, engine.Calibrated, none}, {engine.Calibrated, 1, engine.Calibrated, none},
		{engine.Ideal, 1, engine.Ideal, none}, {engine.Ideal, 2, engine.Ideal, none},
	} {
		got, err := c.profile.WithPorts(c.ports)
		if got != c.want || (err == nil) != (c.refused == "") {
			t.Errorf("%s with %d ports: %s, %v", c.profile, c.ports, got, err)
		}
		if err != nil && (!errors.Is(err, engine.ErrConfig) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s with %d ports: %v; want %q", c.profile, c.ports, err, c.refused)
		}
	}
}

// TestOptionLimits checks that every option is accepted at both ends of its range and rejected one step beyond, with an
// error that names the field.
func TestOptionLimits(t *testing.T) {
	type port struct {
		engine.Config
		engine.Output
	}
	for _, c := range []struct {
		field     string
		low, high int
		set       func(*port, int)
	}{
		{"", 1, engine.MaxSlots, func(p *port, n int) { p.Slots = n }},
		{"", 1, engine.MaxClusters, func(p *port, n int) { p.Clusters = n }},
		{"", 0, olaf.MaxLanes, func(p *port, n int) { p.LaneMemory = n }},
		{"", 0, math.MaxInt32, func(p *port, n int) { p.RewardThreshold = int32(n) }},
		{"", 0, int(engine.Line), func(p *port, n int) { p.Rate = engine.Increment(n) }},
		{"overhead", 0, engine.MaxOverheadBytes, func(p *port, n int) { p.OverheadBytes = n }},
		{"dequeue_cycles", 0, engine.MaxCostCycles, func(p *port, n int) { p.DequeueCycles = n }},
		{"merge_cycles", 0, engine.MaxCostCycles, func(p *port, n int) { p.MergeCycles = n }},
		{"ports", 0, engine.MaxReadPorts, func(p *port, n int) { p.ReadPorts = n }},
		{"", 0, engine.MaxBypassSlots, func(p *port, n int) { p.BypassSlots = n }},
	} {
		for n, fits := range map[int]bool{c.low: true, c.high: true, c.low - 1: false, c.high + 1: false} {
			p := port{engine.Config{Slots: 2, Clusters: 2}, engine.Output{}}
			c.set(&p, n)
			_, err := engine.NewPort("olaf", p.Config, p.Output, nil)
			if (err == nil) != fits || err != nil && (!errors.Is(err, engine.ErrConfig) || olaf.FieldOf(err) != c.field) {
				t.Errorf("%+v: %v in field %q, fits %t", p, err, olaf.FieldOf(err), fits)
			}
		}
	}
}

// TestEveryChangedNumberViolatesAnIdentity checks that changing any single number of a balanced account violates an
// identity.
func TestEveryChangedNumberViolatesAnIdentity(t *testing.T) {
	balanced := func() engine.Stats {
		s := engine.Stats{Offered: 20, SumAccepted: 16, Released: 5, Flushed: 1, SumReleased: 10, SumFlushed: 2, SumDiscarded: 3}
		s.Class = [engine.Classes]uint64{7, 5, 2, 2, 1, 2, 1}
		return s
	}
	if err := engine.CheckAccounts(balanced(), 1, 1); err != nil {
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
		if err := engine.CheckAccounts(s, 1, 1); !errors.Is(err, olaf.ErrAccounting) || !strings.Contains(err.Error(), ": "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	void := balanced()
	void.SumReleased--
	void.CountSaturations = 1
	if err := engine.CheckAccounts(void, 1, 1); err != nil {
		t.Errorf("after a saturated count: %v", err)
	}
}

// linePort returns an olaf port with two slots at 20 bytes per cycle, where 256 bytes take 12.8 cycles.
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

// TestBusyCountsOverhead checks the busy time of two frames of 256 bytes with 24 bytes of overhead each, at 20 bytes
// per cycle.
func TestBusyCountsOverhead(t *testing.T) {
	p, err := engine.NewPort("fifo", engine.Config{Slots: 2, Clusters: 1},
		engine.Output{Rate: 20 << 24, OverheadBytes: 24, DequeueCycles: 5}, nil)
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

// TestSaturatedOutputRunsAtItsRate checks the time of 10,000 frames sent back to back at a rate that leaves a remainder
// every time.
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

// discard is a sink that does nothing.
type discard struct{}

func (discard) Deliver(*engine.Departure) {}

// TestNothingAllocates checks that the longest path, with gradients, provenance and a serialiser, does not allocate
// after a warm-up.
func TestNothingAllocates(t *testing.T) {
	for _, name := range engine.DisciplineNames() {
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

// TestRoomOfContributors checks that the memory for contributors does not grow with the traffic: updates with
// contributors are merged, replaced, sent, flushed and reset, and the nodes that they used are used again.
func TestRoomOfContributors(t *testing.T) {
	for _, name := range engine.DisciplineNames() {
		d, err := engine.New(name, engine.Config{Slots: 4, Clusters: 6, Provenance: true})
		if err != nil {
			t.Fatal(err)
		}
		var u olaf.Update
		leaving := engine.NoSlot
		release := func() {
			if leaving != engine.NoSlot {
				d.Release(leaving)
			}
			leaving = engine.NoSlot
		}
		for what, empty := range map[string]func(){
			"sent": func() {
				for release(); d.Waiting() > 0; release() {
					leaving, _, _ = d.Lock()
				}
			},
			"flushed": func() { d.Flush(); leaving = engine.NoSlot },
			"reset":   func() { d.Reset(); leaving = engine.NoSlot },
		} {
			run := func() {
				for range 1000 {
					for i := range 24 {
						u = olaf.Update{Cluster: olaf.ClusterID(i * 7 % 6), Worker: olaf.WorkerID(i / 12), Count: 1}
						d.Offer(0, &u, nil, nil)
						if i%5 == 0 {
							release()
							leaving, _, _ = d.Lock()
						}
					}
					empty()
				}
			}
			run()
			if n := testing.AllocsPerRun(1, run); n > 0 {
				t.Errorf("%s, %s: %v allocations in 24,000 updates", name, what, n)
			}
		}
	}
}
