package realtime

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/xdp"
)

// workload describes the updates that tests send: workers take turns, with a mean distance of gap cycles.
type workload struct {
	workers, clusters, updates int
	gap                        uint64
	size                       uint16
	burst                      int // frames at once, a cycle apart; 0 for none
}

// load writes the table of workers and programs the generator.
func (w workload) load(t testing.TB, c *Card) {
	t.Helper()
	var senders []dataplane.Sender
	flows := make([]uint32, w.workers*regmap.FlowWords)
	for i := range w.workers {
		f := regmap.Flow{SourceIP: [4]byte{10, 0, 0, byte(i)}, DestIP: [4]byte{10, 1, 0, 1}, SourcePort: 9, DestPort: olaf.UDPPort,
			Cluster: olaf.ClusterID(i % w.clusters), Worker: olaf.WorkerID(i), Length: w.size, Enable: true}
		f.Put(flows[i*regmap.FlowWords:])
		senders = append(senders, dataplane.Sender{Address: netip.AddrFrom4(f.SourceIP), Cluster: f.Cluster, Worker: f.Worker})
	}
	descriptors := make([]uint32, w.updates*regmap.DescriptorWords)
	for i := range w.updates {
		at := uint64(i) * w.gap
		if w.burst > 0 {
			at = uint64(i/w.burst*w.burst)*w.gap + uint64(i%w.burst)
		}
		d := regmap.Descriptor{Time: at, Flow: uint16(i % w.workers), Sequence: uint32(i)}
		d.Put(descriptors[i*regmap.DescriptorWords:])
	}
	must(t, c.SetSenders(senders), c.Write32(regmap.GeneratorMemSelect, 1), c.WriteBurst(regmap.GeneratorMemData, flows),
		c.Write32(regmap.GeneratorMemSelect, 0), c.WriteBurst(regmap.GeneratorMemData, descriptors),
		c.Write32(regmap.GeneratorFlows, uint32(w.workers)), c.Write32(regmap.GeneratorDescriptors, uint32(w.updates)))
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// configure sets the queue's discipline and output rate, and clears the counters.
func configure(t testing.TB, c *Card, discipline string, rate olaf.Rate) {
	t.Helper()
	increment, err := engine.FromRate(rate)
	must(t, err)
	must(t, fpga.ConfigureQueue(context.Background(), c,
		fpga.QueueConfig{Discipline: discipline, Depth: 4, Output: engine.Output{Rate: increment}}),
		fpga.ClearCounters(c))
}

// within returns a context that ends a test's wait long before the test's timeout.
func within(t testing.TB) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(stop)
	return ctx
}

// fire sends all updates and waits until they have left or were lost.
func fire(t testing.TB, c *Card) fpga.Counters {
	t.Helper()
	must(t, c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandArm),
		c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandStart))
	ctx := within(t)
	for {
		must(t, c.Sleep(ctx, olaf.Millisecond))
		if s, err := c.Read32(regmap.GeneratorState); err != nil || s != running {
			must(t, err)
			break
		}
	}
	must(t, fpga.DrainQueue(ctx, c))
	counters, err := fpga.Snapshot(c)
	must(t, err)
	return counters
}

// runs sends updates of several workers through the queue with either discipline. It checks that every update has a
// class, that every decision is the engine's, and that every frame reached the server's interface.
func runs(t *testing.T, c *Card) {
	w := workload{workers: 6, clusters: 3, updates: 600, gap: 25_000, size: 256}
	for _, discipline := range c.backend.Disciplines {
		w.load(t, c)
		configure(t, c, discipline, 5*olaf.Mbps)
		n := fire(t, c)
		q := &n.Queue
		if q.In != 600 || q.Bypassed+q.Malformed+q.LostBeforeEngine > 0 || q.QueuedFrames > 0 || n.Generator.SentPackets != 600 {
			t.Errorf("%s: %+v", discipline, q)
		}
		if q.DeliveredFrames != q.Appended || q.DeliveredUpdates != q.Appended+q.Aggregated || q.DeliveredFrames == 0 {
			t.Errorf("%s: %d frames with %d updates left, %d appended, %d merged", discipline, q.DeliveredFrames, q.DeliveredUpdates,
				q.Appended, q.Aggregated)
		}
		d, err := c.Decisions()
		must(t, err)
		if d.Void != "" || d.Equal != d.Checked || d.Checked < int64(q.In) {
			t.Errorf("%s: %+v", discipline, d)
		}
		arrivals, err := c.Arrivals()
		if err != nil || len(arrivals) != 600 {
			t.Errorf("%s: %d arrivals, %v", discipline, len(arrivals), err)
		}
		if faults := c.Faults(); len(faults) > 0 || c.Pacing().Frames != int64(q.DeliveredFrames) {
			t.Errorf("%s: %q, %+v", discipline, faults, c.Pacing())
		}
	}
}

// wholeFrames checks that frames longer than those of the preceding measurement leave complete, including the first.
func wholeFrames(t *testing.T, c *Card) {
	server, err := c.out.B.Packets(true)
	must(t, err)
	defer server.Close()
	const size = 1024
	workload{workers: 2, clusters: 2, updates: 8, gap: 250_000, size: size}.load(t, c)
	configure(t, c, "olaf", 100*olaf.Mbps)
	n := fire(t, c)
	frame := make([]byte, 4096)
	for i := range n.Queue.DeliveredFrames {
		got, err := server.Receive(frame)
		must(t, err)
		if _, err := olaf.ParseFrame(frame[:got]); err != nil || got != size {
			t.Errorf("frame %d of %d bytes: %v", i, got, err)
		}
	}
	if n.Queue.DeliveredFrames == 0 {
		t.Errorf("%+v", n.Queue)
	}
}

// inspect freezes a queue with frames, reads them, and lets them leave.
func inspect(t *testing.T, c *Card) {
	workload{workers: 2, clusters: 2, updates: 2, gap: 100, size: 256}.load(t, c)
	configure(t, c, "olaf", 10*olaf.Kbps) // 205 ms per frame
	must(t, c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandArm),
		c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandStart))
	ctx := within(t)
	for x := c.viewState(); x.Leaving < 0 || x.Waiting < 1; x = c.viewState() {
		must(t, c.Sleep(ctx, olaf.Millisecond))
	}
	must(t, c.Write32(regmap.QueueControl, regmap.QueueControlEnable|regmap.QueueControlFreeze))
	for i, want := range []uint32{regmap.QueueInspectStateValid | regmap.QueueInspectStateLeaving, regmap.QueueInspectStateValid, 0} {
		must(t, c.Write32(regmap.QueueInspectIndex, uint32(i)))
		if got, err := c.Read32(regmap.QueueInspectState); err != nil || got != want {
			t.Errorf("slot %d: state %#x, %v", i, got, err)
		}
	}
	must(t, c.Write32(regmap.QueueCommand, regmap.QueueCommandFlush), c.Write32(regmap.QueueControl, 0))
	n, err := fpga.Snapshot(c)
	if must(t, err); n.Queue.FlushedFrames != 2 || n.Queue.QueuedFrames != 0 {
		t.Errorf("%+v", n.Queue)
	}
}

// TestRefusedRate checks that rates beyond the machine's capacity are refused with the capacity, for many frames and
// for few, and that bursts that are far apart are accepted.
func TestRefusedRate(t *testing.T) {
	c := open(t, xdp.NewBackend(dataplane.Native))
	for _, w := range []struct {
		name string
		workload
		says string // empty if the load can be carried
	}{
		{"many frames", workload{updates: 2000, gap: 10}, "try --burst 1 --rate "},
		{"few frames", workload{updates: 20, gap: 10}, "try --burst 1 --rate "},
		{"two frames", workload{updates: 2, gap: 10}, "the workers offer 51.2Gbps, the output serves 3Mbps; try --burst 1 --rate "},
		{"one frame", workload{updates: 1, gap: 10}, ""},
		{"bursts too soon after each other", workload{updates: 540, gap: 500, burst: 135},
			"the workers offer 1.02Gbps, the output serves 3Mbps; try --rate "}, // 2 µs a frame
		{"bursts with hardly a gap", workload{updates: 540, gap: 25, burst: 135},
			"the workers offer 20.5Gbps, the output serves 3Mbps; try --rate "}, // 100 ns
		{"bursts", workload{updates: 540, gap: 100_000, burst: 135}, ""},
		{"two bursts", workload{updates: 270, gap: 100_000, burst: 135}, ""},
		{"spread", workload{updates: 100, gap: 250_000}, ""},
	} {
		w.workers, w.clusters, w.size = 2, 2, 256
		w.load(t, c)
		configure(t, c, "olaf", 3*olaf.Mbps)
		err := c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
		if (err == nil) != (w.says == "") || err != nil &&
			(!errors.Is(err, fpga.ErrRefused) || !strings.Contains(err.Error(), w.says) ||
				!strings.HasPrefix(err.Error(), "device refused: this machine carried ") ||
				strings.Contains(err.Error(), "--out-rate ")) {
			t.Errorf("%s: %v", w.name, err)
		}
		must(t, c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandAbort))
	}
}

// TestSuggestedRatesAreAccepted checks that the rates suggested in place of rates that are too high are accepted, that
// only rates that are too high are changed, and that a changed output keeps its timing.
func TestSuggestedRatesAreAccepted(t *testing.T) {
	for _, c := range []struct {
		offered, served, limit, bursts int64
		output                         int64 // output rate of the run after all rates are divided
		says                           string
	}{
		{29_000_000, 19_500_000, 70_000, 7, 5000, "--rate 15Mbps --out-rate 10Mbps"},
		{97_656, 1465, 62_641, 1, 940, "--burst 1 --rate 120Mbps"}, // limited by the workers alone
		{97_656, 1465, 62_641, 9, 940, "--rate 120Mbps"},
		{3900, 97_656, 62_641, 9, 5000, "--out-rate 10Mbps"}, // limited by the output alone
		{29_000_000, 0, 70_000, 7, 0, "--rate 10Mbps"},       // at rate 0, the offered rate is served
		{29_000_000, 19_500_000, 3000, 7, 2017, "--rate 6.1Mbps --out-rate 4.1Mbps"},
	} {
		share := fittingShare(c.offered, c.served, c.limit)
		offered, served := int64(share*float64(c.offered)+0.5), int64(share*float64(c.served)+0.5)
		if served != c.output || offered > c.limit {
			t.Errorf("%+v: share %g, offered %d, served %d", c, share, offered, served)
		}
		l := load{size: 256, bursts: c.bursts}
		if got := l.suggestFlags(c.offered, c.served, c.limit); got != c.says {
			t.Errorf("%+v: %s", c, got)
		}
	}
	for r, want := range map[olaf.Rate]olaf.Rate{199_999_488: 200_000_000, 2_999_900: 3_000_000, 72_345_000: 72_300_000,
		999_960_000: 1_000_000_000, 17: 17} {
		if got := roundNearest(r); got != want {
			t.Errorf("%v is told as %v", r, got)
		}
	}
}

// behind is a plane that counts nothing while it is on, as if no frame had arrived yet.
type behind struct {
	dataplane.Plane
	on bool
}

func (b *behind) Latch(clear bool) (dataplane.Exchange, map[string]uint64, error) {
	x, sums, err := b.Plane.Latch(clear)
	if b.on {
		sums = nil
	}
	return x, sums, err
}

// TestFramesUnderWay checks that the generator is in the state stopping until its frames have arrived at the plane,
// however it was stopped, but not for ever.
func TestFramesUnderWay(t *testing.T) {
	b, plane := backends[0], new(behind)
	load := b.Load
	b.Load = func(discipline string, build dataplane.Build) (p dataplane.Plane, err error) {
		plane.Plane, err = load(discipline, build)
		return plane, err
	}
	c, ctx := open(t, b), within(t)
	for _, never := range []bool{false, true} {
		load := workload{workers: 2, clusters: 2, updates: 20, gap: 25_000, size: 128}
		if never {
			load.gap *= 1000 // the run is stopped before its end
		}
		load.load(t, c)
		configure(t, c, "olaf", 5*olaf.Mbps)
		plane.on = true
		must(t, c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandArm),
			c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandStart))
		var state uint32
		for c.generator.state.Load() == running {
			if n, _ := c.generator.readCounters(false); never && n.SentPackets > 0 {
				must(t, c.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandStop))
				break
			}
			must(t, c.Sleep(ctx, olaf.Millisecond))
		}
		sent := c.generator.lastNS.Load()
		if c.clock.now()-sent < arriveNS/2 && c.generatorState() != stopping {
			t.Error("the generator is done before the plane has what it sent")
		}
		if !never {
			c.total.queue.Bypassed = 20
			if state = c.generatorState(); state != done {
				t.Errorf("state %d once everything came", state)
			}
		}
		for state = c.generatorState(); state == stopping; state = c.generatorState() {
			must(t, c.Sleep(ctx, 10*olaf.Millisecond))
		}
		if waited := c.clock.now() - sent; state != done || never && waited < arriveNS {
			t.Errorf("state %d after %d ns", state, waited)
		}
		asked := c.clock.now()
		must(t, c.waitSettled())
		if waited := c.clock.now() - asked; waited > arriveNS/2 {
			t.Errorf("what is given up is waited for again, %d ns", waited)
		}
		plane.on = false
	}
	if c.lost == 0 {
		t.Error("nothing was given up")
	}
	if must(t, fpga.ClearCounters(c)); c.lost != 0 {
		t.Errorf("%d frames of the run before are given up in the next one", c.lost)
	}
}

// takenAway removes first the program from the interface and then the cable during a run. It checks that the resulting
// losses are reported.
func takenAway(t *testing.T, c *Card) {
	must(t, c.attached[0].Close())
	c.attached = c.attached[1:]
	if faults := strings.Join(c.Faults(), "\n"); !strings.Contains(faults, "was detached from") {
		t.Errorf("%q", faults)
	}
	must(t, c.in[0].B.Do(func() error {
		l, err := netlink.LinkByIndex(c.in[0].B.Index)
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	}))
	if faults := strings.Join(c.Faults(), "\n"); !strings.Contains(faults, "gone") {
		t.Errorf("%q", faults)
	}
	if err := c.Write32(regmap.CommonCommand, regmap.CommonCommandSnapshot); err == nil {
		t.Error("counters were read of a cable that is gone")
	}
}

// TestTwoCards checks that two cards do not affect each other, and then removes parts of one of them.
func TestTwoCards(t *testing.T) {
	a, b := open(t, backends[0]), open(t, backends[0])
	w := workload{workers: 2, clusters: 2, updates: 20, gap: 25_000, size: 128}
	for _, c := range []*Card{a, b} {
		w.load(t, c)
		configure(t, c, "olaf", 5*olaf.Mbps)
	}
	if n := fire(t, a); n.Queue.In != 20 {
		t.Errorf("%+v", n.Queue)
	}
	n, err := fpga.Snapshot(b)
	if must(t, err); n.Queue.In != 0 {
		t.Errorf("the other card's: %+v", n.Queue)
	}
	takenAway(t, b)
}
