package atp

import (
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// lastSum stores the value of the last departed sum, and the number of sums.
type lastSum struct {
	sent  int
	value int32
}

func (o *lastSum) Emit(_ program.Dest, p *program.Packet, lanes []uint32) {
	o.sent++
	o.value = int32(lanes[0])
}

// TestAnyOrderGivesOneResult checks that eight workers in any of their 40,320 orders produce one result, and that all
// results are equal: vector A14 in full.
func TestAnyOrderGivesOneResult(t *testing.T) {
	const workers = 8
	s, err := New(program.Config{Slots: 1, LaneMemory: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Configure(program.Job{ID: 1, Members: programtest.NewMembers(workers)}); err != nil {
		t.Fatal(err)
	}
	out, orders := new(lastSum), 0
	try := func(order []int) {
		orders++
		for place, w := range order {
			p := program.Packet{Kind: program.Data, Job: 1, Seg: 1, Lanes: 1, Worker: olaf.WorkerID(w),
				Trace: program.NewTrace(olaf.WorkerID(w), 0, 1)}
			class := s.Receive(0, program.Port(w), &p, []uint32{uint32(1 << w)}, out)
			if last := place == workers-1; last != (class == completed) || out.sent != 0 && !last {
				t.Fatalf("order %v: packet %d is %d, %d left", order, place, class, out.sent)
			}
		}
		if out.sent != 1 || out.value != 1<<workers-1 {
			t.Fatalf("order %v: %d results, the last is %d", order, out.sent, out.value)
		}
		s.Receive(0, program.Uplink, &program.Packet{Kind: program.Ack, Job: 1, Seg: 1, Lanes: 1}, []uint32{0}, new(lastSum))
		*out = lastSum{}
	}
	var permute func(order []int, from int)
	permute = func(order []int, from int) {
		if from == len(order) {
			try(order)
			return
		}
		for i := from; i < len(order); i++ {
			order[from], order[i] = order[i], order[from]
			permute(order, from+1)
			order[from], order[i] = order[i], order[from]
		}
	}
	permute([]int{0, 1, 2, 3, 4, 5, 6, 7}, 0)
	if orders != 40_320 || s.CountOccupied() != 0 {
		t.Errorf("%d orders, %d aggregators are held", orders, s.CountOccupied())
	}
}
