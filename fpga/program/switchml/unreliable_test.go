package switchml

import (
	"math/rand/v2"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// TestUnreliable sends packets of workers, which repeat them until they know of the sum, over a link that loses,
// repeats and reorders packets. It checks the pool against its reference. A packet that arrives after its set is over
// counts as a new one, after which some sets are never complete (vector sml-s3-stale). A worker gives up after many
// attempts and continues.
func TestUnreliable(t *testing.T) {
	const workers, slots = 5, 4
	ref := &reference{workers: workers, inside: map[place]map[int]bool{}, came: map[place][][]int32{}, missing: map[place]int{}}
	s, err := New(program.Config{Slots: slots, LaneMemory: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Configure(program.Job{Members: programtest.NewMembers(workers)}); err != nil {
		t.Fatal(err)
	}
	type packet struct {
		worker, round int
		place
		values []int32
		heard  int // bitmap of the workers that received the sum, if this packet completes one
	}
	d, out := Describe(), &recorder{}
	const patience = 30
	var rounds, tries [workers][slots]int
	on := func(worker, slot int) {
		rounds[worker][slot]++
		tries[worker][slot] = 0
	}
	arrivals, sums := uint64(0), 0
	programtest.RunUnreliable(t, 1, func(r *rand.Rand, w *programtest.Way[packet]) {
		worker, slot := r.IntN(workers), r.IntN(slots)
		if tries[worker][slot]++; tries[worker][slot] > patience {
			on(worker, slot)
		}
		round := rounds[worker][slot]
		heard := r.IntN(1<<workers) | r.IntN(1<<workers) | r.IntN(1<<workers)
		w.Send(packet{worker, round, place{slot, round % 2}, []int32{int32(worker*1000 + round), r.Int32() - r.Int32()}, heard})
	}, func(p packet) {
		arrivals++
		in := program.Packet{
			Kind: program.Data, Index: uint32(p.slot), Flags: program.Set1 * program.Flags(p.set), Lanes: 2,
			Trace: program.NewTrace(olaf.WorkerID(p.worker), uint32(p.round), 1),
		}
		have := d.ClassName(s.Receive(0, program.Port(p.worker), &in, []uint32{uint32(p.values[0]), uint32(p.values[1])}, out))
		if want := ref.data(p.worker, p.place, p.values); have != want {
			t.Fatalf("packet %d, of %d at %v, is %s, the reference says %s", arrivals, p.worker, p.place, have, want)
		}
		programtest.CompareOutputs(t, arrivals, &out.lines, &ref.out)
		switch have {
		case "completed":
			sums++
			for w := range workers {
				if p.heard>>w&1 == 1 && rounds[w][p.slot] == p.round {
					on(w, p.slot)
				}
			}
		case "duplicate_answered":
			if rounds[p.worker][p.slot] == p.round {
				on(p.worker, p.slot)
			}
		}
	})
	programtest.CheckAccount(t, &d, s, arrivals)
	if sums < int(arrivals)/workers/20 {
		t.Errorf("%d sums of %d packets: workers hardly came on", sums, arrivals)
	}
	t.Logf("%d arrived, %d sums", arrivals, sums)
}
