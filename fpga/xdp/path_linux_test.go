package xdp

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
)

// BenchmarkMergePath measures the whole path except for senders: frames made by the kernel go through a cable to the
// program at its other end, which merges all of them into one. Every frame must arrive and be in the sum.
func BenchmarkMergePath(b *testing.B) {
	for _, c := range []struct{ lanes, goalKpps int }{{48, 700}, {256, 400}} {
		b.Run(fmt.Sprintf("olaf/lanes=%d", c.lanes), func(b *testing.B) {
			p := newPath(b, c.lanes)
			best := 0.0
			for b.Loop() {
				best = max(best, p.series(b))
			}
			p.check(b)
			b.ReportMetric(best, "kpps-best")
			b.ReportMetric(float64(c.goalKpps), "kpps-goal")
		})
	}
}

// path is a cable with a source at one end and a queue at the other.
type path struct {
	cable  *netlab.Cable
	queue  *Queue
	source *ebpf.Program
	lanes  int
	frames [2][]byte
	sent   uint64
}

func newPath(b *testing.B, lanes int) *path {
	p := &path{cable: cable(b), lanes: lanes, queue: load(b, "olaf",
		dataplane.Build{Slots: 8, Clusters: 8, Lanes: lanes, FrameLanes: lanes, Senders: 8})}
	b.Cleanup(func() { _ = p.queue.Close() })
	p.frames = prepare(b, p.queue, lanes)
	for i, frame := range p.frames { // each lane is 0 in the first frame and 1 in the second
		for at := olaf.HeaderBytes; at < len(frame); at += olaf.LaneBytes {
			binary.BigEndian.PutUint32(frame[at:], uint32(i))
		}
	}
	attached, err := p.queue.Attach(p.cable.B, dataplane.Native)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = attached.Close() })
	// Sends a frame back out of its stated ingress interface, to the other end of the cable.
	p.source, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, int32(Send)), asm.Return()}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.source.Close() })
	return p
}

// seriesFrames is the number of frames that the kernel makes at a time.
const seriesFrames = 200_000

// liveFrames makes a program run on real frames (BPF_F_TEST_XDP_LIVE_FRAMES).
const liveFrames = 1 << 1

// md is the context of a program in user space's format.
type md struct {
	Data, End, Meta, Ingress, Queue, Egress uint32
}

// series sends the second worker's update repeatedly, and waits until all are decided. It returns the rate in thousands
// per second.
func (p *path) series(b *testing.B) float64 {
	frame := p.frames[1]
	began := time.Now()
	err := p.cable.A.Do(func() error {
		_, err := p.source.Run(&ebpf.RunOptions{Data: frame, Repeat: seriesFrames, Flags: liveFrames,
			Context: md{End: uint32(len(frame)), Ingress: uint32(p.cable.A.Index)}})
		return err
	})
	if err != nil {
		b.Skipf("live frames: %v", err)
	}
	took := time.Since(began)
	p.sent += seriesFrames
	return seriesFrames / took.Seconds() / 1000
}

// check checks that every frame was merged, and that the sum is right.
func (p *path) check(b *testing.B) {
	out := make([]byte, olaf.FrameSize(p.lanes))
	_, sums, err := p.queue.Latch(false)
	if err != nil || sums["aggregated"]+sums["replaced"] != p.sent {
		b.Fatalf("%d frames sent, %v, %v", p.sent, sums, err)
	}
	x, frame, err := p.queue.Turn(false, true, out)
	if err != nil || !x.Started {
		b.Fatalf("%+v, %v", x, err)
	}
	for at := olaf.HeaderBytes; at < len(frame); at += olaf.LaneBytes {
		if got := uint64(binary.BigEndian.Uint32(frame[at:])); got != sums["aggregated"] {
			b.Fatalf("lane %d is %d after %d updates of 1", (at-olaf.HeaderBytes)/olaf.LaneBytes, got, sums["aggregated"])
		}
	}
}
