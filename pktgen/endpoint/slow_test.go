package endpoint

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// TestFrameTimeIsExact checks the time of a frame at a rate against exact arithmetic, up to a second.
func TestFrameTimeIsExact(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, frame olaf.Size, rate olaf.Rate) {
		w := &treeWorker{rate: rate}
		bits := new(big.Int).Mul(big.NewInt(int64(frame)), big.NewInt(8*int64(olaf.Second)))
		want := bits.Quo(bits, big.NewInt(int64(rate)))
		if second := big.NewInt(int64(olaf.Second)); want.Cmp(second) > 0 {
			want = second
		}
		if got := w.takes(frame); int64(got) != want.Int64() {
			t.Fatalf("%d bytes at %d bit/s take %s, want %d ps", frame, rate, got, want)
		}
	}
	for _, frame := range []olaf.Size{0, 1, 64, 1500, 1 << 21, 2305843, 2305844, 4611686, 4611687, 1 << 40} {
		for _, rate := range []olaf.Rate{1, 2, 3, 8, 1000, olaf.Gbps, math.MaxInt64} {
			check(t, frame, rate)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, olaf.Size(rapid.Int64Range(0, 1<<40).Draw(t, "frame")), olaf.Rate(rapid.Int64Range(1, 1<<40).Draw(t, "rate")))
	})
}

// TestContributors checks a set of workers against a map.
func TestContributors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "workers")
		c, want := make(contributors, (n+63)/64), map[int]bool{}
		for _, w := range rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, "added") {
			c.add(w)
			want[w] = true
		}
		for w := range n {
			if c.has(w) != want[w] {
				t.Fatalf("of %d workers %d is inside: %t", n, w, c.has(w))
			}
		}
	})
}

// TestRacks checks that every worker has one place in one rack, and that the workers in a packet's bitmaps match a list
// of all places.
func TestRacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 90).Draw(t, "workers")
		o := &ATP{Profile: atp.Paper, PerRack: rapid.IntRange(0, 31).Draw(t, "in a rack")}
		if o.check(&Config{Workers: workers}) != nil {
			t.Skip("more than a bitmap names")
		}
		type spot struct{ rack, at int }
		who, racks := map[spot]int{}, map[int]int{}
		for w := range workers {
			rack, at := o.place(w, workers)
			if other, taken := who[spot{rack, at}]; taken || rack < 0 || rack >= o.racks(workers) || at < 0 || at >= o.inRack(rack, workers) {
				t.Fatalf("worker %d of %d, %d in a rack: place %d in rack %d, where %d is", w, workers, o.PerRack, at, rack, other)
			}
			who[spot{rack, at}] = w
			racks[rack]++
		}
		most := len(racks)
		for rack, n := range racks {
			if n != o.inRack(rack, workers) {
				t.Fatalf("%d workers in rack %d, want %d", n, rack, o.inRack(rack, workers))
			}
			if most = max(most, n); len(racks) == 1 {
				most = n
			}
		}
		if len(racks) != o.racks(workers) || o.minFanIn(workers) != most {
			t.Fatalf("%d racks of %d workers, want %d; a fan-in of %d, want %d", len(racks), workers, o.racks(workers), o.minFanIn(workers), most)
		}
		p := &program.Packet{Bitmap: uint64(rapid.Uint32().Draw(t, "workers inside")) | uint64(rapid.SampledFrom([]uint32{0, 1, 2, 3, 5, math.MaxUint32}).Draw(t, "racks inside"))<<rackShift}
		several := 0
		for r := range 32 {
			several += int(p.Bitmap >> (rackShift + r) & 1)
		}
		var want []int
		for s, w := range who {
			rack, own := p.Bitmap>>(rackShift+s.rack)&1 == 1 || len(racks) == 1, p.Bitmap>>s.at&1 == 1
			if rack && (own || several > 1) {
				want = append(want, w)
			}
		}
		slices.Sort(want)
		if got := o.inside([]int{99}, p, workers); !slices.Equal(got, want) {
			t.Fatalf("%d workers, %d in a rack, bitmap %x: %d, want %d", workers, o.PerRack, p.Bitmap, got, want)
		}
	})
}

// TestPaces changes the rate of an XAgg worker. It checks that the schedule is kept before the first packet, and that
// afterwards the new rate applies to the last fragment.
func TestPaces(t *testing.T) {
	d := new(desk)
	e, err := NewXAgg(Config{Workers: 2, Layout: Layout{Values: 40, PerPacket: 10}, Updates: 1, Line: olaf.Gbps}, XAgg{Overhead: 60}, d)
	if err != nil {
		t.Fatal(err)
	}
	rate := func(now olaf.Time, r olaf.Rate) {
		e.Receive(now, &program.Packet{Kind: program.Control, Action: xagg.Rate, Value: uint64(r), Round: 9}, nil)
	}
	e.Start(0)
	e.OnComputed(0, nil)
	const us = olaf.Time(olaf.Microsecond)
	for i, step := range []struct {
		do   func()
		want olaf.Time
	}{
		{func() { rate(10*us, olaf.Mbps) }, 10 * us}, {func() { rate(20*us, 8*olaf.Mbps) }, 10 * us},
		{func() { e.Timer(20 * us) }, 110 * us}, // 100 bytes at 8 Mbps from 10 µs on
		{func() { rate(50*us, 4*olaf.Mbps) }, 210 * us}, {func() { rate(60*us, 80*olaf.Mbps) }, 60 * us}, {func() { rate(60*us, 0) }, 60*us + olaf.Time(olaf.Second) - 10*us},
	} {
		if step.do(); e.Next() != step.want {
			t.Errorf("step %d: the next fragment is due at %s, want %s", i, e.Next(), step.want)
		}
	}
}

// TestSteadyEndpointsAllocateNothing checks that endpoints that keep memory for overlapping sums do not allocate in a
// long run.
func TestSteadyEndpointsAllocateNothing(t *testing.T) {
	cfg := Config{Workers: 2, Layout: Layout{Values: 4, PerPacket: 2}, Updates: 1 << 30}
	d := new(idle)
	server, err := NewOpenServer(cfg, Olaf{}, d)
	if err != nil {
		t.Fatal(err)
	}
	worker, err := NewISwitchAsync(cfg, Async{Bound: 1}, d)
	if err != nil {
		t.Fatal(err)
	}
	worker.Start(0)
	lanes, data := make([]uint32, 2), &program.Packet{Kind: program.Data, Count: 1, Lanes: 2}
	parts := []program.Packet{{Kind: program.Result, Lanes: 2}, {Kind: program.Result, Seg: 1, Lanes: 2}}
	for name, round := range map[string]func(){
		"server": func() {
			for range 3 {
				server.Receive(0, data, lanes)
			}
			for range 3 {
				server.OnApplied(0)
			}
		},
		"worker": func() {
			for i := range 4 {
				worker.Receive(0, &parts[i/2], lanes)
			}
			worker.OnApplied(0)
			worker.OnApplied(0)
		},
	} {
		if n := testing.AllocsPerRun(100, round); n > 0 {
			t.Errorf("the %s allocates %v times a round", name, n)
		}
	}
}

// keeper is a desk that stores the last sum.
type keeper struct {
	desk
	last Aggregate
}

func (k *keeper) Apply(a *Aggregate) {
	k.desk.Apply(a)
	k.last = *a
}

// idle is a host that does nothing.
type idle struct{}

func (idle) Compute(uint32)                                 {}
func (idle) Message()                                       {}
func (idle) Apply(*Aggregate)                               {}
func (idle) Send(Peer, *program.Packet, []uint32) olaf.Time { return 0 }

// TestRingAppliesOnce checks a worker whose predecessor is a round ahead and sends while the worker applies.
func TestRingAppliesOnce(t *testing.T) {
	d := new(keeper)
	e, err := NewRing(Config{Workers: 2, Layout: Layout{Values: 4, PerPacket: 2}, Updates: 2}, d)
	if err != nil {
		t.Fatal(err)
	}
	e.Start(0)
	e.OnComputed(0, nil)
	for i, step := range []uint32{0, 1, 0, 1} {
		e.Receive(0, &program.Packet{Kind: program.Data, Index: step, Lanes: 2, Trace: program.NewTrace(1, step, 7)}, nil)
		if want := min(i, 1); d.applies != want {
			t.Fatalf("after packet %d it has applied %d sums, want %d", i, d.applies, want)
		}
	}
	// The first chunk arrived last; the second has both contributions.
	if a := d.last; a.Trace != program.NewTrace(1, 1, 7) || a.Vectors != 1 || !a.Torn {
		t.Errorf("%+v", a)
	}
	if e.OnApplied(0); d.computes != 2 {
		t.Errorf("%d gradients", d.computes)
	}
	if e.OnComputed(0, nil); d.applies != 2 {
		t.Errorf("the second sum was here, and is applied %d times", d.applies-1)
	}
}
