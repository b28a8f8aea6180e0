package netsim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/pktgen/trace"
)

var update = flag.Bool("update", false, "rewrite golden files; those of ns-3 from ns-3 itself, which needs OLAF_NS3=1")

// ns3Case is one parameter set of docs/notes/ns3/multihop.cc.
type ns3Case struct {
	seed                        uint64
	interval, interval2, jitter int64 // ns
	x1                          int64 // bit/s
	sends                       func(io.Writer)
}

var ns3Cases = []ns3Case{
	{seed: 1, interval: 100e6, x1: 10e6},
	{seed: 1, interval: 100e6, jitter: 10e6, x1: 10e6},
	{seed: 2, interval: 100e6, interval2: 300e6, x1: 10e6},
	{seed: 3, interval: 100e6, jitter: 99e6, x1: 500_000},
	{seed: 4, interval: 100e6, x1: 1e6},                                             // three equal bottlenecks: many simultaneous events
	{seed: 5, interval: 100e6, x1: 999_983},                                         // a prime: no transmission time is a whole number of ns
	{seed: 6, interval: 100e6, interval2: 150e6, jitter: 5e6, x1: 3_333_333},        // here neither
	{seed: 7, interval: 100e6, x1: 4_120_000},                                       // SW1 is saturated exactly
	{seed: 8, interval: 50e6, interval2: 70e6, jitter: 1000, x1: 8_240_000},         //
	{seed: 1, interval: 100e6, x1: 10e6, sends: collidingSends(100_000_000, 0)},     // all workers simultaneously, every time
	{seed: 1, interval: 100e6, x1: 10e6, sends: collidingSends(8_240_000, 824_000)}, // on the grid of the service times, unsorted
	{seed: 1, interval: 100e6, x1: 10e6, sends: collidingSends(41_200_000, 82_400)}, // a send at the instant at which the access link becomes idle
}

// collidingSends writes sends on a grid, so that many are simultaneous, also for the same worker.
func collidingSends(step, offset int64) func(io.Writer) {
	return func(w io.Writer) {
		fmt.Fprintln(w, sendsHeader)
		state := uint64(step)
		for range 30_000 {
			state = splitmix.MixBits(state)
			fmt.Fprintf(w, "%d,%d\n", int64(state%uint64(60e9/step))*step+int64(state>>40%2)*offset, state>>20%100)
		}
	}
}

func (c *ns3Case) String() string {
	s := fmt.Sprintf("seed=%d interval=%d interval2=%d jitter=%d x1=%d", c.seed, c.interval, c.interval2, c.jitter, c.x1)
	if c.sends != nil {
		h := sha256.New()
		c.sends(h)
		s += fmt.Sprintf(" arrivals=%x", h.Sum(nil)[:4])
	}
	return s
}

// ours returns the receive trace of the preset.
func (c *ns3Case) ours(t *testing.T) []byte {
	t.Helper()
	jitter := olaf.Duration(c.jitter) * olaf.Nanosecond
	topology := mustPreset(t, "ns3-fifo", Scale{
		Interval: olaf.Duration(c.interval) * olaf.Nanosecond, Interval2: olaf.Duration(c.interval2) * olaf.Nanosecond, Jitter: &jitter,
		X1: olaf.Rate(c.x1)})
	topology.Seed = c.seed
	if c.sends != nil {
		var file bytes.Buffer
		c.sends(&file)
		if err := topology.SetSends("sends.csv", &file); err != nil {
			t.Fatal(err)
		}
	}
	var received bytes.Buffer
	w := trace.NewRxWriter(&received)
	mustRun(t, topology, Options{Observer: w})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return received.Bytes()
}

func digest(trace []byte) string {
	return fmt.Sprintf("%d lines, sha256 %x", bytes.Count(trace, []byte("\n")), sha256.Sum256(trace))
}

const ns3Golden = "testdata/ns3.golden"

// TestEqualToNS3 compares the digests of receive traces with those of ns-3 3.37. docs/notes/ns3.md describes how they
// were made.
func TestEqualToNS3(t *testing.T) {
	golden, err := os.ReadFile(ns3Golden)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(golden)) {
		if name, d, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			want[name] = d
		}
	}
	for i := range ns3Cases {
		c := &ns3Cases[i]
		if got := digest(c.ours(t)); got != want[c.String()] {
			t.Errorf("%s: %s, ns-3 has %s", c, got, want[c.String()])
		}
	}
}

// TestAgainstNS3 builds the ns-3 program and compares whole traces. It takes half a minute and needs OLAF_NS3=1. With
// -update it writes the digests.
func TestAgainstNS3(t *testing.T) {
	if os.Getenv("OLAF_NS3") != "1" {
		t.Skip("set OLAF_NS3=1 to compare with ns-3 itself (Debian packages libns3-dev and g++); TestEqualToNS3 compares with its digests")
	}
	program := buildNS3(t)
	var golden strings.Builder
	for i := range ns3Cases {
		c := &ns3Cases[i]
		theirs := c.theirs(t, program)
		fmt.Fprintf(&golden, "%s: %s\n", c, digest(theirs))
		if ours := c.ours(t); !bytes.Equal(ours, theirs) {
			t.Errorf("%s: traces differ: %s", c, firstDifference(ours, theirs))
		}
	}
	var times strings.Builder
	for _, bits := range txBits {
		out, err := exec.Command(program, "--bits="+strconv.Itoa(bits), "--rates="+strings.Join(txRates(), ",")).Output()
		if err != nil {
			t.Fatal(err)
		}
		times.Write(out)
	}
	checkTransmissionTimes(t, times.String())
	if *update && !t.Failed() {
		if err := errors.Join(os.WriteFile(ns3Golden, []byte(golden.String()), 0o644),
			os.WriteFile(txGolden, []byte(times.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func buildNS3(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "multihop")
	build := exec.Command("g++", "-O2", "-std=c++17", "../../docs/notes/ns3/multihop.cc", "-o", program,
		"-lns3-point-to-point", "-lns3-internet", "-lns3-network", "-lns3-core")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the ns-3 program: %v\n%s", err, out)
	}
	return program
}

func (c *ns3Case) theirs(t *testing.T, program string) []byte {
	t.Helper()
	dir := t.TempDir()
	rx := filepath.Join(dir, "rx.csv")
	args := []string{fmt.Sprint("--seed=", c.seed), fmt.Sprint("--interval=", c.interval), fmt.Sprint("--interval2=", c.interval2),
		fmt.Sprint("--jitter=", c.jitter), fmt.Sprint("--x1=", c.x1), "--rx=" + rx}
	if c.sends != nil {
		var file bytes.Buffer
		c.sends(&file)
		sends := filepath.Join(dir, "sends.csv")
		if err := os.WriteFile(sends, file.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--arrivals="+sends)
	}
	if out, err := exec.CommandContext(context.Background(), program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	trace, err := os.ReadFile(rx)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func firstDifference(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: %q here, %q in ns-3", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines here, %d in ns-3", len(x), len(y))
}

const txGolden = "testdata/ns3_transmission.csv"

var txBits = []int{8, 2048, 8240, 8248, 72528}

// txRates returns rates of all sizes. Few of them divide anything, and some leave exactly half a ns.
func txRates() []string {
	rates := []string{"1", "3", "1000000", "999983", "848000", "16000000000", "64000000000", "4124000000", "2147483648"}
	state := uint64(1)
	for i := range 60 {
		state = splitmix.MixBits(state)
		rates = append(rates, strconv.FormatUint(1+state%(uint64(1)<<(4+i/2)), 10))
	}
	return rates
}

func checkTransmissionTimes(t *testing.T, table string) {
	t.Helper()
	n := 0
	for line := range strings.Lines(table) {
		var bits, rate, ns int64
		if _, err := fmt.Sscanf(line, "%d,%d,%d", &bits, &rate, &ns); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		clock := engine.NS3Clock(olaf.Rate(rate), 0)
		if got := clock.Ticks(olaf.Size(bits / 8)); got != ns*int64(olaf.Nanosecond) {
			t.Errorf("%d bits at %d bit/s: %d ps, ns-3 has %d ns", bits, rate, got, ns)
		}
		n++
	}
	if n < 300 {
		t.Fatalf("only %d transmission times", n)
	}
}

// TestTransmissionTimesOfNS3 compares transmission times with ns-3's, to the nanosecond.
func TestTransmissionTimesOfNS3(t *testing.T) {
	table, err := os.ReadFile(txGolden)
	if err != nil {
		t.Fatal(err)
	}
	checkTransmissionTimes(t, string(table))
}

// TestNS3Ages checks the ages of the first case, computed as an ns-3 user would: age 0 at 0, over 60 s.
func TestNS3Ages(t *testing.T) {
	r := mustRun(t, mustPreset(t, "ns3-fifo", Scale{}), Options{})
	want := []float64{142.1, 126.0, 123.3, 167.6, 169.9, 131.6, 125.1, 136.4, 195.3, 192.5}
	for i, c := range r.Clusters {
		if got := float64(c.Values.Of("aom_cluster_ns")) / 1e6; got < want[i]-0.05 || got > want[i]+0.05 {
			t.Errorf("cluster %d: %.2f ms, want %.1f", i, got, want[i])
		}
	}
	if r.Of("window_sent") != 60_000 || r.Of("window_delivered_frames") != 7281 {
		t.Errorf("sent %v, received %v", r.Of("window_sent"), r.Of("window_delivered_frames"))
	}
}

// TestImportRx checks that an imported trace has the ages of the run that wrote it.
func TestImportRx(t *testing.T) {
	topology := mustPreset(t, "ns3-fifo", Scale{})
	r := mustRun(t, topology, Options{})
	imported, err := ImportRx(topology, "rx.csv", bytes.NewReader(ns3Cases[0].ours(t)))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"aom_cluster_ns", "aom_worker_ns", "peak_aom_ns", "never_delivered", "jain", "jain_worker_means", "jain_workers",
		"delivered_frames"}
	compareValues(t, "imported", imported.Values, r.Values, names...)
	if imported.Of("loss_packets_pct").Known() {
		t.Error("a receive trace cannot tell losses")
	}
}

func TestImportRxErrors(t *testing.T) {
	topology := mustPreset(t, "ns3-fifo", Scale{})
	for _, c := range []struct{ text, want string }{
		{"", "has no receptions"},
		{trace.RxHeader + "\n", "has no receptions"},
		{trace.RxHeader + "\n10,1,0,5\n", ""},
		{"time,worker\n", "rx.csv:1: the first line"},
		{trace.RxHeader + "\n1,2,3\n", "rx.csv:2: \"1,2,3\" is not a line"},
		{trace.RxHeader + "\n10,2,0,5\n9,2,1,5\n", "rx.csv:3: reception at 9 ns comes after one at 10 ns"},
		{trace.RxHeader + "\n10,100,0,5\n", "worker 100 does not exist; the topology has workers 0 to 99"},
		{trace.RxHeader + "\n10,1,0,50\n", "after its reception"},
		{trace.RxHeader + "\n10,1,0,-5\n", "a time is outside"},
		{trace.RxHeader + "\n10,1,x,5\n", "is not a line"},
	} {
		_, err := ImportRx(topology, "rx.csv", strings.NewReader(c.text))
		if c.want == "" {
			if err != nil {
				t.Errorf("%q: %v", c.text, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrTopology) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestSendsErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "sends.csv:1: there are no sends"},
		{sendsHeader + "\n", "there are no sends"},
		{sendsHeader + "\n5\n", "sends.csv:2: \"5\" is not a line"},
		{"5,1\n6,100\n", "sends.csv:2: worker 100 does not exist"},
		{"-5,1\n", "is outside"},
		{"5,1\n9223372036854775807,1\n", "sends.csv:2: time 9223372036854775807 ns is outside"},
		{strings.Repeat("5", 1<<17), "cannot be read as lines"},
	} {
		err := mustPreset(t, "ns3-fifo", Scale{}).SetSends("sends.csv", strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrTopology) {
			t.Errorf("%.20q: %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzSends(f *testing.F) {
	f.Add("time_ns,worker\n5,1\n5,1\n3,0\n")
	f.Add("5,1")
	f.Add("9223372036854775807,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		topology := mustPreset(t, "ns3-fifo", Scale{})
		if topology.SetSends("f", strings.NewReader(text)) == nil {
			mustRun(t, topology, Options{})
		}
	})
}

func FuzzImportRx(f *testing.F) {
	f.Add(trace.RxHeader + "\n10,2,0,5\n12,2,1,5\n")
	f.Add(trace.RxHeader + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := ImportRx(mustPreset(t, "ns3-fifo", Scale{}), "f", strings.NewReader(text)); err == nil && len(r.Clusters) != 10 {
			t.Fatal("clusters are missing")
		}
	})
}
