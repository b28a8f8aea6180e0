package p4inc

import (
	"math/rand/v2"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// crowd returns a function that draws packets that three workers or a stranger may send to a table of four aggregators.
// Most are values of the current fragment or of a fragment next to it, which repeat, lag and lead.
func crowd(jobs int) func(*rand.Rand) (program.Port, program.Packet) {
	sent := 0
	return func(r *rand.Rand) (program.Port, program.Packet) {
		sent++
		return draw(r, jobs, uint64(2+sent/(20*jobs)))
	}
}

func draw(r *rand.Rand, jobs int, seg uint64) (program.Port, program.Packet) {
	from := program.Port(r.IntN(3))
	if r.IntN(20) == 0 {
		from = program.Port(3 + r.IntN(2))
	}
	p := program.Packet{
		Kind: program.Data, Job: olaf.ClusterID(r.IntN(jobs)), Worker: olaf.WorkerID(from), Seg: seg, Index: uint32(r.IntN(2)),
		Count: 1,
		Lanes: uint16(2 + r.IntN(9)/8),
	}
	if p.Job == 1 {
		p.Index += 2
	}
	if r.IntN(15) == 0 {
		p.Index = uint32(r.IntN(6))
	}
	if r.IntN(4) == 0 {
		p.Seg += uint64(r.IntN(4)) - 2
	}
	switch r.IntN(20) {
	case 0:
		p.Kind = []program.Kind{program.Other, program.Ack, program.Control, program.Result}[r.IntN(4)]
	case 1:
		p.Job = 5
	case 2:
		from = program.Uplink
	}
	return from, p
}

func TestStories(t *testing.T) {
	two := []program.Job{{ID: 0, Members: programtest.NewMembers(3), Slots: 2},
		{ID: 1, Members: programtest.NewMembers(2), Base: 2, Slots: 2}}
	sparse := []program.Member{{Worker: 2, Port: 2}, {Worker: 0, Port: 0}}
	programtest.RunStories(t, Describe(),
		programtest.Story{Name: "two-jobs", Config: program.Config{Slots: 4, LaneMemory: 3}, Jobs: two, Packets: 400, Draw: crowd(2)},
		programtest.Story{Name: "sparse", Config: program.Config{Slots: 4, LaneMemory: 2, Lanes: 256},
			Jobs: []program.Job{{ID: 0, Members: sparse, Base: 1}}, Packets: 150, Draw: crowd(1)},
		programtest.Story{Name: "without-lanes", Config: program.Config{Slots: 4}, Jobs: two, Packets: 60, Draw: crowd(2)},
	)
}

func TestBounds(t *testing.T) {
	n := programtest.NewMembers
	programtest.TestBounds(t, Describe(), []program.Config{
		{Slots: 8}, {}, {Profile: profile}, {Profile: "p5"}, {Slots: 1, Lanes: 256}, {Slots: -1}, {Slots: MaxSlots},
		{Slots: MaxSlots + 1},
		{Slots: 1, LaneMemory: olaf.MaxLanes}, {Slots: 1, LaneMemory: olaf.MaxLanes + 1}, {Slots: 1, LaneMemory: -1}, {Wrap: true},
	}, []program.Job{
		{ID: 1, Base: -1, Members: n(1)}, {ID: 1, Base: 8, Members: n(1)}, {ID: 1, Slots: 9, Members: n(1)}, {ID: 1},
		{ID: 1, Members: n(32)}, {ID: 1, Members: n(33)},
		{ID: 1, Fan: 2, Members: n(2)}, {ID: 1, Fan: 3, Members: n(2)}, {ID: 1, Level: 1, Members: n(1)},
		{ID: 1, Parent: true, Members: n(1)},
		{ID: 1, Members: []program.Member{{Port: 0}, {Port: -1}}}, {ID: 2, Members: n(1)}, {ID: 1, Base: 2, Slots: 3, Members: n(2)},
		{ID: 2, Base: 5, Slots: 3, Members: n(1)}, {ID: 3, Slots: 2, Members: n(1)}, {ID: 3, Slots: 3, Members: n(1)},
	})
}
