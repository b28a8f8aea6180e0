package saturate

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
)

var hopSeconds = flag.Int("hop", 0, "seconds for each point of XAgg's Figs. 6 to 11 on this kernel ('make xagg')")

// hopFragments is the number of packets of a model.
const hopFragments = 1024

// hop is a worker, an aggregator and a server in a row, as in the paper's micro-benchmark (§VI-B).
type hop struct {
	lab   *lab.Lab
	out   *netlab.Socket // the worker's socket
	frame []byte
	sent  int
	mode  string
}

// Offsets in a data frame, behind 42 bytes of outer headers.
const (
	fragmentAt = 48
	epochAt    = 60
)

// newHop builds the row with a program in the kernel (lab.Native) or in user space (lab.User).
func newHop(t *testing.T, mode string, values int) *hop {
	t.Helper()
	f := feederIn(t, mode, fmt.Sprintf("tree: {workers: 1, mode: %s, arithmetic: wrapping}\njob: {lanes: %d, fragments: %d}",
		map[string]string{lab.Native: lab.Native, lab.User: lab.Generic}[mode], values, hopFragments))
	h := &hop{lab: f.lab, mode: mode}
	node := f.lab.Workers()[0]
	c := h.first()
	outer := frame.Outer{Addresses: olaf.Addresses{SrcMAC: [6]byte(c.A.MAC), DstMAC: [6]byte(c.B.MAC),
		SrcIP: f.below(node).Addr().As4(), DstIP: f.above(node).Addr().As4(), SrcPort: olaf.UDPPort}}
	b := make([]byte, 1<<11)
	n, err := frame.XAgg.Encode(b, &outer, &program.Packet{Kind: program.Data, Job: f.lab.Job, Count: 1, Lanes: uint16(values)},
		make([]uint32, values))
	if err != nil {
		t.Fatal(err)
	}
	h.frame = b[:n]
	if h.out, err = c.A.Packets(false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.out.Close() })
	return h
}

// first and last return the cables to the aggregator and to the server.
func (h *hop) first() *netlab.Cable { return h.lab.Cables[h.lab.Plan.Nodes[h.lab.Workers()[0]].Up] }
func (h *hop) last() *netlab.Cable  { return h.lab.Cables[h.lab.Plan.Nodes[h.lab.Server()].Down[0]] }

// sendOne sends the next frame: the next fragment, and a new epoch after the model's last.
func (h *hop) sendOne(t *testing.T) {
	t.Helper()
	binary.BigEndian.PutUint32(h.frame[fragmentAt:], uint32(h.sent%hopFragments))
	binary.BigEndian.PutUint16(h.frame[epochAt:], uint16(h.sent/hopFragments))
	h.sent++
	if err := h.out.Send(h.frame); err != nil {
		t.Fatal(err)
	}
}

// received returns the number of frames that have reached the server's interface.
func (h *hop) received(t *testing.T) uint64 {
	t.Helper()
	c, err := h.last().B.Counts()
	if err != nil {
		t.Fatal(err)
	}
	return c.Received
}

// await returns the number of frames that have come out since before, and the time at which it saw the last one. It
// waits for n frames, but at most a fifth of a second without a frame.
func (h *hop) await(t *testing.T, before, n uint64) (came uint64, last time.Time) {
	t.Helper()
	for last = time.Now(); came < n && time.Since(last) < 200*time.Millisecond; {
		if now := h.received(t) - before; now > came {
			came, last = now, time.Now()
		}
	}
	return came, last
}

// hopWindow is the number of packets in flight in the row while its capacity is measured.
const hopWindow = 256

// point contains the results for one packet size.
type point struct {
	values      int
	mpps        float64 // packets a second, in millions
	gbps        float64 // of values
	cpuNS       float64 // of this process and of the kernel on its behalf, per packet
	latencyNS   float64 // of a packet through the idle row, without its first cable
	lossPercent []float64
	windows     int
	lossy       int // windows with a loss
}

// measureRate measures the capacity by the packets that reach the server, with a window of packets inside. It takes the best
// of many windows without a loss, because other programs only add time.
func (h *hop) measureRate(t *testing.T, p *point) {
	t.Helper()
	best, least := time.Hour, time.Hour
	for began := time.Now(); time.Since(began) < time.Duration(*hopSeconds)*time.Second; {
		at, cpu, sent := h.received(t), processTime(t), time.Now()
		for range hopWindow {
			h.sendOne(t)
		}
		came, last := h.await(t, at, hopWindow)
		p.windows++
		if came < hopWindow {
			p.lossy++
			continue
		}
		best, least = min(best, last.Sub(sent)), min(least, processTime(t)-cpu)
	}
	p.mpps = hopWindow / best.Seconds() / 1e6
	p.gbps = p.mpps * float64(p.values) * 32 / 1000
	p.cpuNS = float64(least.Nanoseconds()) / hopWindow
}

// measureLatency measures the time of a packet through the idle row, minus its time through the first cable alone.
func (h *hop) measureLatency(t *testing.T, p *point, cable float64) {
	t.Helper()
	ear, err := h.last().B.Packets(true)
	if err != nil {
		t.Fatal(err)
	}
	defer ear.Close()
	p.latencyNS = h.fastTime(t, ear) - cable
}

// fastTime returns the time of a packet until a socket has it: the 10th percentile, because other programs only add time.
func (h *hop) fastTime(t *testing.T, ear *netlab.Socket) float64 {
	t.Helper()
	var times []float64
	buf := make([]byte, 1<<11)
	for sent := range 1000 {
		began := time.Now()
		h.sendOne(t)
		for {
			n, err := ear.Receive(buf)
			if err == nil && n == len(h.frame) {
				times = append(times, float64(time.Since(began)))
				break
			}
			if err != nil && !errors.Is(err, netlab.ErrAgain) {
				t.Fatal(err)
			}
			if time.Since(began) > 100*time.Millisecond {
				break // the packet was lost
			}
		}
		if sent > 20 && len(times) == 0 {
			t.Fatalf("%s: no packet came", h.mode)
		}
	}
	slices.Sort(times)
	return times[len(times)/10]
}

// hopLoads are the loads offered to measure losses, in packets per second.
var hopLoads = []int{5_000, 20_000, 50_000}

// measureLoss measures the share of packets lost without acknowledgements.
func (h *hop) measureLoss(t *testing.T, p *point) {
	t.Helper()
	for _, load := range hopLoads {
		before, sent := h.received(t), 0
		for began := time.Now(); time.Since(began) < time.Duration(*hopSeconds)*time.Second/4; {
			for due := began.Add(time.Duration(sent) * time.Second / time.Duration(load)); time.Now().Before(due); {
			}
			h.sendOne(t)
			sent++
		}
		came, _ := h.await(t, before, uint64(sent))
		p.lossPercent = append(p.lossPercent, 100*(1-float64(came)/float64(sent)))
	}
}

// measureUsage returns the share of one processor, in percent, that a load uses, including the sender, which sleeps
// between the milliseconds (Fig. 9).
func (h *hop) measureUsage(t *testing.T, load int) float64 {
	t.Helper()
	before, began, sent := processTime(t), time.Now(), 0
	for time.Since(began) < time.Duration(*hopSeconds)*time.Second/4 {
		for due := int(time.Since(began).Seconds() * float64(load)); sent < due; sent++ {
			h.sendOne(t)
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil) // woken early, it sends a little more often
	}
	return 100 * float64(processTime(t)-before) / float64(time.Since(began))
}

// hopStall is the minimum lateness that shows that other programs had the processor.
const hopStall = 500 * time.Microsecond

// measureLoadedLatency returns the median time from the instant at which a packet is due until it reaches the server's
// socket, in a Poisson process with the given rate (Fig. 10). One processor sends and receives. Packets around a stall,
// in which other programs had the processor, do not count.
func (h *hop) measureLoadedLatency(t *testing.T, load int) float64 {
	t.Helper()
	ear, err := h.last().B.Packets(true)
	if err != nil {
		t.Fatal(err)
	}
	defer ear.Close()
	rng := rand.New(rand.NewPCG(1, uint64(load)))
	due := make([]time.Time, hopFragments) // by fragment
	var times []float64
	buf := make([]byte, 1<<11)
	next := time.Now()
	stalled := next
	for end := next.Add(time.Duration(*hopSeconds) * time.Second / 4); time.Now().Before(end); {
		if now := time.Now(); now.Sub(next) > hopStall {
			next, stalled = now, now
		}
		if !time.Now().Before(next) {
			due[h.sent%hopFragments] = next
			h.sendOne(t)
			next = next.Add(time.Duration(rng.ExpFloat64() * 1e9 / float64(load)))
		}
		if n, err := ear.Receive(buf); err == nil && n == len(h.frame) {
			fragment := binary.BigEndian.Uint32(buf[fragmentAt:])
			if took := time.Since(due[fragment%hopFragments]); took < hopStall && time.Since(stalled) > hopStall {
				times = append(times, float64(took))
			}
		}
	}
	slices.Sort(times)
	if len(times) == 0 {
		t.Fatalf("%s: no packet of %d a second came", h.mode, load)
	}
	return times[len(times)/2]
}

// processTime returns the processor time of this process, with that of the kernel on its behalf.
func processTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measurePoint measures one size of packets in one mode.
func measurePoint(t *testing.T, mode string, values int, cable float64) point {
	p := point{values: values}
	h := newHop(t, mode, values)
	h.measureRate(t, &p)
	h.measureLatency(t, &p, cable)
	h.measureLoss(t, &p)
	return p
}

// measureLoads returns a row with processor share and latency by load, for packets of 256 values.
func measureLoads(t *testing.T, mode string) string {
	h := newHop(t, mode, 256)
	row := "| " + mode
	for _, load := range hopLoads {
		row += fmt.Sprintf(" | %.0f %%, %.1f µs", h.measureUsage(t, load), h.measureLoadedLatency(t, load)/1000)
	}
	return row + " |\n"
}

// measureCable returns the time of a packet through one cable.
func measureCable(t *testing.T, values int) float64 {
	h := newHop(t, lab.User, values)
	ear, err := h.first().B.Packets(true)
	if err != nil {
		t.Fatal(err)
	}
	defer ear.Close()
	return h.fastTime(t, ear)
}

// measureAcked returns the percentage of packets that workers and aggregators resend if the server loses every 50th sum
// and packets are acknowledged in groups of 1,024. Every sum must be exact.
func measureAcked(t *testing.T, mode string) float64 {
	text := map[string]string{lab.Native: lab.Native, lab.User: lab.Generic}[mode]
	f := feederIn(t, mode, fmt.Sprintf("tree: {workers: 2, mode: %s}\njob: {lanes: 256, fragments: 2048}", text))
	f.deaf = 50
	r, err := f.Run(t.Context(), Config{Vectors: 5, Line: 50 * olaf.Mbps, Seed: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Valid() || r.Wrong > 0 {
		t.Errorf("%s: with acknowledgements: %+v", mode, r)
	}
	return 100 * float64(r.Resent+r.SumsAgain) / float64(r.Sent)
}

// publishedMpps are the paper's printed rates by values per packet (Fig. 6, §VI-B).
var publishedMpps = map[int]string{32: "4.19", 256: "1.59", 320: "1.11"}

// TestXAggOnThisKernel measures the quantities in Figs. 6, 7, 9, 10 and 11 of XAgg, with the program in the kernel and
// in user space, and prints them for docs/papers/xagg.md. A packet's time includes the sender. BenchmarkAggregator in
// fpga/xdp measures the kernel's program alone, and BenchmarkAggregatorCores measures Fig. 8.
func TestXAggOnThisKernel(t *testing.T) {
	if *hopSeconds == 0 {
		t.Skip("a measurement; -hop 2 runs it ('make xagg')")
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Skip(err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "load %s\n\n| values | Mpps | paper | Gbps of values | CPU ns | one hop, µs | lost at %v a second, %% | windows with a loss |\n|---|---|---|---|---|---|---|---|\n",
		strings.Fields(string(load))[0], hopLoads)
	for _, mode := range []string{lab.Native, lab.User} {
		for _, values := range []int{32, 64, 128, 192, 256, 320} {
			t.Run(fmt.Sprintf("%s/%d", mode, values), func(t *testing.T) {
				p := measurePoint(t, mode, values, measureCable(t, values))
				printed := ""
				if mode == lab.Native {
					printed = publishedMpps[values]
				}
				fmt.Fprintf(&out, "| %s, %d | %.3f | %s | %.2f | %.0f | %.1f | %.1f, %.1f, %.1f | %d of %d |\n", mode, values, p.mpps, printed, p.gbps,
					p.cpuNS, p.latencyNS/1000, p.lossPercent[0], p.lossPercent[1], p.lossPercent[2], p.lossy, p.windows)
			})
		}
	}
	fmt.Fprintf(&out, "\n| processor and median latency at %v a second | | | |\n", hopLoads)
	for _, mode := range []string{lab.Native, lab.User} {
		out.WriteString(measureLoads(t, mode))
	}
	for _, mode := range []string{lab.Native, lab.User} {
		fmt.Fprintf(&out, "%s: %.2f %% sent again where each 50th sum was lost, all exact\n", mode, measureAcked(t, mode))
	}
	t.Log("\n" + out.String())
}
