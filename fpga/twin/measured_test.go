package twin

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/test/golden"
)

// crowded returns traffic that fills the bus, the input and the queue, with bypassing frames among the waiting ones.
func crowded(r *rand.Rand) traffic {
	c := traffic{mode: []uint32{smart, fifo}[r.IntN(2)] | regmap.QueueModeProvenance, depth: 1 + r.Uint32N(9),
		increment: uint32(engine.Line) / (1 + r.Uint32N(6)),
		overhead:  24, dequeue: 2, merge: 1, clusters: 1 + r.IntN(5), workers: 3, unlisted: 1, delay: r.Uint32N(500)}
	at := uint64(0)
	for i := range 160 {
		at += []uint64{0, 0, 0, 1, 7, 40}[r.IntN(6)]
		c.descriptors = append(c.descriptors, regmap.Descriptor{Time: at, Flow: uint16(r.IntN(c.clusters * c.workers)),
			Sequence: uint32(i),
			Length:   []uint16{0, 64, 300, 1024, 1500}[r.IntN(5)], Reward: r.Int32N(800) - 400, Flags: []uint16{0, 0, 0, 1}[r.IntN(4)]})
	}
	return c
}

// TestMeasuredRuns checks the times at which frames are decided and leave, with and without the time that the logic
// takes, against times recorded when twin and logic agreed cycle by cycle. With Verilator, 'go test ./fpga/rtl -run
// Lockstep' checks this again. In every second run the queue is frozen and flushed.
func TestMeasuredRuns(t *testing.T) {
	var b bytes.Buffer
	for _, ports := range []int{0, 1, 2} {
		for seed := range uint64(4) {
			c := crowded(rand.New(rand.NewPCG(seed, 16)))
			w := newBench(t, Config{ReadPorts: ports, Tables: c.tables(), Clusters: 64})
			pass := func(d olaf.Duration) { // frames on the bus are not counted until they are decided
				if err := w.Sleep(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			c.programme(w)
			if seed%2 == 1 {
				for _, control := range []uint32{regmap.QueueControlFreeze, 0, regmap.QueueControlFreeze, 0} {
					pass(700 * olaf.Nanosecond)
					w.write(regmap.QueueControl, regmap.QueueControlEnable|control)
				}
				w.write(regmap.QueueCommand, regmap.QueueCommandFlush)
			}
			pass(olaf.Millisecond)
			w.finish()
			fmt.Fprintf(&b, "== %d ports, seed %d: %+v\n", ports, seed, w.count())
			for _, o := range w.Drain(nil) {
				fmt.Fprintf(&b, "%d after %d: worker %d sequence %d, %d updates\n", o.At, o.Queued, o.Update.Worker, o.Update.Seq,
					o.Update.Count)
			}
		}
	}
	golden.Equal(t, "measured.txt", b.Bytes())
}

// TestSleepRoundsUp checks that every sleep lasts at least a cycle, and that time never goes back.
func TestSleepRoundsUp(t *testing.T) {
	w := newBench(t, Config{})
	for _, c := range []struct {
		wait   olaf.Duration
		cycles uint32
	}{{0, 0}, {1, 1}, {olaf.Cycle, 2}, {olaf.Cycle + 1, 4}, {-olaf.Cycle, 4}} {
		w.sleep(c.wait)
		if now := w.read(regmap.CommonCycles); now != c.cycles {
			t.Errorf("after %v it is cycle %d, want %d", c.wait, now, c.cycles)
		}
	}
}
