package pktgen

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/test/golden"
)

// TestKindsOfErrors checks that an error's kind distinguishes mistakes in the requested workload from faults of the
// card.
func TestKindsOfErrors(t *testing.T) {
	for err, want := range map[error]olaf.Kind{ErrWorkload: olaf.Usage, ErrLimit: olaf.Device, ErrState: olaf.Device,
		ErrImage: olaf.Device} {
		if kind, declared := olaf.KindOf(err); !declared || kind != want {
			t.Errorf("%v is of kind %v, want %v", err, kind, want)
		}
	}
}

// TestEveryLimitInWords checks the error for every field at and beyond each end of its range, and that the error names
// the field.
func TestEveryLimitInWords(t *testing.T) {
	var out bytes.Buffer
	small := func() Burst {
		w := table1(t)
		w.Workers, w.Clusters, w.UpdatesPerWorker, w.ActiveClusters = 2, 2, 3, 0
		return w
	}
	for _, c := range []struct {
		name   string
		values []float64
		set    func(*Burst, float64)
	}{
		{"workers", []float64{0, 1, 2, 65536, 65537}, func(w *Burst, n float64) { w.Workers, w.Clusters = int(n), 1 }},
		{"clusters", []float64{0, 1, 2, 3}, func(w *Burst, n float64) { w.Clusters = int(n) }},
		{"updates of one worker", []float64{0, 1, 10_000_000, 10_000_001},
			func(w *Burst, n float64) { w.Workers, w.Clusters, w.UpdatesPerWorker = 1, 1, int(n) }},
		{"updates of 65,536 workers", []float64{8192, 8193},
			func(w *Burst, n float64) { w.Workers, w.UpdatesPerWorker = 65536, int(n) }},
		{"updates of 177 workers", []float64{3033168, 3033169},
			func(w *Burst, n float64) { w.Workers, w.UpdatesPerWorker = 177, int(n) }}, // 2^29 + 1
		{"size", []float64{60, 63, 64, 65, 66, 67, 68, 9036, 9037, 9040}, func(w *Burst, n float64) { w.Size = olaf.Size(n) }},
		{"values in frames of 256", []float64{-1, 0, 1, 47, 48, 49, 1 << 28, 1<<28 + 1},
			func(w *Burst, n float64) { w.Values = int(n) }},
		{"values in the longest frames", []float64{1 << 26, 1 << 27, 1 << 28, 1<<28 + 1},
			func(w *Burst, n float64) { w.Size, w.Values, w.UpdatesPerWorker = olaf.MaxFrame, int(n), 1 }},
		{"values in empty frames", []float64{0, 1}, func(w *Burst, n float64) { w.Size, w.Values = olaf.HeaderBytes, int(n) }},
		{"segments of 2 workers", []float64{32768, 32769}, func(w *Burst, n float64) { w.Values, w.UpdatesPerWorker = 48*int(n), 1 }},
		{"segments of 1 worker", []float64{65536, 65537}, func(w *Burst, n float64) {
			w.Workers, w.Clusters, w.Values, w.UpdatesPerWorker = 1, 1, 48*int(n), 1
		}},
		{"frames", []float64{8192, 8193}, func(w *Burst, n float64) {
			w.Workers, w.Clusters, w.Values, w.UpdatesPerWorker = 1, 1, 48*65536, int(n)
		}},
		{"frames of 59 workers", []float64{3033168, 3033169},
			func(w *Burst, n float64) { w.Workers, w.Values, w.UpdatesPerWorker = 59, 3*48, int(n) }},
		{"line rate", []float64{-1, 0, 1, 128e9, 128e9 + 1},
			func(w *Burst, n float64) { w.LineRate, w.MeanRate = olaf.Rate(n), olaf.Rate(max(1, min(n, 60e9))) }},
		{"mean rate", []float64{-1, 0, 100e9, 100e9 + 1}, func(w *Burst, n float64) { w.MeanRate = olaf.Rate(n) }},
		{"packets of a burst", []float64{0, 1, 100_000, 100_001}, func(w *Burst, n float64) { w.BurstPackets = int(n) }},
		{"sigma", []float64{-0.001, 0, 10, 10.001, math.NaN()}, func(w *Burst, n float64) { w.ClusterSigma = n }},
		{"bursts of weights", []float64{0, 1}, func(w *Burst, n float64) { w.HoldBursts = int(n) }},
		{"runs", []float64{-0.001, 0, 0.999, 1, math.NaN()}, func(w *Burst, n float64) { w.ClusterRunProb = n }},
		{"active clusters", []float64{-1, 0, 2, 3}, func(w *Burst, n float64) { w.ActiveClusters = int(n) }},
		{"seconds", []float64{562949, 562950}, func(w *Burst, n float64) { // of one frame of 2,048 bits a second
			w.Workers, w.Clusters, w.MeanRate, w.UpdatesPerWorker = 1, 1, 2048, int(n)
		}},
		{"distribution", []float64{0, 1, 2}, func(w *Burst,
			n float64) {
			w.BurstDist = []string{Fixed, Geometric, Exponential}[int(n)]
		}},
		{"gaps", []float64{0, 1, 2}, func(w *Burst, n float64) { w.GapDist = []string{Fixed, Geometric, Exponential}[int(n)] }},
	} {
		for _, n := range c.values {
			w := small()
			c.set(&w, n)
			said := "good"
			if err := w.Validate(); err != nil {
				said = fmt.Sprintf("in %q: %v", olaf.FieldOf(err), err)
			}
			fmt.Fprintf(&out, "%s %v: %s\n", c.name, n, said)
		}
	}
	golden.Equal(t, "limits.txt", out.Bytes())
}

// TestBurstsThatOutliveTheirClusters lets few clusters take turns in long runs, so that all active clusters end within
// a burst. It checks that the next cluster is drawn anew and that every worker sends all its updates.
func TestBurstsThatOutliveTheirClusters(t *testing.T) {
	for seed := range uint64(40) {
		w := table1(t)
		w.Workers, w.Clusters, w.ActiveClusters, w.UpdatesPerWorker = 12, 6, 2, 5
		w.BurstPackets, w.HoldBursts, w.ClusterRunProb = 60, 3, 0.9
		sent := map[uint16]int{}
		for _, d := range play(t, w, seed) {
			sent[d.Flow]++
		}
		for worker := range uint16(12) {
			if sent[worker] != 5 {
				t.Errorf("seed %d: worker %d sent %d updates", seed, worker, sent[worker])
			}
		}
	}
}

// TestProgramOfManyFlows checks flow tables around the size that is written at once: every flow is in its place, and
// nothing is written behind the last.
func TestProgramOfManyFlows(t *testing.T) {
	const chunk = chunkWords / regmap.FlowWords
	for _, workers := range []int{1, chunk - 1, chunk, chunk + 1, 2*chunk + 300, 16384 + 3} {
		w := table1(t)
		w.Workers, w.Clusters, w.UpdatesPerWorker = workers, 1, 1
		c := newFakeCard()
		if err := NewGenerator(c).Program(t.Context(), testJob(t, w)); err != nil {
			t.Fatal(err)
		}
		if n := int(c.regs[regmap.GeneratorFlows]); n != workers || len(c.memory[1]) != workers*regmap.FlowWords {
			t.Fatalf("%d workers: %d flows in %d words", workers, n, len(c.memory[1]))
		}
		for i := range workers {
			var f regmap.Flow
			f.Get(c.memory[1][i*regmap.FlowWords:])
			if int(f.Worker) != i || f.SourcePort != uint16(49152+i%16384) || !f.Enable ||
				f.SourceIP != [4]byte{10, 1, byte(i >> 8), byte(i)} {
				t.Fatalf("flow %d of %d is %+v", i, workers, f)
			}
		}
	}
}

// TestStatesInWords checks that states have the names in the register map, and that unknown states have their number.
func TestStatesInWords(t *testing.T) {
	for s, want := range map[State]string{Idle: "idle", Armed: "armed", Running: "running", Stopping: "stopping", Done: "done",
		Failed: "error", Failed + 1: "state 6", 255: "state 255"} {
		if got := s.String(); got != want {
			t.Errorf("%d is %q, want %q", uint8(s), got, want)
		}
		if busy := s == Armed || s == Running || s == Stopping; s.Busy() != busy {
			t.Errorf("%s is busy: %t", s, s.Busy())
		}
	}
}
