package closedloop

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/internal/splitmix"
)

// held is a frame accepted by a slow wire: its arrival, and when its first and last bit left.
type held struct{ came, begins, ends int64 }

// slowWire decides about each frame from its whole history.
type slowWire struct {
	slots, mark, least, every, delay int64 // for a rate of one bit per ps
	through                          bool
	below, salt                      uint64
	took                             []held
	numbers                          uint64
}

func (w *slowWire) pass(at, took, size int64) (arrives, takes int64, fate Fate) {
	free := int64(0)
	for _, f := range w.took {
		free = max(free, f.ends)
	}
	if w.slots > 0 && free > at && w.waiting(at) == int(w.slots) {
		return 0, 0, Full
	}
	takes = max(8*size, w.least)
	if w.mark > 0 && free > at && (free-at)/takes*size >= w.mark {
		fate = Marked
	}
	begins := max(free, at)
	ends := begins + takes
	if w.through {
		ends = max(max(free, at-took)+takes, at)
	}
	w.took = append(w.took, held{at, begins, ends})
	w.numbers++
	if splitmix.MixBits(w.salt+w.numbers)>>1 < w.below || w.every > 0 && w.numbers%uint64(w.every) == 0 {
		fate |= Lost
	}
	return ends + w.delay, takes, fate
}

// waiting returns how many of its frames begin to leave after an instant.
func (w *slowWire) waiting(at int64) (n int) {
	for _, f := range w.took {
		if f.begins > at {
			n++
		}
	}
	return n
}

// TestWireEqualsStoringWire compares a wire's immediate answers with those of a wire that stores all frames.
func TestWireEqualsStoringWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slow := slowWire{
			slots: rapid.Int64Range(0, 3).Draw(t, "slots"), mark: rapid.SampledFrom([]int64{0, 1, 40, 200}).Draw(t, "mark"),
			least: rapid.SampledFrom([]int64{0, 300}).Draw(t, "least"),
			every: rapid.SampledFrom([]int64{0, 1, 2, 5}).Draw(t, "every"), delay: rapid.Int64Range(0, 1000).Draw(t, "delay"),
			through: rapid.Bool().Draw(t, "through"),
		}
		seed, number, loss := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 9).Draw(t, "number"),
			rapid.SampledFrom([]float64{0, 0.3, 1}).Draw(t, "loss")
		slow.below, slow.salt = uint64(loss*(1<<63)), splitmix.MixBits(seed^uint64(number+1)<<32)
		w := NewWire(engine.PicosecondClock(olaf.Rate(olaf.Second), 0), olaf.Duration(slow.delay))
		w.Mark, w.Least, w.Through, w.Line = olaf.Size(slow.mark), slow.least, slow.through, NewLine(int(slow.slots))
		w.SetLoss(loss, int(slow.every), seed, number)
		at, busy, bytes, lost, full, most := int64(0), int64(0), int64(0), uint64(0), uint64(0), 0
		for range rapid.IntRange(1, 40).Draw(t, "frames") {
			at += rapid.SampledFrom([]int64{0, 0, 1, 100, 400, 5000}).Draw(t, "gap")
			size, took := rapid.SampledFrom([]int64{1, 20, 50}).Draw(t, "size"), rapid.SampledFrom([]int64{0, 160, 900}).Draw(t, "took")
			arrives, takes, fate := w.Pass(at, took, olaf.Size(size))
			if a, k, f := slow.pass(at, took, size); a != arrives || k != takes || f != fate {
				t.Fatalf("a frame of %d B at %d: arrives %d, takes %d, fate %d; the slow wire says %d, %d, %d", size, at, arrives,
					takes, fate, a, k, f)
			}
			if fate == Full {
				full++
				continue
			}
			busy, bytes = busy+takes, bytes+size
			if fate&Lost != 0 {
				lost++
			}
			if w.Line == nil {
				continue
			}
			most = max(most, slow.waiting(at))
			for _, f := range append(slow.took, held{begins: at}) { // also at the instant of a departure
				if now := f.begins; now >= at && w.Line.Waiting(now) != slow.waiting(now) {
					t.Fatalf("%d frames wait at %d, not %d", w.Line.Waiting(now), now, slow.waiting(now))
				}
			}
		}
		if w.Frames != slow.numbers || w.Busy != busy || w.Bytes != uint64(bytes) || w.Lost != lost || w.Line != nil &&
			(w.Line.Dropped != full || w.Line.Most != most) {
			t.Fatalf("counted %+v and %+v; there were %d frames, %d B, %d ps, %d lost, %d dropped, %d waiting at most", w.Direction,
				w.Line, slow.numbers, bytes, busy, lost, full, most)
		}
	})
}

// TestLossesDependOnFrameNumber checks that a direction's losses depend only on its seed, its number and the frame's
// number there.
func TestLossesDependOnFrameNumber(t *testing.T) {
	var all [][]bool
	for number := range 3 {
		var d Direction
		d.SetLoss(0.1, 0, 7, number)
		var lost []bool
		for range 10_000 {
			lost = append(lost, d.Carry(100, 1))
		}
		if d.Lost < 900 || d.Lost > 1100 {
			t.Errorf("direction %d lost %d of 10000 frames, not a tenth", number, d.Lost)
		}
		all = append(all, lost)
	}
	if slices.Equal(all[0], all[1]) || slices.Equal(all[1], all[2]) {
		t.Error("two directions lose the same frames")
	}
}

// TestSwitchKeepsItsTable checks that a switch records its table's occupancy and still works as its program.
func TestSwitchKeepsItsTable(t *testing.T) {
	p, err := iswitch.New(program.Config{Slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	s := Switch{Program: p}
	if err := s.Configure(program.Job{ID: 1, Fan: 2}); err != nil {
		t.Fatal(err)
	}
	for i, seg := range []uint64{0, 1, 0, 2} { // two are held from 20, one from 30, two from 40
		s.Receive(olaf.Time(10+10*i), 0, &program.Packet{Kind: program.Data, Job: 1, Seg: seg, Count: 1}, nil, nobody{})
	}
	s.RecordTable(50)
	if o := s.Table; o.Slots != 2 || o.Peak != 2 || o.Area != 10+20+10+20 {
		t.Errorf("the table was %+v; it holds 2, held 2 at most, 60 slots × ps in all", o)
	}
	if o := s.OccupancyAt(60); o.Area != 80 || s.Table.Area != 60 {
		t.Errorf("a look makes it %+v, and keeps %+v", o, s.Table)
	}
}

type nobody struct{}

func (nobody) Emit(program.Dest, *program.Packet, []uint32) {}
