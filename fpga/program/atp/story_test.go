package atp

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// crowd draws a packet that three workers, the server or a stranger may send to a table of three aggregators. In half
// of the packets, workers set their bit themselves.
func crowd(r *rand.Rand) (program.Port, program.Packet) {
	from := program.Port(r.IntN(3))
	if r.IntN(25) == 0 {
		from = program.Port(3 + r.IntN(2))
	}
	p := program.Packet{
		Kind: program.Data, Job: olaf.ClusterID(r.IntN(9) / 7), Worker: olaf.WorkerID(from), Seg: uint64(r.IntN(8) / 6), Count: 1,
		Lanes: 2, Value: uint64(r.IntN(5)),
	}
	p.Index = (uint32(p.Job) + uint32(p.Seg)) % 3
	for _, rare := range []struct {
		in   int
		make func()
	}{
		{3, func() { p.Bitmap = 1 << from }}, {4, func() { p.Fan = uint16(1 + r.IntN(3)) }}, {6, func() { p.Flags |= program.ECN }},
		{8, func() { p.Flags |= program.Resend }}, {20, func() { p.Flags |= program.Overflow }}, {12,
			func() { p.Index = uint32(r.IntN(5)) }},
		{16, func() { p.Lanes = 3 }}, {4, func() { p.Flags |= program.Second }}, {30, func() { p.Seg |= 1 << 48 }},
		{8, func() { from, p.Kind = program.Uplink, program.Ack }},
		{25, func() { p.Kind = []program.Kind{program.Other, program.Result, program.Control}[r.IntN(3)] }}, {30,
			func() { from = program.Uplink }},
	} {
		if r.IntN(rare.in) == 0 {
			rare.make()
		}
	}
	return from, p
}

func TestStories(t *testing.T) {
	two := []program.Job{{ID: 0, Members: programtest.NewMembers(3)}, {ID: 1, Members: programtest.NewMembers(2), Fan: 2}}
	sparse := []program.Member{{Worker: 2, Port: 2}, {Worker: 0, Port: 0}}
	programtest.RunStories(t, Describe(),
		programtest.Story{Name: "released", Config: program.Config{Slots: 3, LaneMemory: 3}, Jobs: two, Packets: 300, Draw: crowd},
		programtest.Story{Name: "paper-first", Config: program.Config{Slots: 3, LaneMemory: 3, Profile: Paper},
			Jobs: []program.Job{{ID: 0, Members: sparse, Fan: 2}}, Packets: 250, Draw: crowd},
		programtest.Story{Name: "paper-second", Config: program.Config{Slots: 3, LaneMemory: 2, Profile: Paper},
			Jobs: []program.Job{{ID: 0, Members: programtest.NewMembers(3), Level: 1}}, Packets: 250, Draw: crowd},
		programtest.Story{Name: "without-lanes", Config: program.Config{Slots: 3}, Jobs: two[1:], Packets: 60, Draw: crowd},
	)
}

func TestBounds(t *testing.T) {
	n := programtest.NewMembers
	configs := []program.Config{
		{Slots: 8}, {}, {Profile: Released}, {Profile: Paper}, {Profile: "p5"}, {Slots: 1}, {Slots: -1}, {Slots: MaxSlots},
		{Slots: MaxSlots + 1},
		{Slots: 1, LaneMemory: olaf.MaxLanes}, {Slots: 1, LaneMemory: olaf.MaxLanes + 1}, {Slots: 1, LaneMemory: -1}, {Wrap: true},
	}
	jobs := []program.Job{
		{ID: 1, Members: n(MaxMembers)}, {ID: 1, Members: n(MaxMembers + 1)}, {ID: 1, Members: n(MaxFan)}, {ID: 1, Fan: MaxMembers},
		{ID: 1, Fan: MaxMembers + 1},
		{ID: 1, Fan: -1}, {ID: 1, Fan: MaxFan}, {ID: 1, Level: 1, Members: n(1)}, {ID: 1, Base: 1}, {ID: 1, Slots: 8},
		{ID: 1, Slots: 9}, {ID: 2, Members: n(1)},
		{ID: 2, Base: 7, Slots: 1}, {ID: 1, Slots: 7}, {ID: 3, Base: 6, Slots: 2},
	}
	programtest.TestBounds(t, Describe(), configs, jobs)
	t.Run("paper", func(t *testing.T) {
		s, err := New(program.Config{Slots: 8, Profile: Paper})
		if err != nil {
			t.Fatal(err)
		}
		for i, j := range jobs {
			refused := map[int]bool{0: true, 1: true, 3: true, 4: true, 5: true, 8: true, 10: true, 12: true, 14: true}[i]
			if err := s.Configure(j); (err != nil) != refused {
				t.Errorf("%+v: %v", j, err)
			}
		}
		if err := s.Configure(jobs[0]); err == nil || !strings.HasSuffix(err.Error(), "32 workers; profile paper takes 31") {
			t.Errorf("%v", err)
		}
	})
}

// TestLastSequence checks that the last sequence number that fits into a key belongs to its job and not to the next
// job.
func TestLastSequence(t *testing.T) {
	const last = 1<<48 - 1
	s, err := New(program.Config{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Configure(program.Job{Members: programtest.NewMembers(2)}); err != nil {
		t.Fatal(err)
	}
	for _, remove := range []olaf.ClusterID{1, 0} {
		s.Receive(0, 0, &program.Packet{Kind: program.Data, Seg: last}, nil, nil)
		if v := s.Slot(0); !v.Occupied || v.Job != 0 || v.Seg != last {
			t.Fatalf("%+v", v)
		}
		if s.Remove(remove); s.Slot(0).Occupied != (remove == 1) {
			t.Errorf("job %d is removed: held %t", remove, s.Slot(0).Occupied)
		}
	}
}

// TestParts checks that a job with a partition uses its aggregators from the first to the last, and no others.
func TestParts(t *testing.T) {
	for _, j := range []program.Job{{Base: 2, Slots: 3}, {Slots: 4}, {Base: 7, Slots: 1}, {Base: 5, Slots: 1}} {
		s, err := New(program.Config{Slots: 8})
		if err != nil {
			t.Fatal(err)
		}
		j.ID, j.Members = 1, programtest.NewMembers(2)
		if err := s.Configure(j); err != nil {
			t.Fatal(err)
		}
		for index := range 8 {
			class := s.Receive(0, 0, &program.Packet{Kind: program.Data, Job: 1, Seg: uint64(index), Index: uint32(index), Count: 1},
				nil, nobody{})
			if inside := index >= j.Base && index < j.Base+j.Slots; inside != (class == consumed) || !inside && class != outOfRange {
				t.Errorf("aggregator %d of a job with %d from %d: class %d", index, j.Slots, j.Base, class)
			}
		}
	}
}

// TestFanInOfOne checks that a job configured with a fan-in of one is complete with one contribution, although it has
// two workers.
func TestFanInOfOne(t *testing.T) {
	s, err := New(program.Config{Slots: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Configure(program.Job{ID: 1, Members: programtest.NewMembers(2), Fan: 1}); err != nil {
		t.Fatal(err)
	}
	if class := s.Receive(0, 0, &program.Packet{Kind: program.Data, Job: 1, Count: 1}, nil, nobody{}); class != completed {
		t.Errorf("class %d", class)
	}
}
