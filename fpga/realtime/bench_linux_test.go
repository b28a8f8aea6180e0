package realtime

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
)

// leastFrames is the number of frames that a median needs. With fewer, none is reported.
const leastFrames = 1000

// BenchmarkSingleFrame sends one frame at a time from the workers' interface through program and pacer to the server's
// interface, at the line rate. The goal refers to the median. The best value is the time on a path without disturbance,
// and the mean mostly depends on the times when the machine did something else.
func BenchmarkSingleFrame(b *testing.B) {
	c, err := Open(xdp.NewBackend(dataplane.Native), Hosts{})
	if errors.Is(err, netlab.ErrRights) {
		b.Skip(err)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	from := netip.AddrFrom4([4]byte{10, 0, 0, 1})
	server, err := c.out.B.Packets(true)
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	err = errors.Join(c.SetSenders([]dataplane.Sender{{Address: from}}),
		fpga.ConfigureQueue(context.Background(), c,
			fpga.QueueConfig{Discipline: "olaf", Depth: 4, Output: engine.Output{Rate: engine.Line}}))
	if err != nil {
		b.Fatal(err)
	}
	frame, got := make([]byte, olaf.FrameSize(48)), make([]byte, 4096)
	a := olaf.Addresses{SrcIP: from.As4(), DstIP: [4]byte{10, 1, 0, 1}}
	if _, err := olaf.EncodeUpdate(frame, &a, &olaf.Update{Count: 1, Lanes: 48}, nil); err != nil {
		b.Fatal(err)
	}
	OwnThread(Senders)
	var took histogram
	best := int64(math.MaxInt64)
	for b.Loop() {
		started := c.clock.now()
		if err := c.generator.out.Send(frame); err != nil {
			b.Fatal(err)
		}
		for _, err := server.Receive(got); err != nil; _, err = server.Receive(got) {
			if !errors.Is(err, netlab.ErrAgain) {
				b.Fatal(err)
			}
		}
		ns := c.clock.now() - started
		took.add(ns)
		best = min(best, ns)
	}
	b.ReportMetric(float64(best), "ns-best")
	if took.n >= leastFrames {
		b.ReportMetric(float64(took.quantile(0.5)), "ns-p50")
	}
	b.ReportMetric(10_000, "ns-goal")
}

// BenchmarkPaced sends 5,000 frames per second through the program to an output at half its capacity, and reports how
// late they left. The 99th percentile must be below a quarter of the service time of 100 µs, and stalls below 2 % of
// the busy time; valid is then 1.
func BenchmarkPaced(b *testing.B) {
	c := open(b, xdp.NewBackend(dataplane.Native))
	workload{workers: 8, clusters: 8, updates: 5000, gap: 50_000, size: 256}.load(b, c) // 200 µs apart
	best := int64(1 << 62)
	valid := 0.0
	for b.Loop() {
		configure(b, c, "fifo", 20_480*olaf.Kbps)
		if n := fire(b, c); n.Queue.DeliveredFrames+n.Queue.DroppedFull != 5000 {
			b.Fatalf("%+v", n.Queue)
		}
		p := c.Pacing()
		best = min(best, p.LatenessNS.P99)
		if p.Withheld == "" {
			valid = 1
		}
	}
	b.ReportMetric(float64(best), "late-p99-ns-best")
	b.ReportMetric(25_000, "late-p99-ns-goal")
	b.ReportMetric(valid, "valid")
}
