package iswitch

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
	"pgregory.net/rapid"
)

// reference is a slow, simple iSwitch. It stores every packet of a segment and sums them when there are enough.
type reference struct {
	members, h, slots int
	exact, parent     bool
	parts             map[uint64][]arrival
	over              map[uint64]uint16 // isw-x: the latest complete round of each segment
	out               []string
}

type arrival struct {
	port   int
	round  uint16
	values []float32
}

func (r *reference) data(port int, seg uint64, round uint16, values []float32) string {
	if seg >= uint64(r.slots) {
		return "out_of_range"
	}
	have := r.parts[seg]
	if len(have) > 0 && len(have[0].values) != len(values) {
		return "mismatch"
	}
	if r.exact {
		if done, ok := r.over[seg]; ok && round <= done {
			return "duplicate_dropped"
		}
		for _, a := range have {
			if a.port == port || a.round != round {
				return "duplicate_dropped"
			}
		}
	}
	have = append(have, arrival{port, round, values})
	r.parts[seg] = have
	if len(have) < r.h {
		return "consumed"
	}
	r.emit(seg)
	return "completed"
}

func (r *reference) emit(seg uint64) {
	have := r.parts[seg]
	sum := make([]float32, len(have[0].values))
	for _, a := range have {
		for i, v := range a.values {
			sum[i] = float32(sum[i] + v)
		}
	}
	to := "down"
	if r.parent {
		to = "up"
	}
	r.out = append(r.out, line(to, seg, len(have), sum))
	r.over[seg] = have[0].round
	delete(r.parts, seg)
}

func line(to string, seg uint64, count int, sum []float32) string {
	return fmt.Sprintf("%s seg=%d count=%d %x", to, seg, count, sum)
}

// recorder is an Out that records departures in the format of the reference.
type recorder struct{ lines []string }

func (r *recorder) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	if p.Kind == program.Control {
		return
	}
	sum := make([]float32, len(lanes))
	for i, w := range lanes {
		sum[i] = math.Float32frombits(w)
	}
	r.lines = append(r.lines, line(to.String(), p.Seg, int(p.Count), sum))
}

func TestAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &reference{
			members: rapid.IntRange(1, 5).Draw(t, "members"), slots: rapid.IntRange(1, 3).Draw(t, "slots"),
			exact: rapid.Bool().Draw(t, "exact"), parent: rapid.Bool().Draw(t, "parent"),
			parts: map[uint64][]arrival{}, over: map[uint64]uint16{},
		}
		r.h = rapid.IntRange(1, r.members).Draw(t, "h")
		cfg := program.Config{Slots: r.slots, LaneMemory: 3, Profile: Published}
		if r.exact {
			cfg.Profile = Exactly
		}
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		j := program.Job{Fan: r.h, Parent: r.parent}
		for m := range r.members {
			j.Members = append(j.Members, program.Member{Worker: olaf.WorkerID(m), Port: program.Port(m)})
		}
		if err := s.Configure(j); err != nil {
			t.Fatal(err)
		}
		d := Describe()
		out := &recorder{}
		arrivals := uint64(0)
		rounds := map[uint64]uint16{}
		for range rapid.IntRange(1, 60).Draw(t, "packets") {
			seg := rapid.Uint64Range(0, uint64(r.slots)).Draw(t, "seg")
			if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
				s.Receive(0, 0, &program.Packet{Kind: program.Control, Action: ForceBroadcast, Seg: seg}, nil, out)
				arrivals++
				if len(r.parts[seg]) > 0 {
					r.emit(seg)
				}
				continue
			}
			port := rapid.IntRange(0, r.members-1).Draw(t, "port")
			rounds[seg] += uint16(rapid.IntRange(0, 3).Draw(t, "later") / 3)
			round := rounds[seg] + 1 - min(rounds[seg], uint16(rapid.IntRange(0, 2).Draw(t, "stale")/2))
			values := rapid.SliceOfN(rapid.Float32Range(-1e9, 1e9), 2, 3).Draw(t, "values")
			lanes := make([]uint32, len(values))
			for i, v := range values {
				lanes[i] = math.Float32bits(v)
			}
			kind := []program.Kind{program.Data, program.Result}[rapid.IntRange(0, 5).Draw(t, "result")/5] // a child's results are treated the same
			p := &program.Packet{Kind: kind, Seg: seg, Round: round, Lanes: uint16(len(lanes)),
				Trace: program.NewTrace(olaf.WorkerID(port), uint32(round), 1)}
			have := d.ClassName(s.Receive(0, program.Port(port), p, lanes, out))
			arrivals++
			if want := r.data(port, seg, round, values); have != want {
				t.Fatalf("seg %d round %d of %d: %s, the reference says %s", seg, round, port, have, want)
			}
		}
		if !slices.Equal(out.lines, r.out) {
			t.Fatalf("left %q, the reference %q", out.lines, r.out)
		}
		programtest.CheckAccount(t, &d, s, arrivals)
		held := 0
		for _, parts := range r.parts {
			held += len(parts)
		}
		if n := d.CountsOf(s).Of("vectors_held"); n != int64(held) || s.CountOccupied() != len(r.parts) {
			t.Fatalf("%d vectors in %d slots; the reference has %d in %d", n, s.CountOccupied(), held, len(r.parts))
		}
	})
}

// TestTree checks I8: two switches with two workers each below a root. The root emits once, and each switch relays
// once.
func TestTree(t *testing.T) {
	build := func(parent bool) *Switch {
		s, err := New(program.Config{Slots: 1, LaneMemory: 1})
		if err != nil {
			t.Fatal(err)
		}
		members := []program.Member{{Worker: 0, Port: 0}, {Worker: 1, Port: 1}}
		if err := s.Configure(program.Job{Members: members, Parent: parent}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	root, leaves := build(false), []*Switch{build(true), build(true)}
	results := [2][]float32{}
	for i, value := range []float32{1, 2, 4, 8} {
		leaf := i / 2
		up := &collector{}
		p := &program.Packet{Kind: program.Data, Lanes: 1, Count: 1, Trace: program.NewTrace(olaf.WorkerID(i), 0, uint64(i))}
		leaves[leaf].Receive(0, program.Port(i%2), p, []uint32{math.Float32bits(value)}, up)
		for _, e := range up.sent {
			if e.to != program.Up {
				t.Fatalf("a leaf sends %v", e.to)
			}
			down := &collector{}
			root.Receive(0, program.Port(leaf), &e.packet, e.lanes, down)
			for _, r := range down.sent {
				for k := range leaves {
					relayed := &collector{}
					if class := leaves[k].Receive(0, program.Uplink, &r.packet, r.lanes, relayed); class != Relayed {
						t.Fatalf("class %d", class)
					}
					for _, e := range relayed.sent {
						results[k] = append(results[k], math.Float32frombits(e.lanes[0]))
						want := program.Trace{}
						for w := range 4 {
							c := program.NewTrace(olaf.WorkerID(w), 0, uint64(w))
							want.Add(&c)
						}
						if e.packet.Trace != want {
							t.Errorf("inside %+v, want %+v", e.packet.Trace, want)
						}
					}
				}
			}
		}
	}
	for k, r := range results {
		if !slices.Equal(r, []float32{15}) {
			t.Errorf("switch %d relays %v", k, r)
		}
	}
}

type emission struct {
	to     program.Dest
	packet program.Packet
	lanes  []uint32
}

type collector struct{ sent []emission }

func (c *collector) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	c.sent = append(c.sent, emission{to, *p, slices.Clone(lanes)})
}

type nobody struct{}

func (nobody) Emit(program.Dest, *program.Packet, []uint32) {}

func BenchmarkReceive(b *testing.B) {
	for _, lanes := range []int{0, Lanes} {
		for _, segments := range []int{28, 4594} {
			b.Run(fmt.Sprintf("lanes=%d/segments=%d", lanes, segments), func(b *testing.B) {
				s, err := New(program.Config{Slots: segments, LaneMemory: lanes})
				if err != nil {
					b.Fatal(err)
				}
				j := program.Job{}
				for m := range 4 {
					j.Members = append(j.Members, program.Member{Worker: olaf.WorkerID(m), Port: program.Port(m)})
				}
				if err := s.Configure(j); err != nil {
					b.Fatal(err)
				}
				data := make([]uint32, lanes)
				for i := range data {
					data[i] = math.Float32bits(float32(i))
				}
				p := &program.Packet{Kind: program.Data, Lanes: Lanes, Count: 1, Trace: program.NewTrace(1, 1, 1)}
				b.ReportAllocs()
				for b.Loop() {
					for port := range program.Port(4) {
						s.Receive(0, port, p, data, nobody{})
					}
					if p.Seg++; p.Seg == uint64(segments) {
						p.Seg = 0
					}
				}
				programtest.PerDecision(b, 4)
			})
		}
	}
}
