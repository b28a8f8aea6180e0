package twin

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
	"pgregory.net/rapid"
)

// traffic is random traffic for the card.
type traffic struct {
	mode, depth, increment      uint32
	overhead, dequeue, merge    uint32
	threshold                   uint32
	descriptors                 []regmap.Descriptor
	clusters, workers, unlisted int // unlisted flows are in no table
	delay                       uint32
	flow                        func(id int, f *regmap.Flow) // changes flows; nil for no change
}

func drawTraffic(t *rapid.T) traffic {
	c := traffic{
		mode:      rapid.SampledFrom([]uint32{fifo, smart, smart, smart | regmap.QueueModeRewardFilter}).Draw(t, "mode"),
		depth:     uint32(rapid.IntRange(1, 9).Draw(t, "depth")),
		increment: uint32(rapid.IntRange(1<<20, int(engine.Line)).Draw(t, "increment")),
		overhead:  rapid.SampledFrom([]uint32{0, 24}).Draw(t, "overhead"),
		dequeue:   uint32(rapid.IntRange(0, 3).Draw(t, "dequeue")),
		merge:     uint32(rapid.IntRange(0, 3).Draw(t, "merge")),
		threshold: uint32(rapid.IntRange(0, 300).Draw(t, "threshold")),
		clusters:  rapid.IntRange(1, 5).Draw(t, "clusters"),
		workers:   rapid.IntRange(1, 3).Draw(t, "workers"),
		unlisted:  rapid.IntRange(0, 1).Draw(t, "unlisted"),
		delay:     uint32(rapid.IntRange(0, 500).Draw(t, "delay")),
	}
	if rapid.Bool().Draw(t, "provenance") {
		c.mode |= regmap.QueueModeProvenance
	}
	if rapid.Bool().Draw(t, "free_on_start") {
		c.mode |= regmap.QueueModeFreeOnStart
	}
	flows := c.clusters * c.workers
	at := uint64(0)
	for i := range rapid.IntRange(1, 60).Draw(t, "n") {
		at += uint64(rapid.SampledFrom([]int{0, 1, 4, 7, 40, 400}).Draw(t, "gap"))
		d := regmap.Descriptor{
			Time: at, Flow: uint16(rapid.IntRange(0, flows-1).Draw(t, "flow")), Sequence: uint32(i),
			Length: rapid.SampledFrom([]uint16{0, 0, 0, 64, 300}).Draw(t, "length"),
			Reward: rapid.Int32Range(-400, 400).Draw(t, "reward"),
			Flags:  rapid.SampledFrom([]uint16{0, 0, 0, 0, 1, 2, 4, 8}).Draw(t, "flags"),
		}
		c.descriptors = append(c.descriptors, d)
	}
	return c
}

func (c *traffic) tables() *fakeTables {
	f := newTables(c.clusters, c.workers)
	for i := range c.unlisted {
		delete(f.workers, netip.AddrFrom4(workerIP(0, i)))
	}
	return f
}

// programme loads c and starts the generator.
func (c *traffic) programme(b *bench) {
	b.write(regmap.QueueControl, 0)
	for _, w := range []struct{ addr, value uint32 }{
		{regmap.QueueMode, c.mode}, {regmap.QueueDepth, c.depth}, {regmap.QueueLimiterIncrement, c.increment},
		{regmap.QueueLimiterControl, regmap.QueueLimiterControlEnable}, {regmap.QueueLimiterOverhead, c.overhead},
		{regmap.QueueDequeueCycles, c.dequeue}, {regmap.QueueMergeCycles, c.merge}, {regmap.QueueRewardThreshold, c.threshold},
		{regmap.QueueControl, regmap.QueueControlEnable}, {regmap.ModelAckDelay, c.delay},
	} {
		b.write(w.addr, w.value)
	}
	b.loadFlows(c.clusters, c.workers, c.flow)
	b.loadDescriptors(c.descriptors...)
	b.start()
}

// rapidTB makes a failing bench fail a rapid test.
type rapidTB struct {
	testing.TB
	t *rapid.T
}

func (r rapidTB) Helper()           {}
func (r rapidTB) Fatal(args ...any) { r.t.Fatal(args...) }

func rapidBench(t *testing.T, rt *rapid.T, cfg Config) *bench {
	return newBench(rapidTB{t, rt}, cfg)
}

// collector is the sink of the reference.
type collector struct{ got []olaf.Observation }

func (c *collector) Deliver(d *engine.Departure) {
	c.got = append(c.got, olaf.Observation{At: d.At, Queued: d.Queued, Update: d.Frame.Update,
		Contributors: append([]olaf.Contributor(nil), d.Frame.Contributors...)})
}

// reference plays c through the queue alone.
func (c *traffic) reference(t *rapid.T) []olaf.Observation {
	return c.played(t, func(out *engine.Port, at olaf.Time, u *olaf.Update) { out.Offer(at, u, nil) })
}

// played offers the updates of c in a plain loop over the descriptors.
func (c *traffic) played(t *rapid.T, offer func(out *engine.Port, at olaf.Time, u *olaf.Update)) []olaf.Observation {
	sink := new(collector)
	kind, _ := engine.FindByCode(c.mode & regmap.QueueModeDisciplineMask)
	out, err := engine.NewPort(kind.Name, engine.Config{
		Slots: int(c.depth), Clusters: 64, FreeSlotOnStart: c.mode&regmap.QueueModeFreeOnStart != 0,
		RewardFilter:    c.mode&regmap.QueueModeRewardFilter != 0,
		RewardThreshold: int32(c.threshold), Provenance: c.mode&regmap.QueueModeProvenance != 0,
	}, engine.Output{Rate: engine.Increment(c.increment), OverheadBytes: int(c.overhead), DequeueCycles: int(c.dequeue),
		MergeCycles: int(c.merge)}, sink)
	if err != nil {
		t.Fatal(err)
	}
	free := int64(0)
	for _, d := range c.descriptors {
		at := max(int64(d.Time), free)
		size := int64(d.Length)
		if size == 0 {
			size = 256
		}
		free = at + (size+63)/64
		if d.Flags&^regmap.FlagRetransmission != 0 || int(d.Flow) < c.unlisted {
			continue
		}
		u := olaf.Update{GenNS: uint64(4 * at), Seq: d.Sequence, Reward: d.Reward, Cluster: olaf.ClusterID(int(d.Flow) / c.workers),
			Worker: olaf.WorkerID(d.Flow), Count: 1, Lanes: uint16(size-64) / 4, Flags: olaf.Flags(d.Flags & 1)}
		offer(out, cycleTime(at), &u)
	}
	out.Drain()
	return sink.got
}

func copied(obs []olaf.Observation) []olaf.Observation {
	for i := range obs {
		obs[i].Contributors = append([]olaf.Contributor(nil), obs[i].Contributors...)
	}
	return obs
}

// TestTwinAgreesWithTheQueueAlone checks the complete path against the reference, with other features in use: slices of
// time, ACKs, wire mode, an observer.
func TestTwinAgreesWithTheQueueAlone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawTraffic(rt)
		cfg := Config{Tables: c.tables(), Wire: rapid.IntRange(0, 9).Draw(rt, "wire") == 0}
		watcher := new(watch)
		if rapid.Bool().Draw(rt, "observer") {
			cfg.Observer = watcher
		}
		b := rapidBench(t, rt, cfg)
		if rapid.Bool().Draw(rt, "acks") {
			b.write(regmap.ModelControl, regmap.ModelControlAck)
		}
		c.programme(b)
		var got []olaf.Observation
		for range rapid.IntRange(0, 5).Draw(rt, "slices") {
			b.sleep(olaf.Duration(rapid.IntRange(0, 1_000_000).Draw(rt, "slice")))
			got = append(got, copied(b.Drain(nil))...)
		}
		b.finish()
		got = append(got, copied(b.Drain(nil))...)
		if d := cmp.Diff(c.reference(rt), got); d != "" {
			rt.Fatal(d)
		}
		n := b.count()
		if n.DeliveredFrames != uint64(len(got)) || n.QueuedFrames != 0 {
			rt.Fatalf("delivered %d, queued %d, observed %d", n.DeliveredFrames, n.QueuedFrames, len(got))
		}
		if cfg.Observer != nil && watcher.err == nil &&
			(watcher.arrivals != int(n.In) || watcher.starts != len(got) || watcher.departures != len(got)) {
			rt.Fatalf("observer saw %+v of %d in, %d out", *watcher, n.In, len(got))
		}
		if watcher.err != nil {
			rt.Fatal(watcher.err)
		}
		if cfg.Wire {
			checkWire(rt, b.DrainPackets(nil))
		}
	})
}

// checkWire checks that times never decrease and that every lane of template 0 is the count.
func checkWire(t *rapid.T, packets []Packet) {
	last := olaf.Time(0)
	for i, p := range packets {
		if p.At < last {
			t.Fatalf("packet %d at %v after one at %v", i, p.At, last)
		}
		last = p.At
		for _, lane := range p.Lanes {
			if lane != int32(p.Update.Count)<<16 {
				t.Fatalf("packet %d: lane %#x of %d updates", i, lane, p.Update.Count)
			}
		}
	}
}

// watch checks that events come in order and that every frame starts before it departs.
type watch struct {
	arrivals, starts, departures int
	last                         olaf.Time
	sending                      engine.Slot
	err                          error
}

func (w *watch) at(t olaf.Time) {
	if t < w.last {
		w.err = fmt.Errorf("event at %v after one at %v", t, w.last)
	}
	w.last = t
}

func (w *watch) Arrival(t olaf.Time, _ engine.Class, _ engine.Slot, _ *olaf.Update, _ []olaf.Contributor) {
	w.at(t)
	w.arrivals++
}

func (w *watch) Start(t olaf.Time, s engine.Slot) {
	w.at(t)
	w.starts++
	w.sending = s
}

func (w *watch) Departure(t olaf.Time, s engine.Slot, _ *olaf.Update) {
	w.at(t)
	w.departures++
	if w.departures != w.starts || s != w.sending {
		w.err = fmt.Errorf("slot %d left at %v; started were %d, the newest of slot %d", s, t, w.starts, w.sending)
	}
}

// TestIdentitiesHoldUnderRandomActions checks the accounting identities while all kinds of actions happen at random
// times.
func TestIdentitiesHoldUnderRandomActions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawTraffic(rt)
		tables := c.tables()
		run := func(b *bench, levers []int) {
			c.programme(b)
			for _, l := range levers {
				b.sleep(olaf.Duration(l % 1_000_000))
				pull(b, tables, &c, l/1_000_000)
				if err := b.Check(); err != nil {
					rt.Fatal(err)
				}
			}
			b.write(regmap.QueueControl, regmap.QueueControlEnable)
			b.finish()
		}
		levers := rapid.SliceOfN(rapid.IntRange(0, 13_999_999), 0, 12).Draw(rt, "levers")
		var outcome [2][]olaf.Observation
		var counts [2]regmap.QueueCounters
		for i := range outcome {
			*tables = *c.tables()
			b := rapidBench(t, rt, Config{Tables: tables, Clusters: 64})
			run(b, levers)
			outcome[i], counts[i] = b.Drain(nil), b.count()
		}
		if d := cmp.Diff(outcome[0], outcome[1]); d != "" {
			rt.Fatalf("the same programme twice: %s", d)
		}
		if counts[0] != counts[1] {
			rt.Fatalf("the same programme twice: %+v, %+v", counts[0], counts[1])
		}
	})
}

// pull does one of the actions that an operator can do to a running card. It may be refused.
func pull(b *bench, tables *fakeTables, c *traffic, lever int) {
	worker := netip.AddrFrom4(workerIP(0, 0))
	switch lever {
	case 0:
		b.write(regmap.QueueControl, 0)
	case 1, 2:
		b.write(regmap.QueueControl, regmap.QueueControlEnable)
	case 3, 4:
		b.write(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze)
	case 5:
		b.write(regmap.QueueCommand, regmap.QueueCommandFlush)
	case 6:
		b.write(regmap.CommonCommand, regmap.CommonCommandSnapshot|regmap.CommonCommandClear)
	case 7:
		tables.workers[worker] = [2]uint16{uint16(c.clusters), 77}
		tables.version++
	case 8:
		delete(tables.workers, worker)
		tables.version++
	case 9:
		b.write(regmap.ModelControl, b.read(regmap.ModelControl)^regmap.ModelControlAck)
	case 10:
		_ = b.Write32(regmap.QueueDepth, c.depth+1) // only while disabled and empty
	case 11:
		_ = b.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandStop)
	case 12:
		_ = b.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
		_ = b.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandStart)
	case 13:
		b.write(regmap.GeneratorCommand, regmap.GeneratorCommandAbort)
	}
}

func TestReplicasRunInParallel(t *testing.T) {
	c := traffic{mode: smart | regmap.QueueModeProvenance, depth: 4, increment: 3 << 24, clusters: 5, workers: 3,
		descriptors: burst(500, 15, 20)}
	first := newBench(t, Config{Tables: c.tables()})
	c.programme(first)
	replicas := make([]*bench, 4)
	var wg sync.WaitGroup
	for i := range replicas {
		replicas[i] = &bench{t, first.Replica()}
		wg.Go(func() {
			c.programme(replicas[i])
			replicas[i].finish()
		})
	}
	wg.Wait()
	first.finish()
	want := first.Drain(nil)
	for i, r := range replicas {
		if d := cmp.Diff(want, r.Drain(nil)); d != "" {
			t.Errorf("replica %d: %s", i, d)
		}
	}
}

// FuzzRegisters writes and reads arbitrary registers and lets time pass. It checks that there is no panic and no
// endless loop, and that the identities are met.
func FuzzRegisters(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0x20, 0x10, 0, 1, 0, 0, 0, 0, 0x24, 0x30, 0, 1, 0, 0, 0, 0, 0x24, 0x30, 0, 2, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		c := traffic{mode: smart, depth: 4, increment: 3 << 24, clusters: 3, workers: 2, descriptors: burst(40, 6, 20)}
		b := newBench(t, Config{Tables: c.tables(), Slots: 64, Clusters: 16, Descriptors: 1 << 12})
		c.programme(b)
		for len(script) >= 8 {
			addr := regmap.CommonBase + uint32(script[0])&^3 + uint32(script[1])<<8
			value := uint32(script[3]) | uint32(script[4])<<8 | uint32(script[5])<<16 | uint32(script[6])<<24
			switch script[2] % 4 {
			case 0:
				_ = b.Write32(addr, value)
			case 1:
				_, _ = b.Read32(addr + uint32(script[7]))
			case 2:
				_ = b.WriteBurst(addr, []uint32{value, value >> 8, 3})
			case 3:
				_ = b.Write32(addr, 1<<(value%32))
			}
			if err := b.Sleep(context.Background(), olaf.Duration(script[7])*100*olaf.Nanosecond); err != nil {
				t.Fatal(err)
			}
			if err := b.Check(); err != nil {
				t.Fatal(err)
			}
			script = script[8:]
		}
		b.Drain(nil)
	})
}
