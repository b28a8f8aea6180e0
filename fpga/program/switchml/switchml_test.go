package switchml

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

func TestVectors(t *testing.T) { programtest.RunVectors(t, Describe(), 24) }

// reference is a slow, simple pool. It stores, for every set, the contributors, their packets, and the number of
// missing packets.
type reference struct {
	workers int
	inside  map[place]map[int]bool
	came    map[place][][]int32
	missing map[place]int
	out     []string
}

type place struct{ slot, set int }

func (r *reference) data(port int, at place, values []int32) string {
	if r.inside[at] == nil {
		r.inside[at] = map[int]bool{}
	}
	before, mine := len(r.inside[at]), r.inside[at][port]
	r.inside[at][port] = true
	delete(r.inside[place{at.slot, 1 - at.set}], port)
	switch {
	case mine && r.missing[at] > 0:
		return "duplicate_dropped"
	case mine:
		r.out = append(r.out, r.line(fmt.Sprintf("port:%d", port), at))
		return "duplicate_answered"
	case before == 0:
		r.came[at] = nil
	}
	r.came[at] = append(r.came[at], values)
	switch {
	case r.workers == 1:
	case r.missing[at] == 0:
		r.missing[at] = r.workers - 1
		return "consumed"
	default:
		if r.missing[at]--; r.missing[at] > 0 {
			return "consumed"
		}
	}
	r.out = append(r.out, r.line("down", at))
	return "completed"
}

func (r *reference) line(to string, at place) string {
	sum := make([]int32, len(r.came[at][0]))
	for _, values := range r.came[at] {
		for i, v := range values {
			sum[i] += v
		}
	}
	return fmt.Sprintf("%s %d/%d %v", to, at.slot, at.set, sum)
}

type recorder struct{ lines []string }

func (r *recorder) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	sum := make([]int32, len(lanes))
	for i, w := range lanes {
		sum[i] = int32(w)
	}
	set := 0
	if p.Flags&program.Set1 != 0 {
		set = 1
	}
	r.lines = append(r.lines, fmt.Sprintf("%s %d/%d %v", to, p.Index, set, sum))
}

// TestAgainstReference checks that any order of packets, including stale ones and repeats, has the same effect as on
// the reference.
func TestAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &reference{workers: rapid.IntRange(1, 5).Draw(t, "workers"), inside: map[place]map[int]bool{}, came: map[place][][]int32{},
			missing: map[place]int{}}
		s, err := New(program.Config{Slots: 2, LaneMemory: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Configure(program.Job{Members: programtest.NewMembers(r.workers)}); err != nil {
			t.Fatal(err)
		}
		d := Describe()
		out := &recorder{}
		packets := rapid.IntRange(1, 200).Draw(t, "packets")
		for range packets {
			port, at := rapid.IntRange(0, r.workers-1).Draw(t, "port"),
				place{rapid.IntRange(0, 1).Draw(t, "slot"), rapid.IntRange(0, 1).Draw(t, "set")}
			values := rapid.SliceOfN(rapid.Int32(), 2, 2).Draw(t, "values")
			p := &program.Packet{Kind: program.Data, Index: uint32(at.slot), Flags: program.Set1 * program.Flags(at.set), Lanes: 2,
				Trace: program.NewTrace(olaf.WorkerID(port), 0, 1)}
			have := d.ClassName(s.Receive(0, program.Port(port), p, []uint32{uint32(values[0]), uint32(values[1])}, out))
			if want := r.data(port, at, values); have != want {
				t.Fatalf("%v of %d is %s, the reference says %s", at, port, have, want)
			}
		}
		if !slices.Equal(out.lines, r.out) {
			t.Fatalf("left %q, the reference %q", out.lines, r.out)
		}
		programtest.CheckAccount(t, &d, s, uint64(packets))
		waiting := 0
		for _, n := range r.missing {
			if n > 0 {
				waiting++
			}
		}
		if s.CountOccupied() != waiting {
			t.Fatalf("%d sets wait, the reference has %d", s.CountOccupied(), waiting)
		}
	})
}

func TestRefusals(t *testing.T) {
	configs := []program.Config{{Slots: -1}, {Slots: maxSlots + 1}, {LaneMemory: -1}, {Profile: "tofino2"}, {Wrap: true}}
	s := programtest.CheckRefusals(t, Describe(), configs, []program.Job{{ID: 1, Members: programtest.NewMembers(2), Slots: 4}}, map[string]program.Job{
		"nobody":        {ID: 2, Base: 4},
		"too many":      {ID: 2, Base: 4, Members: programtest.NewMembers(maxMembers + 1)},
		"overlap":       {ID: 2, Base: 3, Slots: 2, Members: programtest.NewMembers(2)},
		"beyond":        {ID: 2, Base: 4, Slots: 5, Members: programtest.NewMembers(2)},
		"another fan":   {ID: 2, Base: 4, Members: programtest.NewMembers(2), Fan: 3},
		"no port of it": {ID: 2, Base: 4, Members: []program.Member{{Port: program.Uplink}}},
	})
	s.Remove(1)
	if err := s.Configure(program.Job{ID: 2, Members: programtest.NewMembers(maxMembers)}); err != nil {
		t.Errorf("after the other job went: %v", err)
	}
}

type nobody struct{}

func (nobody) Emit(program.Dest, *program.Packet, []uint32) {}

func BenchmarkReceive(b *testing.B) {
	for _, lanes := range []int{0, Lanes256, Lanes1024} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			s, err := New(program.Config{Slots: 512, LaneMemory: lanes})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Configure(program.Job{Members: programtest.NewMembers(8)}); err != nil {
				b.Fatal(err)
			}
			data := make([]uint32, lanes)
			p := &program.Packet{Kind: program.Data, Lanes: uint16(lanes), Count: 1, Trace: program.NewTrace(1, 1, 1)}
			b.ReportAllocs()
			for b.Loop() {
				for port := range program.Port(8) {
					s.Receive(0, port, p, data, nobody{})
				}
				if p.Index++; p.Index == 512 {
					p.Index = 0
					p.Flags ^= program.Set1
				}
			}
			programtest.PerDecision(b, 8)
		})
	}
}
