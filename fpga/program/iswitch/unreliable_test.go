package iswitch

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programtest"
)

// TestUnreliable sends packets of workers, which repeat them until they know of the sum, over a link that loses,
// repeats and reorders packets. It checks the accelerator against its reference in both profiles. Under isw-1 repeats
// are added, as published.
func TestUnreliable(t *testing.T) {
	for _, profile := range Describe().Profiles {
		t.Run(profile, func(t *testing.T) { unreliable(t, profile) })
	}
}

func unreliable(t *testing.T, profile string) {
	const workers, segments = 5, 8
	ref := &reference{
		members: workers, slots: segments, h: workers, exact: profile == Exactly, parts: map[uint64][]arrival{},
		over: map[uint64]uint16{},
	}
	s, err := New(program.Config{Slots: segments, LaneMemory: 2, Profile: profile})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Configure(program.Job{Members: programtest.NewMembers(workers)}); err != nil {
		t.Fatal(err)
	}
	type packet struct {
		worker int
		seg    uint64
		round  uint16
		values []float32
		heard  int // bitmap of the workers that received the sum, if this packet completes one
	}
	d, out := Describe(), &recorder{}
	var rounds [workers][segments]uint16
	hear := func(w int, p *packet) {
		if rounds[w][p.seg] == p.round {
			rounds[w][p.seg]++
		}
	}
	arrivals, sums := uint64(0), 0
	for w := range rounds {
		for i := range rounds[w] {
			rounds[w][i] = 1
		}
	}
	programtest.RunUnreliable(t, 2, func(r *rand.Rand, w *programtest.Way[packet]) {
		worker, seg := r.IntN(workers), r.IntN(segments)
		heard := r.IntN(1<<workers) | r.IntN(1<<workers) | r.IntN(1<<workers)
		w.Send(packet{worker, uint64(seg), rounds[worker][seg], []float32{float32(worker), r.Float32() - 0.5}, heard})
	}, func(p packet) {
		arrivals++
		in := program.Packet{Kind: program.Data, Seg: p.seg, Round: p.round, Lanes: 2,
			Trace: program.NewTrace(olaf.WorkerID(p.worker), uint32(p.round), 1)}
		have := d.ClassName(s.Receive(0, program.Port(p.worker), &in,
			[]uint32{math.Float32bits(p.values[0]), math.Float32bits(p.values[1])}, out))
		if want := ref.data(p.worker, p.seg, p.round, p.values); have != want {
			t.Fatalf("packet %d, of %d in round %d at %d, is %s, the reference says %s", arrivals, p.worker, p.round, p.seg, have, want)
		}
		programtest.CompareOutputs(t, arrivals, &out.lines, &ref.out)
		switch over, ok := ref.over[p.seg]; {
		case have == "completed":
			sums++
			for w := range workers {
				if p.heard>>w&1 == 1 {
					hear(w, &p)
				}
			}
		case have == "duplicate_dropped" && ok && p.round <= over: // a Help request would be answered
			hear(p.worker, &p)
		}
	})
	programtest.CheckAccount(t, &d, s, arrivals)
	if sums < int(arrivals)/workers/4 {
		t.Errorf("%d sums of %d packets: workers hardly came on", sums, arrivals)
	}
	t.Logf("%d arrived, %d sums", arrivals, sums)
}
