package switchml

import (
	"math/rand/v2"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// crowd draws a packet that three members, the parent or a stranger may send to a pool of four slots.
func crowd(jobs int) func(*rand.Rand) (program.Port, program.Packet) {
	return func(r *rand.Rand) (program.Port, program.Packet) { return draw(r, jobs) }
}

func draw(r *rand.Rand, jobs int) (program.Port, program.Packet) {
	from := program.Port(r.IntN(3))
	if r.IntN(25) == 0 {
		from = program.Port(3 + r.IntN(2))
	}
	p := program.Packet{
		Kind: program.Data, Job: olaf.ClusterID(r.IntN(jobs)), Worker: olaf.WorkerID(from), Seg: uint64(r.IntN(100)),
		Index: uint32(r.IntN(2)), Count: 1,
		Value: uint64(uint8(-r.IntN(3)))<<8 | uint64(r.IntN(4)), Lanes: uint16(2 + r.IntN(9)/8),
		Flags: program.Set1 * program.Flags(r.IntN(2)),
	}
	if p.Job == 1 {
		p.Index += 2
	}
	if r.IntN(15) == 0 {
		p.Index = uint32(r.IntN(6))
	}
	switch what := r.IntN(20); {
	case what < 3:
		from = program.Uplink
		p.Kind, p.Count = program.Result, 5
	case what == 6:
		p.Kind = []program.Kind{program.Other, program.Ack, program.Control}[r.IntN(3)]
		if r.IntN(2) == 0 {
			from = program.Uplink
		}
	case what == 7:
		p.Job = 5
	case what == 8:
		p.Flags |= program.Resend
	}
	return from, p
}

func TestStories(t *testing.T) {
	two := []program.Job{{ID: 0, Members: programtest.NewMembers(3), Slots: 2},
		{ID: 1, Members: programtest.NewMembers(2), Base: 2, Slots: 2}}
	sparse := []program.Member{{Worker: 2, Port: 2}, {Worker: 0, Port: 0}}
	programtest.RunStories(t, Describe(),
		programtest.Story{Name: "flat", Config: program.Config{Slots: 4, LaneMemory: 3}, Jobs: two, Packets: 250, Draw: crowd(2)},
		programtest.Story{Name: "tree", Config: program.Config{Slots: 4, LaneMemory: 3, Lanes: Lanes1024},
			Jobs: []program.Job{{ID: 0, Members: sparse, Parent: true}}, Packets: 250, Draw: crowd(1)},
		programtest.Story{Name: "alone", Config: program.Config{Slots: 2, LaneMemory: 2},
			Jobs: []program.Job{{ID: 0, Members: programtest.NewMembers(1)}}, Packets: 40, Draw: crowd(1)},
		programtest.Story{Name: "without-lanes", Config: program.Config{Slots: 4}, Jobs: two, Packets: 60, Draw: crowd(2)},
	)
}

func TestBounds(t *testing.T) {
	programtest.TestBounds(t, Describe(), []program.Config{
		{Slots: 8}, {}, {Profile: profile}, {Profile: "tofino2"}, {Slots: 1, Lanes: Lanes1024}, {Slots: -1}, {Slots: maxSlots},
		{Slots: maxSlots + 1},
		{Slots: 1, LaneMemory: olaf.MaxLanes}, {Slots: 1, LaneMemory: olaf.MaxLanes + 1}, {Slots: 1, LaneMemory: -1}, {Wrap: true},
	}, []program.Job{
		{ID: 1, Base: -1, Members: programtest.NewMembers(1)}, {ID: 1, Base: 8, Members: programtest.NewMembers(1)},
		{ID: 1, Slots: 9, Members: programtest.NewMembers(1)},
		{ID: 1}, {ID: 1, Members: programtest.NewMembers(maxMembers)}, {ID: 1, Members: programtest.NewMembers(maxMembers + 1)},
		{ID: 1, Fan: 2, Members: programtest.NewMembers(2)}, {ID: 1, Fan: 3, Members: programtest.NewMembers(2)},
		{ID: 1, Members: []program.Member{{Port: 0}, {Port: -1}}},
		{ID: 2, Members: programtest.NewMembers(1)}, {ID: 1, Base: 2, Slots: 3, Members: programtest.NewMembers(2)},
		{ID: 2, Base: 5, Slots: 3, Members: programtest.NewMembers(1)},
		{ID: 3, Slots: 2, Members: programtest.NewMembers(1)}, {ID: 3, Slots: 3, Members: programtest.NewMembers(1)},
		{ID: 4, Base: 4, Slots: 1, Members: programtest.NewMembers(1)},
		{ID: 1, Base: 3, Slots: 1, Members: programtest.NewMembers(1)},
	})
}

// TestLargerExponents checks that the two exponents are compared separately, as signed bytes.
func TestLargerExponents(t *testing.T) {
	for _, c := range []struct{ a, b, want uint64 }{
		{0x0102, 0x0201, 0x0202}, {0xff01, 0x0080, 0x0001}, {0x807f, 0x8180, 0x817f}, {0x7fff, 0x8000, 0x7f00},
		{0xfefe, 0xfdfd, 0xfefe},
	} {
		if have := maxExponents(c.a, c.b); have != c.want {
			t.Errorf("%#x and %#x: %#x, want %#x", c.a, c.b, have, c.want)
		}
	}
}
