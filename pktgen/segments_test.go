package pktgen

import (
	"context"
	"math/big"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// vectors returns Table 1's traffic with updates of 100 values: two frames of 48 and one of 4.
func vectors(t testing.TB) Burst {
	w := table1(t)
	w.Values, w.UpdatesPerWorker = 100, 40
	return w
}

// TestSegmentsFollowEachOther checks that an update of several frames is drawn like an update of one frame, and that
// its frames follow each other at the line rate.
func TestSegmentsFollowEachOther(t *testing.T) {
	w := vectors(t)
	all := play(t, w, 3)
	if w.Segments() != 3 || len(all) != 3*27*40 || w.vectorSize() != 2*256+80 {
		t.Fatalf("%d segments, %d frames, vectors of %v", w.Segments(), len(all), w.vectorSize())
	}
	whole := w
	whole.Values, whole.Size = 0, olaf.FrameSize(132) // as long as the three frames together
	if whole.Size.Bits() != w.vectorSize().Bits() {
		t.Fatalf("%v and %v", whole.Size, w.vectorSize())
	}
	one := play(t, whole, 3)
	sent := make([]uint32, w.Workers)
	for i, d := range one {
		for segment := range 3 {
			got := all[3*i+segment]
			if got.Flow != 3*d.Flow+uint16(segment) || got.Sequence != 3*sent[d.Flow]+uint32(segment) || got.Reward != d.Reward {
				t.Fatalf("frame %d of update %d is %+v, of %+v", segment, i, got, d)
			}
		}
		if all[3*i].Time != d.Time {
			t.Fatalf("update %d leaves at cycle %d, in one frame at %d", i, all[3*i].Time, d.Time)
		}
		sent[d.Flow]++
	}
	for burst := 0; burst < len(one)/w.BurstPackets; burst++ { // compare the first frames of each burst exactly
		at := 3 * burst * w.BurstPackets
		bits := int64(burst) * int64(w.BurstPackets) * w.vectorSize().Bits()
		for segment := range 3 {
			exact := big.NewRat(bits, int64(w.MeanRate))
			exact.Add(exact, big.NewRat(int64(segment)*2048, int64(w.LineRate)))
			exact.Mul(exact, big.NewRat(clockHz, 1))
			if want := new(big.Int).Quo(exact.Num(), exact.Denom()).Uint64(); all[at+segment].Time != want {
				t.Fatalf("burst %d, segment %d at cycle %d, want %d", burst, segment, all[at+segment].Time, want)
			}
		}
	}
}

// TestProgramOfSegments checks that each segment of each worker has a flow with the segment's number and the length of
// its frame.
func TestProgramOfSegments(t *testing.T) {
	w := vectors(t)
	c := newFakeCard()
	if err := NewGenerator(c).Program(context.Background(), testJob(t, w)); err != nil {
		t.Fatal(err)
	}
	if c.regs[regmap.GeneratorFlows] != 81 || c.regs[regmap.GeneratorDescriptors] != uint32(w.Frames()) {
		t.Errorf("%d flows, %d descriptors", c.regs[regmap.GeneratorFlows], c.regs[regmap.GeneratorDescriptors])
	}
	for worker := range w.Workers {
		for segment, length := range []uint16{256, 256, 80} {
			var f regmap.Flow
			f.Get(c.memory[1][(3*worker+segment)*regmap.FlowWords:])
			if f.Worker != olaf.WorkerID(worker) || f.Cluster != w.Cluster(worker) || f.Seg != uint64(segment) || f.Length != length ||
				!f.Enable {
				t.Errorf("worker %d, segment %d: %+v", worker, segment, f)
			}
		}
	}
}
