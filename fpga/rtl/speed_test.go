package rtl

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/lockstep"
	"github.com/olafctl/olaf/fpga/regmap"
)

// stream loads n frames of a size, back to back on the bus, and starts them.
func (b *bench) stream(tb testing.TB, n, size int) {
	tb.Helper()
	words := make([]uint32, len(lockstep.TableWorkers())*regmap.FlowWords)
	for i, w := range lockstep.TableWorkers() {
		f := regmap.Flow{SourceIP: w.Address.As4(), DestPort: olaf.UDPPort, Cluster: w.Cluster, Worker: w.ID, Enable: true}
		f.Put(words[i*regmap.FlowWords:])
	}
	b.load(tb, 1, words)
	flows := len(lockstep.TableWorkers())
	words = make([]uint32, n*regmap.DescriptorWords)
	for i := range n {
		d := regmap.Descriptor{Time: uint64(i * ((size + 63) / 64)), Flow: uint16(i * 5 % flows), Length: uint16(size),
			Sequence: uint32(i)}
		d.Put(words[i*regmap.DescriptorWords:])
	}
	b.load(tb, 0, words)
	b.set(tb, regmap.GeneratorFlows, uint32(flows))
	b.set(tb, regmap.GeneratorDescriptors, uint32(n))
	b.start(tb)
}

func (b *bench) start(tb testing.TB) {
	tb.Helper()
	b.set(tb, regmap.GeneratorCommand, regmap.GeneratorCommandArm)
	b.pass(tb, 40)
	b.set(tb, regmap.GeneratorCommand, regmap.GeneratorCommandStart)
}

func (b *bench) load(tb testing.TB, memory uint32, words []uint32) {
	tb.Helper()
	b.set(tb, regmap.GeneratorMemSelect, memory)
	if err := b.WriteBurst(regmap.GeneratorMemData, words); err != nil {
		tb.Fatal(err)
	}
}

func (b *bench) set(tb testing.TB, addr, value uint32) {
	tb.Helper()
	if err := b.Write32(addr, value); err != nil {
		tb.Fatal(err)
	}
}

func (b *bench) pass(tb testing.TB, cycles int64) {
	tb.Helper()
	if err := b.Sleep(tb.Context(), olaf.Duration(cycles)*olaf.Cycle); err != nil {
		tb.Fatal(err)
	}
}

// enabled resets the card and enables its queue at the line rate or at a lower rate.
func (b *bench) enabled(tb testing.TB, increment uint32) {
	tb.Helper()
	b.set(tb, regmap.CommonCommand, regmap.CommonCommandReset)
	b.set(tb, regmap.QueueMode, 1)
	if increment != 0 {
		b.set(tb, regmap.QueueLimiterControl, regmap.QueueLimiterControlEnable)
		b.set(tb, regmap.QueueLimiterIncrement, increment)
	}
	b.set(tb, regmap.QueueControl, regmap.QueueControlEnable)
	b.frames = nil
	b.tap = tap{}
}

// TestNoBubbles checks that frames of 256 bytes and more enter back to back, and that shorter frames are delayed.
func TestNoBubbles(t *testing.T) {
	b := openBench(t, Build{})
	b.cfg.Tables = workers()
	for _, size := range []int{64, 128, 256, 320, 1500, 9036} {
		b.enabled(t, 0)
		b.stream(t, 200, size)
		b.pass(t, 200*145)
		c, err := fpga.Snapshot(b.Card)
		if err != nil {
			t.Fatal(err)
		}
		if held := c.Generator.LatePackets > 0; held != (size < 256) || c.Generator.SentPackets != 200 {
			t.Errorf("%d B: %d of %d packets held up", size, c.Generator.LatePackets, c.Generator.SentPackets)
		}
	}
}

// TestLatency checks the time of one update through an empty queue at the line rate, from its first beat at the input
// until its last bit is due, in cycles.
func TestLatency(t *testing.T) {
	b := openBench(t, Build{})
	b.cfg.Tables = workers()
	for _, c := range []struct{ size, cycles int }{{256, 11}, {1500, 51}, {9036, 287}} {
		b.enabled(t, 0)
		b.stream(t, 1, c.size)
		b.pass(t, 400)
		if len(b.frames) != 1 {
			t.Fatalf("%d B: %d frames", c.size, len(b.frames))
		}
		if took := int(b.frames[0].over - b.zero - 2); took != c.cycles { // the generator and VNP4-1 take two cycles
			t.Errorf("%d B: %d cycles, want %d", c.size, took, c.cycles)
		}
	}
}

// BenchmarkStream measures a saturated stream of 256 B through the child: clocks of the logic per second of wall time,
// and per second of the child's processor time.
func BenchmarkStream(tb *testing.B) {
	c, err := Open(tb.Context(), Config{Tables: workers()})
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	b := &bench{Card: c}
	b.enabled(tb, 20<<24)
	const frames = 20_000
	b.stream(tb, frames, 256)
	b.pass(tb, 1)
	clocks, used, began := c.child.clocks, processorTime(tb, c.child.cmd.Process.Pid), time.Now()
	for tb.Loop() {
		b.pass(tb, 4*frames+400)
		c.Drain(nil)
		b.start(tb)
	}
	done := float64(c.child.clocks - clocks)
	tb.ReportMetric(done/time.Since(began).Seconds()/1e6, "Mclocks/s")
	tb.ReportMetric(done/(processorTime(tb, c.child.cmd.Process.Pid)-used)/1e6, "Mclocks/cpu-s")
}

// BenchmarkChild measures the same stream through the child alone. Its requests are recorded first, and repeated from a
// file without reading the answers. The time for loading is measured separately and subtracted.
func BenchmarkChild(b *testing.B) {
	c, err := Open(b.Context(), Config{Tables: workers()})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	asked := record(b, c.child)
	if err := c.child.setReports(reportLog); err != nil {
		b.Fatal(err)
	}
	e := &bench{Card: c}
	e.enabled(b, 20<<24)
	const frames, rounds = 20_000, 100
	e.stream(b, frames, 256)
	e.pass(b, 1)
	loading, clocks := asked(), c.child.clocks
	for range rounds {
		e.pass(b, 4*frames+400)
		c.Drain(nil)
		e.start(b)
	}
	whole, clocks := asked(), c.child.clocks-clocks
	best := 0.0
	for b.Loop() {
		took := askAgain(b, c.child.cmd.Path, whole) - askAgain(b, c.child.cmd.Path, loading)
		best = max(best, float64(clocks)/took.Seconds())
	}
	b.ReportMetric(best/1e6, "Mclocks/cpu-s")
}

// record records the child's requests from now on. The function that it returns returns all requests so far.
func record(tb testing.TB, c *child) (asked func() []byte) {
	tb.Helper()
	from, to, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	var kept bytes.Buffer
	child, done := c.to, make(chan struct{})
	c.to = to
	go func() {
		defer close(done)
		_, _ = io.Copy(io.MultiWriter(&kept, child), from)
		_ = child.Close()
	}()
	tb.Cleanup(func() {
		_ = to.Close()
		<-done
		_ = from.Close()
	})
	return func() []byte { return bytes.Clone(kept.Bytes()) } // no data are in flight between an answer and the next request
}

// askAgain returns the processor time that a program needs for recorded requests.
func askAgain(tb testing.TB, program string, asked []byte) time.Duration {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "asked")
	if err := os.WriteFile(name, asked, 0o600); err != nil {
		tb.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	cmd := exec.CommandContext(tb.Context(), program)
	cmd.Stdin = file
	if err := cmd.Run(); err != nil {
		tb.Fatal(err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// processorTime returns the processor time of a process in seconds.
func processorTime(tb testing.TB, pid int) float64 {
	tb.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		tb.Skip(err)
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+2:])
	user, _ := strconv.ParseFloat(string(fields[11]), 64)
	system, _ := strconv.ParseFloat(string(fields[12]), 64)
	return (user + system) / 100 // ticks of USER_HZ
}
