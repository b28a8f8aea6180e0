package pktgen

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/test/golden"
)

// logged is a card that records every access, and fails one of them.
type logged struct {
	*fakeCard
	log    []string
	failAt int // the access that fails, counted from 0; negative for none
}

var errLost = errors.New("lost")

func (l *logged) access(format string, args ...any) error {
	l.log = append(l.log, fmt.Sprintf(format, args...))
	if len(l.log)-1 == l.failAt {
		return errLost
	}
	return nil
}

func nameOf(addr uint32) string {
	ref, high, ok := regmap.RegisterAt(addr)
	switch {
	case !ok:
		return fmt.Sprintf("%#x", addr)
	case high:
		return ref.Name() + "+4"
	}
	return ref.Name()
}

func (l *logged) Read32(addr uint32) (uint32, error) {
	v, err := l.fakeCard.Read32(addr)
	return v, errors.Join(err, l.access("read %s: %x", nameOf(addr), v))
}

func (l *logged) Write32(addr, v uint32) error {
	if err := l.access("write %s: %x", nameOf(addr), v); err != nil {
		return err
	}
	return l.fakeCard.Write32(addr, v)
}

func (l *logged) WriteBurst(addr uint32, words []uint32) error {
	if err := l.access("burst %s: %d words", nameOf(addr), len(words)); err != nil {
		return err
	}
	return l.fakeCard.WriteBurst(addr, words)
}

func smallJob(t *testing.T) Job {
	t.Helper()
	w := table1(t)
	w.Workers, w.Clusters, w.UpdatesPerWorker = 3, 3, 2
	return testJob(t, w)
}

// TestAccessSequence checks the accesses for programming, arming, starting and stopping a card, one by one.
func TestAccessSequence(t *testing.T) {
	for _, burst := range []uint32{0, 32} {
		c := &logged{fakeCard: newFakeCard(), failAt: -1}
		c.burst = burst
		g := NewGenerator(c)
		if err := errors.Join(g.Program(context.Background(), smallJob(t)), g.Arm(), g.Start(), g.Stop(), g.Abort()); err != nil {
			t.Fatal(err)
		}
		golden.Equal(t, fmt.Sprintf("accesses-%d.golden", burst), []byte(strings.Join(c.log, "\n")+"\n"))
	}
}

// TestAccessErrorsAreReturned checks that an operation returns the error of any access that fails.
func TestAccessErrorsAreReturned(t *testing.T) {
	for failAt := 0; ; failAt++ {
		c := &logged{fakeCard: newFakeCard(), failAt: failAt}
		c.burst = 32
		g := NewGenerator(c)
		err := g.Program(context.Background(), smallJob(t))
		if err == nil {
			err = g.Arm()
		}
		if err == nil {
			err = g.Start()
		}
		if len(c.log) <= failAt {
			if err != nil || failAt < 30 {
				t.Errorf("after %d accesses: %v", failAt, err)
			}
			return
		}
		if !errors.Is(err, errLost) {
			t.Errorf("access %d, %s: %v", failAt, c.log[failAt], err)
		}
	}
}

// quick is a card whose generator has finished before it can be read.
type quick struct{ *fakeCard }

func (q quick) Write32(addr, v uint32) error {
	err := q.fakeCard.Write32(addr, v)
	if addr == regmap.GeneratorCommand && v == regmap.GeneratorCommandStart {
		q.regs[regmap.GeneratorState] = uint32(Done)
	}
	return err
}

func TestGeneratorMayFinishAtOnce(t *testing.T) {
	g := NewGenerator(quick{newFakeCard()})
	if err := errors.Join(g.Program(context.Background(), smallJob(t)), g.Arm(), g.Start(), g.Stop()); err != nil {
		t.Error(err)
	}
}

// TestEveryReasonHasItsWords checks the text for each event bit.
func TestEveryReasonHasItsWords(t *testing.T) {
	for bit, want := range map[uint32]string{
		0:                               "",
		regmap.GeneratorEventsDone:      "",
		regmap.GeneratorEventsUnderrun:  ": a descriptor that was never loaded came due",
		regmap.GeneratorEventsUnsorted:  ": a descriptor's time lies before its predecessor's",
		regmap.GeneratorEventsBadFlow:   ": a descriptor names a flow that is not enabled",
		regmap.GeneratorEventsBadLength: ": a frame length is not possible",
		regmap.GeneratorEventsRefused:   ": the state does not allow it",
		regmap.GeneratorEventsValue:     ": a value is outside the built limits",
		regmap.GeneratorEventsValue | regmap.GeneratorEventsBadFlow: ": a descriptor names a flow that is not enabled, a value is outside the built limits",
	} {
		c := newFakeCard()
		c.regs[regmap.GeneratorEvents] = bit
		if got := NewGenerator(c).errorText(); got != want {
			t.Errorf("events %#x: %q, want %q", bit, got, want)
		}
	}
}

// TestBursts checks the hash of one workload of every shape.
func TestBursts(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape func(*Burst)
		want  string
	}{
		{"fixed", func(*Burst) {}, "675c7338c4903341"},
		{"geometric", func(w *Burst) { w.BurstDist = Geometric }, "8fdafc847f1719c6"},
		{"exponential", func(w *Burst) { w.GapDist = Exponential }, "9f3f549fea119c78"},
		{"both", func(w *Burst) { w.BurstDist, w.GapDist = Geometric, Exponential }, "ee23bab5cd14073f"},
		{"smooth", func(w *Burst) { w.BurstPackets, w.BurstDist = 1, Geometric }, "a00894c6d11e7690"},
		{"active", func(w *Burst) { w.ActiveClusters = 4 }, "ba99f028d507ad4b"},
		{"runs", func(w *Burst) { w.ClusterRunProb = 0.5 }, "2e9f2c749b371ce1"},
		{"equal", func(w *Burst) { w.ClusterSigma = 0 }, "8bd7b11afb43c93f"},
		{"short holds", func(w *Burst) { w.HoldBursts, w.BurstPackets = 2, 10 }, "5e3887ccc75f7433"},
	} {
		w := table1(t)
		w.UpdatesPerWorker = 40
		c.shape(&w)
		h := fnv.New64a()
		words := make([]uint32, regmap.DescriptorWords)
		for _, d := range play(t, w, 7) {
			d.Put(words)
			fmt.Fprint(h, words)
		}
		if got := fmt.Sprintf("%016x", h.Sum64()); got != c.want {
			t.Errorf("%s hashes to %s, was %s", c.name, got, c.want)
		}
	}
}

// TestBurstLength checks the burst lengths that are drawn at known points.
func TestBurstLength(t *testing.T) {
	for _, c := range []struct {
		dist    string
		mean    int
		uniform float64
		want    int
	}{
		{Fixed, 5, 0.9, 5}, {Geometric, 1, 0.9, 1}, {Fixed, 1, 0.5, 1},
		{Geometric, 2, 0, 1}, {Geometric, 2, 0.49, 1}, {Geometric, 2, 0.51, 2}, {Geometric, 2, 0.76, 3}, {Geometric, 4, 0.26, 2},
		{Geometric, maxBurst, math.Nextafter(1, 0), 1 + int(math.Floor(math.Log(math.Pow(2, -53))/math.Log(1-1.0/maxBurst)))},
	} {
		w := Burst{BurstDist: c.dist, BurstPackets: c.mean}
		if got := w.burstLength(c.uniform); got != c.want {
			t.Errorf("%s of mean %d at %v: %d, want %d", c.dist, c.mean, c.uniform, got, c.want)
		}
	}
}

// TestLimitsOfAWorkload checks the last valid and the first invalid value for every field.
func TestLimitsOfAWorkload(t *testing.T) {
	for name, c := range map[string]struct{ good, bad func(*Burst) }{
		"workers, least": {func(w *Burst) { w.Workers, w.Clusters = 1, 1 }, func(w *Burst) { w.Workers, w.Clusters = 0, 0 }},
		"workers, most":  {func(w *Burst) { w.Workers = 65536 }, func(w *Burst) { w.Workers = 65537 }},
		"updates":        {func(w *Burst) { w.UpdatesPerWorker = 1 }, func(w *Burst) { w.UpdatesPerWorker = 0 }},
		"size, least":    {func(w *Burst) { w.Size = olaf.HeaderBytes }, func(w *Burst) { w.Size = olaf.HeaderBytes - 4 }},
		"size, most":     {func(w *Burst) { w.Size = olaf.MaxFrame }, func(w *Burst) { w.Size = olaf.MaxFrame + 4 }},
		"mean rate":      {func(w *Burst) { w.MeanRate = w.LineRate }, func(w *Burst) { w.MeanRate = w.LineRate + 1 }},
		"line rate":      {func(w *Burst) { w.LineRate = 128 * olaf.Gbps }, func(w *Burst) { w.LineRate = 128*olaf.Gbps + 1 }},
		"line rate, least": {func(w *Burst) { w.LineRate, w.MeanRate, w.UpdatesPerWorker = 1, 1, 1 },
			func(w *Burst) { w.LineRate, w.MeanRate = 0, 0 }},
		"burst, least":  {func(w *Burst) { w.BurstPackets = 1 }, func(w *Burst) { w.BurstPackets = 0 }},
		"burst, most":   {func(w *Burst) { w.BurstPackets = maxBurst }, func(w *Burst) { w.BurstPackets = maxBurst + 1 }},
		"sigma, least":  {func(w *Burst) { w.ClusterSigma = 0 }, func(w *Burst) { w.ClusterSigma = -0.5 }},
		"sigma, most":   {func(w *Burst) { w.ClusterSigma = maxSigma }, func(w *Burst) { w.ClusterSigma = maxSigma + 0.5 }},
		"runs, least":   {func(w *Burst) { w.ClusterRunProb = 0 }, func(w *Burst) { w.ClusterRunProb = -0.5 }},
		"runs, most":    {func(w *Burst) { w.ClusterRunProb = 0.999 }, func(w *Burst) { w.ClusterRunProb = 1 }},
		"active, least": {func(w *Burst) { w.ActiveClusters = 0 }, func(w *Burst) { w.ActiveClusters = -1 }},
		"active, most":  {func(w *Burst) { w.ActiveClusters = 9 }, func(w *Burst) { w.ActiveClusters = 10 }},
		"holds":         {func(w *Burst) { w.HoldBursts = 1 }, func(w *Burst) { w.HoldBursts = 0 }},
	} {
		good, bad := table1(t), table1(t)
		c.good(&good)
		if c.bad(&bad); good.Validate() != nil && !strings.Contains(good.Validate().Error(), "it lasts") ||
			!errors.Is(bad.Validate(), ErrWorkload) {
			t.Errorf("%s: the last good one %v, the first bad one %v", name, good.Validate(), bad.Validate())
		}
	}
}

// TestAddressesReachTheEnd checks that the last worker can have the last possible address.
func TestAddressesReachTheEnd(t *testing.T) {
	a := Addressing{Workers: netip.MustParseAddr("255.255.255.0"), Server: netip.MustParseAddr("10.0.0.1")}
	if err := a.Validate(256); err != nil {
		t.Error(err)
	}
	if err := a.Validate(257); !errors.Is(err, ErrWorkload) {
		t.Errorf("one worker more: %v", err)
	}
}

// TestFractionsAddUp checks that parts of a cycle are added up to just below one, and to one.
func TestFractionsAddUp(t *testing.T) {
	for _, c := range []struct {
		clock burstClock
		want  uint64
	}{
		{burstClock{mean: 2, line: 3, parts: 1, p: 1}, 83_333_333},   // 1/2 + 1/3
		{burstClock{mean: 3, line: 3, parts: 2, p: 1}, 83_333_334},   // 2/3 + 1/3
		{burstClock{mean: 3, line: 3, parts: 1, cycles: 9, p: 0}, 9}, // 1/3
		{burstClock{mean: 2, line: 3, parts: 1, cycles: 100_000_000, p: -1}, 100_000_000 - 83_333_333},
		{burstClock{mean: 6, line: 3, parts: 1, cycles: 100_000_000, p: -1}, 100_000_000 - 83_333_334},
	} {
		if got := c.clock.nextCycle(0); got != c.want {
			t.Errorf("%+v: %d, want %d", c.clock, got, c.want)
		}
	}
}

// TestFenwickGrows checks one tree over more and more weights, and over none.
func TestFenwickGrows(t *testing.T) {
	var f fenwick
	for n := range 40 {
		weights := make([]uint64, n)
		for i := range weights {
			weights[i] = 1
		}
		f.build(weights)
		for i := range weights {
			if got := f.find(uint64(i)); got != i {
				t.Errorf("%d of %d is at %d", i, n, got)
			}
		}
		if f.total != uint64(n) {
			t.Errorf("%d weights of 1 are %d", n, f.total)
		}
	}
}
