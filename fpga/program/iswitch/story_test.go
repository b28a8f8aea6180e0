package iswitch

import (
	"math/rand/v2"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// crowd returns a function that draws packets that three members, the parent or a stranger may send to a table of four
// segments. Most are gradients for the first of the jobs, in rounds that wrap at 16 bits, lag and lead; some are
// control packets of each kind.
func crowd(jobs int) func(*rand.Rand) (program.Port, program.Packet) {
	sent := 0
	return func(r *rand.Rand) (program.Port, program.Packet) {
		sent++
		return draw(r, jobs, uint16(65535+sent/15))
	}
}

func draw(r *rand.Rand, jobs int, round uint16) (program.Port, program.Packet) {
	from := program.Port(r.IntN(3))
	if r.IntN(25) == 0 {
		from = 7
	}
	p := program.Packet{
		Kind: program.Data, Job: olaf.ClusterID(r.IntN(jobs)), Worker: olaf.WorkerID(from), Seg: uint64(r.IntN(3)), Count: 1,
		Round: round, Lanes: uint16(2 + r.IntN(9)/8),
	}
	if r.IntN(20) == 0 {
		p.Seg = uint64(r.IntN(6))
	}
	if r.IntN(6) == 0 {
		p.Round += uint16(r.IntN(4) - 2)
	}
	switch what := r.IntN(20); {
	case what < 3:
		from = program.Uplink
		p.Kind, p.Count, p.Bitmap = program.Result, 5, 0b11
	case what < 5:
		p.Kind, p.Lanes, p.Action = program.Control, 0, uint8(1+r.IntN(9))
		p.Value = uint64(1 + r.IntN(3))
		if p.Action == SetH && r.IntN(3) == 0 {
			p.Value = []uint64{0, maxH, maxH + 1}[r.IntN(3)]
		}
		if p.Action == Reset && r.IntN(2) == 0 {
			p.Seg = allSegments
		}
		if r.IntN(4) == 0 {
			from = program.Uplink
		}
	case what == 5:
		p.Kind, p.Lanes, p.Action = program.Control, 0, Help
	case what == 6:
		p.Kind = []program.Kind{program.Other, program.Ack}[r.IntN(2)]
		p.Job = olaf.ClusterID(r.IntN(2))
	case what == 7:
		p.Job = 5
	}
	return from, p
}

func TestStories(t *testing.T) {
	two := []program.Job{{ID: 0, Members: programtest.NewMembers(3), Slots: 2},
		{ID: 1, Members: programtest.NewMembers(2), Base: 2, Slots: 2}}
	tree := []program.Job{{ID: 0, Members: programtest.NewMembers(3), Fan: 2, Parent: true}}
	programtest.RunStories(t, Describe(),
		programtest.Story{Name: "published", Config: program.Config{Slots: 4, LaneMemory: 3}, Jobs: two, Packets: 400, Draw: crowd(2)},
		programtest.Story{Name: "published-tree", Config: program.Config{Slots: 4, LaneMemory: 2, Wrap: true}, Jobs: tree, Packets: 120,
			Draw: crowd(1)},
		programtest.Story{Name: "exactly", Config: program.Config{Slots: 4, LaneMemory: 3, Profile: Exactly}, Jobs: two, Packets: 400,
			Draw: crowd(2)},
		programtest.Story{Name: "exactly-tree", Config: program.Config{Slots: 4, Profile: Exactly, LaneMemory: 3}, Jobs: tree,
			Packets: 250, Draw: crowd(1)},
		programtest.Story{Name: "without-lanes", Config: program.Config{Slots: 3, Profile: Exactly}, Jobs: tree, Packets: 150,
			Draw: crowd(1)},
	)
}

func TestBounds(t *testing.T) {
	n := programtest.NewMembers
	programtest.TestBounds(t, Describe(), []program.Config{
		{Slots: 8, Profile: Exactly}, {}, {Profile: Published}, {Profile: "isw-2"}, {Slots: 1}, {Slots: -1}, {Slots: maxSlots + 1},
		{Slots: 1, LaneMemory: olaf.MaxLanes}, {Slots: 1, LaneMemory: olaf.MaxLanes + 1}, {Slots: 1, LaneMemory: -1},
	}, []program.Job{
		{ID: 1, Base: -1, Members: n(1)}, {ID: 1, Base: 8, Members: n(1)}, {ID: 1, Slots: 9, Members: n(1)},
		{ID: 1, Base: 4, Slots: 5, Members: n(1)},
		{ID: 1, Fan: -1, Members: n(1)}, {ID: 1, Fan: maxH, Members: n(1)}, {ID: 1, Fan: maxH + 1, Members: n(1)},
		{ID: 1, Members: n(maxMembers)}, {ID: 1, Members: n(maxMembers + 1)},
		{ID: 2, Members: n(1)}, {ID: 1, Base: 2, Slots: 3, Members: n(2)}, {ID: 2, Base: 5, Slots: 3, Members: n(1)}, {ID: 3, Slots: 2},
		{ID: 3, Slots: 3},
		{ID: 4, Base: 4, Slots: 1}, {ID: 4, Base: 7, Slots: 1}, {ID: 1, Base: 3, Slots: 1},
	})
}
