package engine_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/engine/enginetest"
	"pgregory.net/rapid"
)

// collector collects departures in the format of vectors.
type collector struct{ gone []enginetest.Event }

func (c *collector) Deliver(d *engine.Departure) {
	c.gone = append(c.gone, enginetest.Event{
		Kind: enginetest.Out, Cycle: cyclesOf(d.At), Queued: int64(d.Queued) / int64(olaf.Cycle), Update: d.Frame.Update,
		Data: append([]int32(nil), d.Frame.Lanes...), Inside: append([]olaf.Contributor(nil), d.Frame.Contributors...),
	})
}

func cyclesOf(t olaf.Time) int64 { return int64(t) / int64(olaf.Cycle) }

func at(cycle int64) olaf.Time { return olaf.Time(cycle) * olaf.Time(olaf.Cycle) }

var equateEmpty = cmpopts.EquateEmpty()

// drawSetup draws a small queue with any of the options.
func drawSetup(t *rapid.T) (string, engine.Config, engine.Output) {
	cfg := engine.Config{
		Slots:           rapid.IntRange(1, 5).Draw(t, "slots"),
		Clusters:        rapid.IntRange(1, 6).Draw(t, "clusters"),
		LaneMemory:      rapid.SampledFrom([]int{0, 0, 5, 20}).Draw(t, "lane memory"),
		FreeSlotOnStart: rapid.Bool().Draw(t, "free slot on start"),
		RewardFilter:    rapid.Bool().Draw(t, "reward filter"),
		RewardThreshold: rapid.SampledFrom([]int32{0, 1, 10, math.MaxInt32}).Draw(t, "threshold"),
		Provenance:      rapid.Bool().Draw(t, "provenance"),
	}
	out := engine.Output{
		Rate: engine.Increment(rapid.SampledFrom([]uint32{0, 20 << 24, 10 << 24, 33333333, 123456789, 64 << 24}).Draw(t,
			"rate")),
		OverheadBytes: rapid.SampledFrom([]int{0, 24}).Draw(t, "overhead"),
		DequeueCycles: rapid.IntRange(0, 3).Draw(t, "dequeue"),
		MergeCycles:   rapid.IntRange(0, 3).Draw(t, "merge"),
	}
	return rapid.SampledFrom(engine.DisciplineNames()).Draw(t, "engine"), cfg, out
}

// drawArrival draws an update that often finds another one waiting and often has values at a limit.
func drawArrival(t *rapid.T, cfg engine.Config) (u olaf.Update, lanes []int32, inside []olaf.Contributor) {
	u = olaf.Update{
		GenNS:   rapid.SampledFrom([]uint64{0, 1, 2, 1<<47 - 1, 1 << 47, 1<<47 + 1, 1<<48 - 1}).Draw(t, "gen"),
		Seq:     rapid.Uint32Range(0, 9).Draw(t, "seq"),
		Reward:  rapid.SampledFrom([]int32{0, 0, 1, -1, 5, 20, -20, math.MaxInt32, math.MinInt32}).Draw(t, "reward"),
		Cluster: olaf.ClusterID(rapid.IntRange(0, cfg.Clusters-1).Draw(t, "cluster")),
		Worker:  olaf.WorkerID(rapid.IntRange(0, 2).Draw(t, "worker")),
		Count:   rapid.SampledFrom([]uint16{1, 1, 1, 1, 1, 2, 40000}).Draw(t, "count"),
		Lanes:   rapid.SampledFrom([]uint16{19, 19, 19, 19, 8}).Draw(t, "lanes"),
		Flags:   olaf.Flags(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "flags")),
	}
	if rapid.Bool().Draw(t, "with data") {
		value := rapid.SampledFrom([]int32{0, 1, -7, math.MaxInt32, math.MaxInt32 - 1, math.MinInt32})
		lanes = rapid.SliceOfN(value, int(u.Lanes), int(u.Lanes)).Draw(t, "data")
	}
	if u.Count > 1 && rapid.Bool().Draw(t, "with contributors") {
		inside = []olaf.Contributor{{Worker: 8, Seq: u.Seq}, {Worker: u.Worker, Seq: u.Seq, GenNS: u.GenNS}}
	}
	return u, lanes, inside
}

// TestPortEqualsReference drives a port and the list-based reference with the same random traffic. After every event it
// checks that their visible states are equal and that the accounting identities are met.
func TestPortEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, cfg, out := drawSetup(t)
		var sink collector
		p, err := engine.NewPort(name, cfg, out, &sink)
		if err != nil {
			t.Fatal(err)
		}
		ref := enginetest.NewReference(name, cfg, out)
		cycle := int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			cycle += int64(rapid.SampledFrom([]int{0, 0, 1, 2, 4, 7, 13, 30}).Draw(t, "gap"))
			switch rapid.SampledFrom([]string{"in", "in", "in", "in", "in", "in", "in", "look", "next", "flush"}).Draw(t, "what") {
			case "in":
				u, lanes, inside := drawArrival(t, cfg)
				offerBoth(t, p, ref, cycle, u, lanes, inside)
			case "look":
				p.Advance(at(cycle))
				ref.RunTo(cycle)
			case "next":
				if next, ok := p.Next(); ok {
					cycle = max(cycle, cyclesOf(next))
				}
				p.Advance(at(cycle))
				ref.RunTo(cycle)
			case "flush":
				p.Flush(at(cycle))
				ref.Flush(cycle)
			}
			compare(t, p, ref, sink.gone)
		}
		idle := p.Drain()
		ref.Drain()
		compare(t, p, ref, sink.gone)
		if ref.IdleAt() > 0 && max(cyclesOf(idle), cycle) != max(ref.IdleAt(), cycle) {
			t.Fatalf("idle at %d, reference %d", cyclesOf(idle), ref.IdleAt())
		}
	})
}

// offerBoth offers an update and checks its class and its slot against the reference.
func offerBoth(t *rapid.T, p *engine.Port, ref *enginetest.Reference, cycle int64, u olaf.Update, lanes []int32,
	inside []olaf.Contributor) {
	got := p.OfferMerged(at(cycle), &u, lanes, inside)
	want := ref.Offer(cycle, u, lanes, inside)
	if got.Class != want {
		t.Fatalf("cycle %d: %+v is %v, reference %v", cycle, u, got.Class, want)
	}
	meets := want == engine.Aggregated || want == engine.Replaced || want == engine.ReplacedReward
	if got.Ready != (want == engine.Appended) || got.Merged != meets {
		t.Fatalf("cycle %d: %v, ready %t, merged %t", cycle, want, got.Ready, got.Merged)
	}
	slot := got.Slot
	if dropped := want >= engine.DroppedFull; dropped != (slot == engine.NoSlot) {
		t.Fatalf("cycle %d: %v in slot %d", cycle, want, slot)
	}
	if slot != engine.NoSlot {
		var f engine.Frame
		if p.Discipline().View(slot, &f); f.Update.Worker != u.Worker || f.Update.Seq != u.Seq || f.Update.Cluster != u.Cluster {
			t.Fatalf("cycle %d: slot %d holds %+v", cycle, slot, f.Update)
		}
	}
}

func compare(t *rapid.T, p *engine.Port, ref *enginetest.Reference, gone []enginetest.Event) {
	d := p.Discipline()
	if diff := cmp.Diff(ref.Departures(), gone, equateEmpty); diff != "" {
		t.Fatalf("departures (-reference +port):\n%s", diff)
	}
	if diff := cmp.Diff(ref.Stats(), d.Stats()); diff != "" {
		t.Fatalf("counters (-reference +port):\n%s", diff)
	}
	if p.StallCycles() != ref.StallCycles() {
		t.Fatalf("%d stall cycles, reference %d", p.StallCycles(), ref.StallCycles())
	}
	if d.Occupancy() != ref.Occupancy() || d.ActiveClusters() != ref.ActiveClusters() {
		t.Fatalf("occupancy %d and %d active clusters, reference %d and %d",
			d.Occupancy(), d.ActiveClusters(), ref.Occupancy(), ref.ActiveClusters())
	}
	var queued []olaf.Update
	d.Queued(func(s engine.Slot, locked bool) bool {
		if on, sending := p.Sending(); locked != (sending && on == s) {
			t.Fatalf("slot %d is locked: %v, sending: %v", s, locked, sending)
		}
		var f engine.Frame
		d.View(s, &f)
		queued = append(queued, f.Update)
		return true
	})
	if diff := cmp.Diff(ref.Queued(), queued); diff != "" {
		t.Fatalf("inside (-reference +port):\n%s", diff)
	}
	if err := engine.AuditDiscipline(d); err != nil {
		t.Fatal(err)
	}
}

// TestResetForgets checks that traffic after Reset has the same results as on a new port.
func TestResetForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, cfg, out := drawSetup(t)
		var sink collector
		p, err := engine.NewPort(name, cfg, out, &sink)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rapid.IntRange(0, 20).Draw(t, "before") {
			u, lanes, inside := drawArrival(t, cfg)
			p.OfferMerged(at(int64(3*i)), &u, lanes, inside)
		}
		p.Reset()
		if p.Busy() != 0 || p.StallCycles() != 0 {
			t.Fatal("something is left after Reset")
		}
		sink.gone = nil
		ref := enginetest.NewReference(name, cfg, out)
		for i := range 20 {
			u, lanes, inside := drawArrival(t, cfg)
			offerBoth(t, p, ref, int64(3*i), u, lanes, inside)
			compare(t, p, ref, sink.gone)
		}
	})
}
