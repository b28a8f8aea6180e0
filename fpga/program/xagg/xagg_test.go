package xagg

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

func TestVectors(t *testing.T) { programtest.RunVectors(t, Describe(), 15) }

// reference is a slow, simple server. It stores every packet and searches all of them for each answer.
type reference struct {
	children int
	wrapping bool
	came     []arrival
	out      []string
}

type arrival struct {
	child, seg int
	epoch      int // does not wrap around
	values     []int64
}

func (r *reference) data(child, seg, epoch int, values []int64) string {
	newest, inside, length := -1, 0, 0
	for _, a := range r.came {
		if a.seg == seg && a.epoch > newest {
			newest, inside, length = a.epoch, 0, len(a.values)
		}
		if a.seg == seg && a.epoch == newest {
			inside++
		}
	}
	same := func(a arrival) bool { return a.seg == seg && a.epoch == epoch && a.child == child }
	switch {
	case epoch < newest:
		return "late"
	case slices.ContainsFunc(r.came, same):
		return "duplicate_dropped"
	case epoch == newest && length != len(values):
		return "mismatch"
	case epoch > newest:
		inside = 0
	}
	r.came = append(r.came, arrival{child, seg, epoch, values})
	if inside+1 < r.children {
		return "consumed"
	}
	r.out = append(r.out, fmt.Sprintf("down %d of %d %v", seg, epoch, r.sum(seg, epoch)))
	return "completed"
}

func (r *reference) sum(seg, epoch int) []int64 {
	var sum []int64
	for _, a := range r.came {
		if a.seg != seg || a.epoch != epoch {
			continue
		}
		if sum == nil {
			sum = slices.Clone(a.values)
			continue
		}
		for i, v := range a.values {
			sum[i] += v
			if r.wrapping {
				sum[i] = int64(int32(sum[i]))
			} else {
				sum[i] = max(math.MinInt32, min(math.MaxInt32, sum[i]))
			}
		}
	}
	return sum
}

type recorder struct{ lines []string }

func (r *recorder) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	if p.Kind == program.Control {
		return
	}
	var sum []int64
	for _, w := range lanes {
		sum = append(sum, int64(int32(w)))
	}
	r.lines = append(r.lines, fmt.Sprintf("%s %d of %d %v", to, p.Seg, p.Round, sum))
}

// TestAgainstReference checks that any order of packets, including repeats, stale ones and ones of other lengths, has
// the same effect as on the reference.
func TestAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &reference{children: rapid.IntRange(1, 5).Draw(t, "children"), wrapping: rapid.Bool().Draw(t, "wrapping")}
		cfg := program.Config{Slots: 2, LaneMemory: 3, Profile: map[bool]string{true: Wrapping}[r.wrapping]}
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Configure(program.Job{Members: programtest.NewMembers(r.children)}); err != nil {
			t.Fatal(err)
		}
		d := Describe()
		out := &recorder{}
		packets, epoch := rapid.IntRange(1, 200).Draw(t, "packets"), 10
		for range packets {
			epoch += rapid.IntRange(0, 9).Draw(t, "later") / 9
			child, seg, of := rapid.IntRange(0, r.children-1).Draw(t, "child"), rapid.IntRange(0, 1).Draw(t, "seg"),
				epoch-rapid.IntRange(0, 9).Draw(t, "stale")/9
			n := 2 + rapid.IntRange(0, 9).Draw(t, "longer")/9
			values, lanes := make([]int64, n), make([]uint32, n)
			for i := range values {
				v := rapid.Int32().Draw(t, "value")
				values[i], lanes[i] = int64(v), uint32(v)
			}
			p := &program.Packet{Kind: program.Data, Seg: uint64(seg), Round: uint16(of), Count: 1, Lanes: uint16(n),
				Trace: program.NewTrace(olaf.WorkerID(child), uint32(of), 1)}
			have := d.ClassName(s.Receive(0, program.Port(child), p, lanes, out))
			if want := r.data(child, seg, of, values); have != want {
				t.Fatalf("fragment %d of epoch %d of child %d is %s, the reference says %s", seg, of, child, have, want)
			}
		}
		if !slices.Equal(out.lines, r.out) {
			t.Fatalf("left %q, the reference %q", out.lines, r.out)
		}
		programtest.CheckAccount(t, &d, s, uint64(packets))
	})
}

func TestRefusals(t *testing.T) {
	configs := []program.Config{{Slots: -1}, {Slots: maxSlots + 1}, {LaneMemory: -1}, {Profile: "lockless"}, {Wrap: true}}
	s := programtest.CheckRefusals(t, Describe(), configs, []program.Job{{ID: 1, Members: programtest.NewMembers(2), Slots: 4}}, map[string]program.Job{
		"nobody":        {ID: 2, Base: 4},
		"too many":      {ID: 2, Base: 4, Members: programtest.NewMembers(MaxMembers + 1)},
		"overlap":       {ID: 2, Base: 3, Slots: 2, Members: programtest.NewMembers(2)},
		"beyond":        {ID: 2, Base: 4, Slots: 5, Members: programtest.NewMembers(2)},
		"another fan":   {ID: 2, Base: 4, Members: programtest.NewMembers(2), Fan: 3},
		"no port of it": {ID: 2, Base: 4, Members: []program.Member{{Port: program.Uplink}}},
		"a rate":        {ID: 2, Base: 4, Members: programtest.NewMembers(2), In: -1},
	})
	s.Remove(1)
	if err := s.Configure(program.Job{ID: 2, Members: programtest.NewMembers(MaxMembers)}); err != nil {
		t.Errorf("after the other job went: %v", err)
	}
}

// TestChangedTree checks that a waiting fragment is discarded when the tree changes, and that it is counted.
func TestChangedTree(t *testing.T) {
	s, err := New(program.Config{Slots: 1, LaneMemory: 1})
	if err != nil {
		t.Fatal(err)
	}
	send := func(port program.Port, epoch uint16) program.Class {
		p := &program.Packet{Kind: program.Data, Round: epoch, Count: 1, Lanes: 1,
			Trace: program.NewTrace(olaf.WorkerID(port), 0, 1)}
		return s.Receive(0, port, p, []uint32{1}, &recorder{})
	}
	if err := s.Configure(program.Job{Members: programtest.NewMembers(2)}); err != nil {
		t.Fatal(err)
	}
	send(0, 1)
	if err := s.Configure(program.Job{Members: programtest.NewMembers(3)}); err != nil {
		t.Fatal(err)
	}
	for port, want := range []program.Class{Consumed, Consumed, Completed} {
		if have := send(program.Port(port), 3); have != want {
			t.Errorf("port %d: class %d, want %d", port, have, want)
		}
	}
	d := Describe()
	programtest.CheckAccount(t, &d, s, 4)
	if n := d.CountsOf(s).Of("vectors_cleared"); n != 1 {
		t.Errorf("%d vectors cleared", n)
	}
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		total      olaf.Rate
		asks, want []olaf.Rate
	}{
		{9, []olaf.Rate{9, 5, 9}, []olaf.Rate{3, 3, 3}},
		{10, []olaf.Rate{10, 5}, []olaf.Rate{5, 5}}, // paper, Fig. 1c
		{12, []olaf.Rate{2, 10, 10}, []olaf.Rate{2, 5, 5}},
		{0, []olaf.Rate{7, 9}, []olaf.Rate{7, 9}},
	} {
		if have := divideRate(c.total, c.asks); !slices.Equal(have, c.want) {
			t.Errorf("%v for %v are %v, want %v", c.total, c.asks, have, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		total := olaf.Rate(rapid.Int64Range(1, 1e6).Draw(t, "total"))
		asks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) olaf.Rate { return olaf.Rate(rapid.Int64Range(1, 1e6).Draw(t, "ask")) }),
			1, 8).Draw(t, "asks")
		shares := divideRate(total, asks)
		sum, most := olaf.Rate(0), slices.Max(shares)
		for i, v := range shares {
			sum += v
			if v > asks[i] {
				t.Fatalf("%d gets %d, asked for %d", i, v, asks[i])
			}
			// A worker that gets less than another, by more than rounding, must get all that it asked for.
			if v < asks[i] && v < most-olaf.Rate(len(asks)) {
				t.Fatalf("%v of %d for %v: place %d could have more", shares, total, asks, i)
			}
		}
		var wanted olaf.Rate
		for _, a := range asks {
			wanted += a
		}
		if sum > total || sum < min(total, wanted)-olaf.Rate(len(asks)) {
			t.Fatalf("%v are %d of %d for %v", shares, sum, total, asks)
		}
	})
}

func scaled(rates []olaf.Rate) (out []olaf.Rate) {
	for _, r := range rates {
		out = append(out, r*olaf.Gbps)
	}
	return out
}

// TestFig1Rates checks the published example: W1 and W2 send at 5 Gbps each while W3 computes, and nothing is requested
// from the root. W3 then gets the whole link of S1.
func TestFig1Rates(t *testing.T) {
	r := newRates(3, 10*olaf.Gbps, 10*olaf.Gbps)
	expect := func(what string, flow olaf.Rate, share ...olaf.Rate) {
		t.Helper()
		have, _ := r.computeShares()
		if have != flow*olaf.Gbps || !slices.Equal(r.share, scaled(share)) {
			t.Errorf("%s: %v up, shares %v; want %d, %v", what, have, r.share, flow, share)
		}
	}
	r.setReady(0, 1, 10*olaf.Gbps)
	expect("W1 alone", 0, 10, 0, 0)
	r.setReady(1, 1, 5*olaf.Gbps)
	expect("W1 and W2", 0, 5, 5, 0)
	r.setDone(0)
	r.setDone(1)
	r.setReady(2, 1, 10*olaf.Gbps)
	expect("W3", 10, 0, 0, 10)
	r.setGranted(4 * olaf.Gbps)
	expect("W3 where the parent grants less", 10, 0, 0, 4)
	r.setDone(2)
	expect("all", 0, 0, 0, 0)
}

type nobody struct{}

func (nobody) Emit(program.Dest, *program.Packet, []uint32) {}

func BenchmarkReceive(b *testing.B) {
	for _, profile := range []string{Saturating, Wrapping} {
		for _, lanes := range []int{0, 48, Lanes} {
			b.Run(fmt.Sprintf("%s/lanes=%d", profile, lanes), func(b *testing.B) {
				s, err := New(program.Config{Slots: 512, LaneMemory: lanes, Profile: profile})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Configure(program.Job{Members: programtest.NewMembers(8)}); err != nil {
					b.Fatal(err)
				}
				data := make([]uint32, lanes)
				p := &program.Packet{Kind: program.Data, Lanes: uint16(lanes), Count: 1, Trace: program.NewTrace(1, 1, 1)}
				b.ReportAllocs()
				port := program.Port(0)
				for b.Loop() {
					s.Receive(0, port, p, data, nobody{})
					if port++; port == 8 {
						port = 0
						if p.Seg++; p.Seg == 510 {
							p.Seg = 0
							p.Round++
						}
					}
				}
			})
		}
	}
}
