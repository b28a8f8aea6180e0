package rtl

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/engine/enginetest"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestGoldenVectors presents every golden vector to the logic. Each arrival comes while the output's clock is stopped,
// so that several can arrive in a cycle, which the page allows and a bus does not.
func TestGoldenVectors(t *testing.T) {
	files, err := filepath.Glob("../engine/testdata/vectors/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	b := openBench(t, Build{})
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			v, err := enginetest.ParseVector(bytes.NewReader(want))
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := enginetest.WriteVector(&got, b.replay(t, v)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Errorf("-vector +logic:\n%s", d)
			}
		})
	}
}

// TestFlushAroundLocks checks that a flush discards everything in the queue, including a frame that was just locked: it
// counts as locked and as flushed, no part of it leaves, and later updates are unharmed. The command is posted while
// the output's clock runs, and takes effect one clock later in each row: before, during and after two locks. The queue
// of package engine computes the expected counts.
func TestFlushAroundLocks(t *testing.T) {
	const begin = 4
	b := openBench(t, Build{})
	for _, discipline := range []string{"olaf", "fifo"} {
		for b.flushIn = leastClocks; b.flushIn < leastClocks+40; b.flushIn++ {
			cycle := begin + int64(b.flushIn+1)/2 // one initial clock, then two clocks per cycle of the output
			v := flushVector(discipline,          // the first frames take 7 cycles each
				arrival(0, 0, 96), arrival(0, 1, 96), arrival(begin, 4, 96),
				enginetest.Event{Kind: enginetest.Flush, Cycle: cycle}, arrival(cycle+20, 2, 32), arrival(cycle+20, 3, 16))
			expected, err := enginetest.ReplayVector(v)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(expected, b.replay(t, v)); d != "" {
				t.Errorf("%s, flushed in cycle %d: the logic must count and send as the queue does (-queue +logic):\n%s",
					discipline, cycle, d)
			}
		}
	}
}

// TestFlushAroundArrival checks that a flush in the clock in which an update is decided and its frame locked discards
// the update. A flush that takes effect earlier does not affect it, and neither does one after its frame has ended. The
// command takes effect one clock later in each row.
func TestFlushAroundArrival(t *testing.T) {
	b := openBench(t, Build{})
	flush := enginetest.Event{Kind: enginetest.Flush}
	for _, discipline := range []string{"olaf", "fifo"} {
		spared, err1 := enginetest.ReplayVector(flushVector(discipline, flush, arrival(0, 0, 48), arrival(20, 1, 32)))
		discarded, err2 := enginetest.ReplayVector(flushVector(discipline, arrival(0, 0, 48), flush, arrival(20, 1, 32)))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		rows := ""
		for b.flushIn = leastClocks; b.flushIn < leastClocks+20; b.flushIn++ {
			got := b.replay(t, flushVector(discipline, flush, arrival(0, 0, 48), arrival(20, 1, 32)))
			switch {
			case cmp.Equal(got.Stats, spared.Stats):
				rows += "s"
			case cmp.Equal(got.Stats, discarded.Stats):
				rows += "d"
			default:
				t.Errorf("%s, flushed after %d clocks: the update must count as spared or discarded (-discarded +logic):\n%s",
					discipline, b.flushIn, cmp.Diff(discarded.Stats, got.Stats))
			}
		}
		if !regexp.MustCompile(`^s+d+s+$`).MatchString(rows) {
			t.Errorf("%s: by the clock of the flush, the update was spared or discarded: %s; one block of d inside was expected",
				discipline, rows)
		}
	}
}

func arrival(cycle int64, cluster olaf.ClusterID, lanes uint16) enginetest.Event {
	u := olaf.Update{Cluster: cluster, Worker: olaf.WorkerID(cluster), Count: 1, Lanes: lanes}
	return enginetest.Event{Kind: enginetest.In, Cycle: cycle, Update: u}
}

func flushVector(discipline string, events ...enginetest.Event) *enginetest.Vector {
	return &enginetest.Vector{Engine: discipline, Config: engine.Config{Slots: 4, Clusters: 9},
		Output: engine.Output{Rate: 1 << 30}, Events: events}
}

// replay runs the arrivals and flushes of v on the logic and returns v with the observed results.
func (b *bench) replay(t *testing.T, v *enginetest.Vector) *enginetest.Vector {
	t.Helper()
	b.configure(t, v.Engine, &v.Config, v.Output)
	start := b.child.cycle
	inside := map[olaf.Contributor][]olaf.Contributor{}
	var events []enginetest.Event
	var accepted uint64
	for _, ev := range v.Events {
		switch ev.Kind {
		case enginetest.In:
			b.step(t, start+ev.Cycle)
			ev.Class = b.present(t, &ev.Update, ev.Data)
			if ev.Class <= engine.ReplacedReward {
				accepted += uint64(ev.Update.Count)
				if ev.Inside != nil {
					inside[olaf.Contributor{GenNS: ev.Update.GenNS, Seq: ev.Update.Seq, Worker: ev.Update.Worker}] = ev.Inside
				}
			}
		case enginetest.Flush:
			b.flush(t, start+ev.Cycle)
		default:
			continue
		}
		events = append(events, ev)
	}
	idle := b.drain(t)
	got := &enginetest.Vector{Name: v.Name, About: v.About, Engine: v.Engine, Config: v.Config, Output: v.Output}
	got.Events = woven(events, b.departures(v, start, inside))
	got.Stats = b.stats(t, accepted)
	got.Stats = append(got.Stats, enginetest.Stat{Name: "idle_at", Value: uint64(idle - start)})
	return got
}

// flush flushes the queue in a cycle, either while the output's clock is stopped or during the next commands.
func (b *bench) flush(t *testing.T, cycle int64) {
	t.Helper()
	if b.flushIn == 0 {
		b.step(t, cycle)
		b.write(t, regmap.QueueCommand, regmap.QueueCommandFlush)
	} else if err := b.child.post(regmap.QueueCommand-boxBase, regmap.QueueCommandFlush, b.flushIn); err != nil {
		t.Fatal(err)
	}
}

// woven merges two lists of events, with departures before the arrivals of their cycle.
func woven(in, out []enginetest.Event) []enginetest.Event {
	var all []enginetest.Event
	for _, ev := range in {
		for len(out) > 0 && out[0].Cycle <= ev.Cycle {
			all, out = append(all, out[0]), out[1:]
		}
		all = append(all, ev)
	}
	return append(all, out...)
}

// departures returns the departed frames in the format of a vector.
func (b *bench) departures(v *enginetest.Vector, start int64, inside map[olaf.Contributor][]olaf.Contributor) []enginetest.Event {
	var out []enginetest.Event
	for i := range b.frames {
		f := &b.frames[i]
		ev := enginetest.Event{Kind: enginetest.Out, Cycle: f.over - start, Queued: f.over - f.appended, Update: f.update}
		if v.Config.LaneMemory > 0 {
			ev.Data = lanesOf(f.bytes)[:min(int(f.update.Lanes), v.Config.LaneMemory)]
		}
		if v.Config.Provenance {
			for _, who := range f.inside {
				if earlier := inside[who]; earlier != nil {
					ev.Inside = append(ev.Inside, earlier...)
				} else {
					ev.Inside = append(ev.Inside, who)
				}
			}
		}
		out = append(out, ev)
	}
	return out
}

// stats returns the counters of a vector, read from registers. Two of them have no register: the number of frames that
// started, which is the number that left plus the number cut by a flush, and the number of accepted updates, which
// follows from the vector's classes.
func (b *bench) stats(t *testing.T, accepted uint64) []enginetest.Stat {
	b.write(t, regmap.CommonCommand, regmap.CommonCommandSnapshot)
	c, err := regmap.ReadQueueCounters(b)
	if err != nil {
		t.Fatal(err)
	}
	peak, err := b.Read32(regmap.QueuePeakOccupancy)
	if err != nil {
		t.Fatal(err)
	}
	s := engine.Stats{
		Offered: c.In,
		Class: [engine.Classes]uint64{c.Appended, c.Aggregated, c.Replaced, c.ReplacedReward, c.DroppedFull, c.DroppedReward,
			c.DroppedMismatch},
		SumAccepted: accepted, Locked: c.DeliveredFrames + uint64(b.cut), Released: c.DeliveredFrames, Flushed: c.FlushedFrames,
		SumReleased: c.DeliveredUpdates, SumFlushed: c.FlushedUpdates, SumDiscarded: c.DiscardedUpdates,
		LaneSaturations: c.LaneSaturations, RewardSaturations: c.RewardSaturations, CountSaturations: c.CountSaturations,
		LockedCollisions: c.LockedCollisions, PeakOccupancy: int(peak),
	}
	return append(enginetest.ListCounters(s), enginetest.Stat{Name: "stall_cycles", Value: c.StallCycles})
}

// bench is a card that gives tests more access than a device does.
type bench struct {
	*Card
	frames    []seen
	decisions []decision
	passed    [][]byte // frames that bypassed the queue, if reported
	sent      [][]byte // frames that the generator sent to the wire, if reported
	cut       int
	flushIn   uint16 // clocks until a flush takes effect while time passes; 0 flushes while the output's clock is stopped
}

// seen is a copy of a departed frame.
type seen struct {
	frame
	inside []olaf.Contributor
}

// decision is the decision on a frame, with its time; class is engine.Classes for a frame that did not reach the
// engine.
type decision struct {
	cycle int64
	class engine.Class
}

// openBench opens the logic for a test. It skips the test if a tool is missing.
func openBench(t *testing.T, build Build) *bench {
	t.Helper()
	needTools(t)
	b := new(bench)
	c, err := Open(context.Background(), Config{Build: build})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	b.Card = c
	c.child.listener = b
	b.watch(t, reportLog|reportDecisions|reportLanes)
	return b
}

// needTools skips a test if the RTL cannot be built. In CI, missing tools are an error.
func needTools(t *testing.T) {
	t.Helper()
	if _, err := findCompilers(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

func (b *bench) watch(t *testing.T, what uint32) {
	t.Helper()
	if err := b.child.setReports(what); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) report(kind byte, r []byte) {
	switch kind {
	case 'd':
		class := engine.Classes
		if r[8] != 0xff {
			class = engine.Class(r[8])
		}
		b.decisions = append(b.decisions, decision{int64(binary.LittleEndian.Uint64(r)), class})
	case 'f':
		f := seen{frame: frameOf(r)}
		f.bytes = slices.Clone(f.bytes)
		f.inside = slices.Clone(b.tap.takeContributors())
		b.frames = append(b.frames, f)
	case 'c':
		b.cut++
	case 'w':
		b.sent = append(b.sent, slices.Clone(r[10:]))
	case 'y':
		b.passed = append(b.passed, slices.Clone(r[10:]))
		b.Card.report(kind, r)
	default:
		b.Card.report(kind, r)
	}
}

func (b *bench) write(t *testing.T, addr, value uint32) {
	t.Helper()
	if err := b.Write32(addr, value); err != nil {
		t.Fatal(err)
	}
}

// configure resets the card and enables its queue.
func (b *bench) configure(t *testing.T, discipline string, c *engine.Config, o engine.Output) {
	t.Helper()
	b.write(t, regmap.CommonCommand, regmap.CommonCommandReset)
	kind, known := engine.FindDiscipline(discipline)
	if !known {
		t.Fatalf("no discipline %q", discipline)
	}
	mode := kind.Code
	for _, bit := range []struct {
		on   bool
		mask uint32
	}{{c.RewardFilter, regmap.QueueModeRewardFilter}, {c.FreeSlotOnStart, regmap.QueueModeFreeOnStart},
		{c.Provenance, regmap.QueueModeProvenance}} {
		if bit.on {
			mode |= bit.mask
		}
	}
	b.write(t, regmap.QueueMode, mode)
	b.write(t, regmap.QueueDepth, uint32(c.Slots))
	b.write(t, regmap.QueueRewardThreshold, uint32(c.RewardThreshold))
	if o.Rate != 0 {
		b.write(t, regmap.QueueLimiterControl, regmap.QueueLimiterControlEnable)
		b.write(t, regmap.QueueLimiterIncrement, uint32(o.Rate))
	}
	b.write(t, regmap.QueueLimiterOverhead, uint32(o.OverheadBytes))
	b.write(t, regmap.QueueDequeueCycles, uint32(o.DequeueCycles))
	b.write(t, regmap.QueueMergeCycles, uint32(o.MergeCycles))
	b.write(t, regmap.QueueControl, regmap.QueueControlEnable)
	b.frames, b.decisions, b.passed, b.sent, b.cut = nil, nil, nil, nil, 0
	b.tap = tap{}
}

// outer contains the addresses of every frame in a test.
var outer = olaf.Addresses{SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2}, SrcIP: [4]byte{10, 0, 0, 1},
	DstIP: [4]byte{10, 0, 0, 2}, SrcPort: 1000}

// encode returns the frame of u.
func encode(t *testing.T, u *olaf.Update, lanes []int32) []byte {
	t.Helper()
	b := make([]byte, u.Size())
	if _, err := olaf.EncodeUpdate(b, &outer, u, lanes); err != nil {
		t.Fatal(err)
	}
	return b
}

// lanesOf returns the gradients in a frame.
func lanesOf(b []byte) []int32 {
	lanes := make([]int32, (len(b)-olaf.HeaderBytes)/olaf.LaneBytes)
	for i := range lanes {
		lanes[i] = int32(binary.BigEndian.Uint32(b[olaf.HeaderBytes+olaf.LaneBytes*i:]))
	}
	return lanes
}

// present offers an update while the output's clock is stopped.
func (b *bench) present(t *testing.T, u *olaf.Update, lanes []int32) engine.Class {
	t.Helper()
	class, err := b.child.present(&injection{known: true, cluster: u.Cluster, worker: u.Worker, bytes: encode(t, u, lanes)})
	if err != nil {
		t.Fatal(err)
	}
	return class
}

// step advances the output's clock to the given cycle.
func (b *bench) step(t *testing.T, until int64) {
	t.Helper()
	if until > b.child.cycle {
		if err := b.child.step(until-b.child.cycle, false); err != nil {
			t.Fatal(err)
		}
	}
}

// drain waits until everything has left, and returns the cycle from which on the output is idle.
func (b *bench) drain(t *testing.T) int64 {
	t.Helper()
	if err := b.child.step(1<<40, true); err != nil {
		t.Fatal(err)
	}
	return b.child.cycle
}
