package p4inc

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

func TestVectors(t *testing.T) { programtest.RunVectors(t, Describe(), 8) }

func TestRefusals(t *testing.T) {
	two := programtest.NewMembers(2)
	configs := []program.Config{{Slots: -1}, {Slots: MaxSlots + 1}, {LaneMemory: -1}, {Profile: "p5"}, {Wrap: true}}
	programtest.CheckRefusals(t, Describe(), configs, []program.Job{{ID: 1, Members: programtest.NewMembers(2), Slots: 4}}, map[string]program.Job{
		"nobody":                {ID: 2, Base: 4},
		"beyond the table":      {ID: 2, Base: 6, Slots: 3, Members: two},
		"another job's segment": {ID: 2, Base: 3, Slots: 2, Members: two},
		"part of the workers":   {ID: 2, Base: 4, Fan: 1, Members: two},
		"under another switch":  {ID: 2, Base: 4, Parent: true, Members: two},
		"above other switches":  {ID: 2, Base: 4, Level: 1, Members: two},
		"without a port":        {ID: 2, Base: 4, Members: []program.Member{{Port: program.Uplink}}},
		"more than a bitmap":    {ID: 2, Base: 4, Members: programtest.NewMembers(MaxMembers + 1)},
	})
}

// reference is a slow, simple table. It stores the contributions to every aggregator by fragment, and all sums so far.
type reference struct {
	workers int
	parts   map[int]map[int]int64 // contributions by aggregator and worker, to the fragment in of
	of      map[int]int
	sums    map[int]map[int]int64 // by aggregator and fragment
	latest  map[int]int           // last completed fragment, by aggregator
	out     []string
}

func (r *reference) data(at, seg, worker int, value int64) string {
	latest, any := r.latest[at]
	switch {
	case any && seg < latest:
		return "stale"
	case any && seg == latest:
		r.out = append(r.out, fmt.Sprintf("port:%d result %d %d", worker, seg, r.sums[at][seg]))
		return "duplicate_answered"
	case len(r.parts[at]) > 0 && r.of[at] > seg:
		r.parts[at] = nil
	case len(r.parts[at]) > 0 && r.of[at] < seg:
		r.out = append(r.out, fmt.Sprintf("port:%d control %d", worker, seg))
		return "asynchronous"
	}
	if len(r.parts[at]) == 0 {
		r.parts[at], r.of[at] = map[int]int64{}, seg
	}
	if _, inside := r.parts[at][worker]; inside {
		return "duplicate_dropped"
	}
	r.parts[at][worker] = value
	if len(r.parts[at]) < r.workers {
		return "consumed"
	}
	sum := int64(0)
	for _, v := range r.parts[at] {
		sum += v
	}
	if r.sums[at] == nil {
		r.sums[at] = map[int]int64{}
	}
	r.sums[at][seg], r.latest[at], r.parts[at] = sum, seg, nil
	r.out = append(r.out, fmt.Sprintf("down result %d %d", seg, sum))
	return "completed"
}

type recorder struct{ lines []string }

func (r *recorder) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	line := fmt.Sprintf("%s %s %d", to, p.Kind, p.Seg)
	if p.Kind == program.Result {
		line += fmt.Sprintf(" %d", int32(lanes[0]))
	}
	r.lines = append(r.lines, line)
}

// TestAgainstReference checks that any order of packets and repeats has the same effect as on the reference.
func TestAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 4).Draw(t, "workers")
		r := &reference{workers: workers, parts: map[int]map[int]int64{}, of: map[int]int{}, sums: map[int]map[int]int64{},
			latest: map[int]int{}}
		s, err := New(program.Config{Slots: 2, LaneMemory: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Configure(program.Job{Members: programtest.NewMembers(workers)}); err != nil {
			t.Fatal(err)
		}
		d, out := Describe(), &recorder{}
		packets := rapid.IntRange(1, 150).Draw(t, "packets")
		for k := range packets {
			at, worker := rapid.IntRange(0, 1).Draw(t, "at"), rapid.IntRange(0, workers-1).Draw(t, "worker")
			seg, value := max(0, k/12+rapid.IntRange(-1, 1).Draw(t, "seg")), rapid.Int64Range(-1000, 1000).Draw(t, "value")
			p := &program.Packet{Kind: program.Data, Seg: uint64(seg), Index: uint32(at), Lanes: 1,
				Trace: program.NewTrace(olaf.WorkerID(worker), uint32(seg), 1)}
			have := d.ClassName(s.Receive(0, program.Port(worker), p, []uint32{uint32(int32(value))}, out))
			if want := r.data(at, seg, worker, value); have != want {
				t.Fatalf("%d of %d at %d is %s, the reference says %s", seg, worker, at, have, want)
			}
		}
		if !slices.Equal(out.lines, r.out) {
			t.Fatalf("left %q, the reference %q", out.lines, r.out)
		}
		programtest.CheckAccount(t, &d, s, uint64(packets))
		held := 0
		for _, parts := range r.parts {
			if len(parts) > 0 {
				held++
			}
		}
		if s.CountOccupied() != held {
			t.Fatalf("%d aggregators are held, the reference holds %d", s.CountOccupied(), held)
		}
	})
}

// TestChangedJob checks that a job that is configured again starts anew: waiting contributions are cleared and counted,
// and the last sum is not sent as an answer any more.
func TestChangedJob(t *testing.T) {
	s, err := New(program.Config{Slots: 2, LaneMemory: 1})
	if err != nil {
		t.Fatal(err)
	}
	job := program.Job{ID: 3, Members: programtest.NewMembers(2)}
	out := &recorder{}
	send := func(from program.Port, index uint32) program.Class {
		p := program.Packet{Kind: program.Data, Job: 3, Seg: 5, Index: index, Lanes: 1,
			Trace: program.NewTrace(olaf.WorkerID(from), 1, 1)}
		return s.Receive(0, from, &p, []uint32{4}, out)
	}
	for round := range int64(2) {
		if err := s.Configure(job); err != nil {
			t.Fatal(err)
		}
		if s.CountOccupied() > 0 || s.Slot(0).Occupied || s.Slot(1).Occupied {
			t.Errorf("round %d begins with %d aggregators held", round, s.CountOccupied())
		}
		d := Describe()
		if n := d.CountsOf(s).Of("vectors_cleared"); n != round {
			t.Errorf("round %d begins with %d vectors cleared", round, n)
		}
		if a, b, c := send(0, 0), send(1, 0), send(0, 1); a != Consumed || b != Completed || c != Consumed {
			t.Errorf("round %d: classes %d, %d and %d", round, a, b, c)
		}
	}
}

// TestWithoutLanes checks that a switch that does not store lanes does not emit any.
func TestWithoutLanes(t *testing.T) {
	s, err := New(program.Config{Slots: 1})
	if err == nil {
		err = s.Configure(program.Job{Members: programtest.NewMembers(2)})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Receive(0, 0, &program.Packet{Kind: program.Data, Lanes: 1}, []uint32{7}, nobody{})
	if view := s.Slot(0); !view.Occupied || view.Lanes != nil {
		t.Errorf("%+v", view)
	}
}

type nobody struct{}

func (nobody) Emit(program.Dest, *program.Packet, []uint32) {}

func BenchmarkReceive(b *testing.B) {
	for _, lanes := range []int{0, Lanes} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			s, err := New(program.Config{LaneMemory: lanes})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Configure(program.Job{Members: programtest.NewMembers(8)}); err != nil {
				b.Fatal(err)
			}
			data := make([]uint32, lanes)
			p := &program.Packet{Kind: program.Data, Lanes: uint16(lanes), Trace: program.NewTrace(1, 1, 1)}
			b.ReportAllocs()
			port := program.Port(0)
			for b.Loop() {
				s.Receive(0, port, p, data, nobody{})
				if port++; port == 8 {
					port = 0
					p.Seg++
					p.Index = uint32(p.Seg % DefaultSlots)
				}
			}
		})
	}
}
