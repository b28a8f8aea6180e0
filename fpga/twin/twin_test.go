package twin

import (
	"context"
	"net/netip"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// fakeTables contain worker w of cluster c at 10.x.y.z with x.y.z = c·256 + w, and the server at 192.0.2.1.
type fakeTables struct {
	version uint64
	workers map[netip.Addr][2]uint16
	groups  map[olaf.ClusterID][]olaf.WorkerID
}

var serverIP = [4]byte{192, 0, 2, 1}

func workerIP(c, w int) [4]byte { return [4]byte{10, byte(c >> 8), byte(c), byte(w)} }

func newTables(clusters, workers int) *fakeTables {
	f := &fakeTables{version: 1, workers: map[netip.Addr][2]uint16{}, groups: map[olaf.ClusterID][]olaf.WorkerID{}}
	for c := range clusters {
		for w := range workers {
			id := c*workers + w
			f.workers[netip.AddrFrom4(workerIP(c, w))] = [2]uint16{uint16(c), uint16(id)}
			f.groups[olaf.ClusterID(c)] = append(f.groups[olaf.ClusterID(c)], olaf.WorkerID(id))
		}
	}
	return f
}

func (f *fakeTables) Worker(a netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool) {
	v, ok := f.workers[a]
	return olaf.ClusterID(v[0]), olaf.WorkerID(v[1]), ok
}
func (f *fakeTables) Server(a netip.Addr) bool { return a == netip.AddrFrom4(serverIP) }
func (f *fakeTables) Group(c olaf.ClusterID) ([]olaf.WorkerID, bool) {
	g, ok := f.groups[c]
	return g, ok
}
func (f *fakeTables) Version() uint64 { return f.version }

// bench is a twin with helper methods; every failure ends the test.
type bench struct {
	testing.TB
	*Twin
}

func newBench(tb testing.TB, cfg Config) *bench {
	tb.Helper()
	t, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return &bench{tb, t}
}

func (b *bench) write(addr, v uint32) {
	b.Helper()
	if err := b.Write32(addr, v); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) read(addr uint32) uint32 {
	b.Helper()
	v, err := b.Read32(addr)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

func (b *bench) sleep(d olaf.Duration) {
	b.Helper()
	if err := b.Sleep(context.Background(), d); err != nil {
		b.Fatal(err)
	}
	if err := b.Check(); err != nil {
		b.Fatal(err)
	}
}

// configure configures the queue and enables it.
func (b *bench) configure(mode, depth uint32, bytesPerCycle uint32) {
	b.Helper()
	b.write(regmap.QueueControl, 0)
	b.write(regmap.QueueMode, mode)
	b.write(regmap.QueueDepth, depth)
	b.write(regmap.QueueLimiterIncrement, bytesPerCycle<<24)
	b.write(regmap.QueueLimiterControl, regmap.QueueLimiterControlEnable)
	b.write(regmap.QueueControl, regmap.QueueControlEnable)
}

// loadFlows loads one flow per worker, in the order of fakeTables' ids.
func (b *bench) loadFlows(clusters, workers int, change func(i int, f *regmap.Flow)) {
	b.Helper()
	words := make([]uint32, clusters*workers*regmap.FlowWords)
	for c := range clusters {
		for w := range workers {
			id := c*workers + w
			f := regmap.Flow{
				SourceIP: workerIP(c, w), DestIP: serverIP, SourcePort: 4000, DestPort: olaf.UDPPort, Cluster: olaf.ClusterID(c),
				Worker: olaf.WorkerID(id), Length: 256, Enable: true,
			}
			if change != nil {
				change(id, &f)
			}
			f.Put(words[id*regmap.FlowWords:])
		}
	}
	b.load(1, words)
	b.write(regmap.GeneratorFlows, uint32(clusters*workers))
}

func (b *bench) load(memory uint32, words []uint32) {
	b.Helper()
	b.write(regmap.GeneratorMemSelect, memory)
	b.write(regmap.GeneratorMemCommand, regmap.GeneratorMemCommandClear)
	if err := b.WriteBurst(regmap.GeneratorMemData, words); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) loadDescriptors(ds ...regmap.Descriptor) {
	b.Helper()
	words := make([]uint32, len(ds)*regmap.DescriptorWords)
	for i := range ds {
		ds[i].Put(words[i*regmap.DescriptorWords:])
	}
	b.load(0, words)
	b.write(regmap.GeneratorDescriptors, uint32(len(ds)))
}

func (b *bench) start() {
	b.Helper()
	b.write(regmap.GeneratorCommand, regmap.GeneratorCommandArm)
	b.write(regmap.GeneratorCommand, regmap.GeneratorCommandStart)
}

// finish lets time pass until the generator has finished and the queue is empty.
func (b *bench) finish() {
	b.Helper()
	for range 10000 {
		b.sleep(100 * olaf.Microsecond)
		s := b.read(regmap.GeneratorState)
		if (s == uint32(done) || s == uint32(idle) || s == uint32(failed)) && b.read(regmap.QueueStatus)&regmap.QueueStatusEmpty != 0 {
			return
		}
	}
	b.Fatal("never done")
}

func (b *bench) count() regmap.QueueCounters {
	b.Helper()
	b.write(regmap.CommonCommand, regmap.CommonCommandSnapshot)
	c, err := regmap.ReadQueueCounters(b)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

const (
	fifo  = regmap.QueueModeDisciplineFIFO
	smart = regmap.QueueModeDisciplineOlaf
)

// burst returns n updates, one every gap cycles, in round-robin order over the flows.
func burst(n, flows int, gap uint64) []regmap.Descriptor {
	ds := make([]regmap.Descriptor, n)
	for i := range ds {
		ds[i] = regmap.Descriptor{Time: uint64(i) * gap, Flow: uint16(i % flows), Sequence: uint32(i / flows), Reward: 256}
	}
	return ds
}

func TestOneUpdateCrossesTheCard(t *testing.T) {
	b := newBench(t, Config{Tables: newTables(2, 1)})
	b.configure(smart|regmap.QueueModeProvenance, 8, 20)
	b.loadFlows(2, 1, nil)
	b.loadDescriptors(regmap.Descriptor{Time: 100, Flow: 1, Sequence: 7, Reward: -3})
	b.sleep(olaf.Microsecond)
	b.start()
	b.finish()
	got := b.Drain(nil)
	if len(got) != 1 {
		t.Fatalf("%d observations", len(got))
	}
	o := got[0]
	want := olaf.Update{GenNS: 400, Seq: 7, Reward: -3, Cluster: 1, Worker: 1, Count: 1, Lanes: 48}
	if o.Update != want {
		t.Errorf("update %+v, want %+v", o.Update, want)
	}
	// 256 B at 20 B a cycle take 12.8 cycles: the last bit is out at cycle 113.
	if o.At != olaf.Time(113*olaf.Cycle) || o.Queued != 13*olaf.Cycle {
		t.Errorf("at %v after %v", o.At, o.Queued)
	}
	if len(o.Contributors) != 1 || o.Contributors[0] != (olaf.Contributor{GenNS: 400, Seq: 7, Worker: 1}) {
		t.Errorf("contributors %v", o.Contributors)
	}
}

// BenchmarkRun measures one micro-benchmark run of the paper's size: 13,500 updates are loaded by WriteBurst, sent and
// drained.
func BenchmarkRun(b *testing.B) {
	cases := []struct {
		name              string
		mode              uint32
		clusters, workers int
		acks, wire        bool
	}{
		{"olaf", smart, 9, 3, false, false},
		{"olaf/provenance", smart | regmap.QueueModeProvenance, 9, 3, false, false},
		{"fifo/provenance", fifo | regmap.QueueModeProvenance, 9, 3, false, false},
		{"olaf/10000clusters", smart | regmap.QueueModeProvenance, 10000, 1, false, false},
		{"olaf/acks", smart | regmap.QueueModeProvenance, 9, 3, true, false},
		{"olaf/wire", smart | regmap.QueueModeProvenance, 9, 3, true, true},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) { benchmarkRun(b, c.mode, c.clusters, c.workers, c.acks, c.wire) })
	}
}

func benchmarkRun(b *testing.B, mode uint32, clusters, workers int, acks, wire bool) {
	const n = 13500
	t := newBench(b, Config{Tables: newTables(clusters, workers), Wire: wire})
	t.loadFlows(clusters, workers, nil)
	words := make([]uint32, n*regmap.DescriptorWords)
	for i, d := range burst(n, clusters*workers, 6) {
		d.Put(words[i*regmap.DescriptorWords:])
	}
	t.write(regmap.GeneratorDescriptors, n)
	t.configure(mode, 8, 20)
	if acks {
		t.write(regmap.ModelControl, regmap.ModelControlAck)
	}
	var (
		obs     []olaf.Observation
		packets []Packet
	)
	b.ReportAllocs()
	for b.Loop() {
		t.write(regmap.CommonCommand, regmap.CommonCommandClear)
		t.write(regmap.GeneratorMemSelect, 0)
		if err := t.WriteBurst(regmap.GeneratorMemData, words); err != nil {
			b.Fatal(err)
		}
		t.start()
		t.finish()
		obs = t.Drain(obs[:0])
		packets = t.DrainPackets(packets[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/update")
}

// BenchmarkReplica measures the creation of one more card.
func BenchmarkReplica(b *testing.B) {
	t := newBench(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		t.Replica()
	}
}
