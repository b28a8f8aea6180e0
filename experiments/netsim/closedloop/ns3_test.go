package closedloop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// ns3Case is one parameter set of docs/notes/ns3/aggregate.cc. At its rates a bit takes a whole number of ps, because
// ns-3 rounds every transmission while we carry the remainder over.
type ns3Case struct {
	system                string
	workers, values, per  int
	slots, rounds         int
	rate                  olaf.Rate
	delay, spread, expire olaf.Duration // a worker computes for a random time below spread; 0 starts all at once
	loss                  float64
	seed                  uint64
}

var ns3Cases = []ns3Case{
	{system: "iswitch", workers: 4, values: 3660, per: 366, rounds: 8, rate: 10 * olaf.Gbps, delay: 500 * olaf.Nanosecond,
		spread: olaf.Millisecond, seed: 1},
	{system: "iswitch", workers: 4, values: 3661, per: 366, rounds: 8, rate: 10 * olaf.Gbps, delay: 500 * olaf.Nanosecond, seed: 2}, // one lane in the last packet; all simultaneous
	{system: "iswitch", workers: 12, values: 20_000, per: 366, rounds: 5, rate: 25 * olaf.Gbps, delay: 1234 * olaf.Picosecond,
		spread: 30 * olaf.Microsecond, seed: 3},
	{system: "iswitch", workers: 3, values: 5000, per: 64, slots: 7, rounds: 6, rate: 40 * olaf.Gbps, delay: 20 * olaf.Microsecond,
		spread: 5 * olaf.Microsecond, seed: 4}, // a short table
	{system: "iswitch", workers: 1, values: 999, per: 64, slots: 1, rounds: 4, rate: olaf.Gbps, spread: olaf.Microsecond, seed: 5},
	{system: "iswitch", workers: 32, values: 640, per: 2, slots: 16, rounds: 3, rate: 100 * olaf.Gbps, delay: olaf.Microsecond,
		seed: 6},
	{system: "switchml", workers: 4, values: 6400, per: 64, slots: 8, rounds: 8, rate: 10 * olaf.Gbps, delay: 500 * olaf.Nanosecond,
		spread: olaf.Millisecond, expire: olaf.Millisecond, seed: 7},
	{system: "switchml", workers: 8, values: 64_001, per: 256, slots: 128, rounds: 4, rate: 100 * olaf.Gbps, delay: olaf.Microsecond,
		spread: 50 * olaf.Microsecond, expire: olaf.Millisecond, seed: 8},
	{system: "switchml", workers: 2, values: 1000, per: 1, slots: 3, rounds: 3, rate: 40 * olaf.Gbps, delay: 77 * olaf.Nanosecond,
		expire: olaf.Millisecond, seed: 9},
	{system: "switchml", workers: 4, values: 6400, per: 64, slots: 1, rounds: 8, rate: 10 * olaf.Gbps, delay: 500 * olaf.Nanosecond,
		spread: 100 * olaf.Microsecond, expire: olaf.Millisecond, loss: 0.01, seed: 10},
	{system: "switchml", workers: 1, values: 12_800, per: 64, slots: 32, rounds: 4, rate: 25 * olaf.Gbps, delay: 2 * olaf.Microsecond,
		spread: 100 * olaf.Microsecond, expire: 200 * olaf.Microsecond, loss: 0.05, seed: 11},
	{system: "switchml", workers: 2, values: 320, per: 32, slots: 1, rounds: 4, rate: olaf.Gbps, delay: 100 * olaf.Microsecond,
		spread: 10 * olaf.Microsecond, expire: 150 * olaf.Microsecond, loss: 0.1, seed: 12}, // some are resent too early
}

func (c *ns3Case) String() string {
	return fmt.Sprintf("%s workers=%d values=%d lanes=%d slots=%d rounds=%d rate=%d delay=%d spread=%d timeout=%d loss=%g seed=%d",
		c.system, c.workers, c.values, c.per, c.slots, c.rounds, int64(c.rate), int64(c.delay), int64(c.spread), int64(c.expire),
		c.loss, c.seed)
}

// computes returns a worker's compute time for a vector.
func (c *ns3Case) computes(worker int, vector uint32) olaf.Duration {
	if c.spread == 0 {
		return olaf.Microsecond
	}
	return olaf.Microsecond + olaf.Duration(splitmix.MixBits(c.seed<<40^uint64(worker)<<20^uint64(vector))%uint64(c.spread))
}

// skew is the difference in timeouts from one worker to the next. Without it, two retries would reach the switch at the
// same instant. Their order, which no protocol defines, would decide which retry is answered, and so what is lost.
const skew = 1237 * olaf.Nanosecond

// systemParts returns the system-specific settings: its parts, and the encoding of whole numbers.
func (c *ns3Case) systemParts() (system.Parts, codec) {
	if c.system == "switchml" {
		p := switchmlParts(c.slots)
		p.Worker = func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
			return endpoint.NewSwitchML(cfg, endpoint.SwitchML{Slots: c.slots, Timeout: c.expire + skew*olaf.Duration(cfg.Worker)}, h)
		}
		return p, integers
	}
	packets := (c.values + c.per - 1) / c.per
	isw := endpoint.ISwitch{Recovery: endpoint.RecoverNone, Ahead: c.slots, Wrap: c.slots > 0}
	if c.slots > 0 {
		packets = c.slots
	}
	return iswitchParts(isw, packets), floats
}

const ns3Header = "rx_ps,worker,seg,slot,set,value\n"

// ours returns the receive trace of our simulator.
func (c *ns3Case) ours(t *testing.T) []byte {
	t.Helper()
	parts, coded := c.systemParts()
	parts.Build.LaneMemory, parts.Build.Wrap = c.per, c.slots > 0 && c.system == "iswitch"
	var trace bytes.Buffer
	trace.WriteString(ns3Header)
	worker := parts.Worker
	parts.Worker = func(cfg endpoint.Config, h endpoint.Host) (endpoint.Endpoint, error) {
		e, err := worker(cfg, h)
		return &overheard{e, int(cfg.Worker), coded, &trace}, err
	}
	n := Network{Workers: c.workers, Link: Link{Rate: c.rate, Delay: c.delay, Overhead: 24, Loss: c.loss}}
	j := Job{
		Layout: endpoint.Layout{Values: c.values, PerPacket: c.per}, Updates: uint32(c.rounds), Begin: c.computes,
		Values: func(_ olaf.Time, w int, vector uint32) []uint32 {
			v := slices.Repeat([]uint32{coded.word(0)}, c.values)
			for seg := 0; seg*c.per < c.values; seg++ {
				v[seg*c.per] = coded.word((w+1)*(int(vector)+3) + seg)
			}
			return v
		},
	}
	run(t, n, j, parts, true, c.seed)
	return trace.Bytes()
}

// overheard is a worker that records the sums that it receives.
type overheard struct {
	endpoint.Endpoint
	worker int
	coded  codec
	trace  *bytes.Buffer
}

func (o *overheard) Receive(now olaf.Time, p *program.Packet, lanes []uint32) {
	set := 0
	if p.Flags&program.Set1 != 0 {
		set = 1
	}
	fmt.Fprintf(o.trace, "%d,%d,%d,%d,%d,%d\n", int64(now), o.worker, p.Seg, p.Index, set, o.coded.of(lanes[0]))
	o.Endpoint.Receive(now, p, lanes)
}

// theirs returns the receive trace of ns-3.
func (c *ns3Case) theirs(t *testing.T, aggregate string) []byte {
	t.Helper()
	dir := t.TempDir()
	compute, rx := filepath.Join(dir, "compute.csv"), filepath.Join(dir, "rx.csv")
	var table bytes.Buffer
	for w := range c.workers {
		for v := range c.rounds {
			fmt.Fprintf(&table, "%d,%d,%d\n", w, v, int64(c.computes(w, uint32(v))))
		}
	}
	if err := os.WriteFile(compute, table.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	parts, _ := c.systemParts()
	args := []string{"--system=" + c.system, "--compute=" + compute, "--rx=" + rx}
	for _, one := range []struct {
		name  string
		value any
	}{{"workers", c.workers}, {"values", c.values}, {"lanes", c.per}, {"header", int(parts.Header)}, {"slots", c.slots},
		{"rounds", c.rounds},
		{"rate", int64(c.rate)}, {"delay", int64(c.delay)}, {"timeout", int64(c.expire)}, {"skew", int64(skew)},
		{"loss", uint64(c.loss * (1 << 63))}, {"seed", c.seed}} {
		args = append(args, fmt.Sprintf("--%s=%v", one.name, one.value))
	}
	if out, err := exec.CommandContext(context.Background(), aggregate, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	trace, err := os.ReadFile(rx)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

const ns3Golden = "ns3.golden"

func digest(trace []byte) string { return fmt.Sprintf("%x", sha256.Sum256(trace)) }

// TestEqualToNS3 compares digests of receive traces with those of ns-3.
func TestEqualToNS3(t *testing.T) {
	digests, err := os.ReadFile("testdata/" + ns3Golden)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ns3Cases {
		c := &ns3Cases[i]
		if got := fmt.Sprintf("%s: %s\n", c, digest(c.ours(t))); !strings.Contains(string(digests), got) {
			t.Errorf("%s: not what ns-3 has", c)
		}
	}
}

// TestAgainstNS3 builds the ns-3 program and compares whole traces; it needs OLAF_NS3=1. With -update it writes the
// digests.
func TestAgainstNS3(t *testing.T) {
	if os.Getenv("OLAF_NS3") != "1" {
		t.Skip("set OLAF_NS3=1 to compare with ns-3 itself (Debian packages libns3-dev and g++); TestEqualToNS3 compares with its digests")
	}
	aggregate := filepath.Join(t.TempDir(), "aggregate")
	build := exec.CommandContext(context.Background(), "g++", "-O2", "-std=c++17", "../../../docs/notes/ns3/aggregate.cc", "-o",
		aggregate,
		"-lns3-point-to-point", "-lns3-network", "-lns3-core")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the ns-3 program: %v\n%s", err, out)
	}
	var digests strings.Builder
	for i := range ns3Cases {
		c := &ns3Cases[i]
		ours, theirs := c.ours(t), c.theirs(t, aggregate)
		fmt.Fprintf(&digests, "%s: %s\n", c, digest(theirs))
		if !bytes.Equal(ours, theirs) {
			t.Errorf("%s: %s", c, firstDifference(ours, theirs))
		}
	}
	if !t.Failed() {
		golden.Equal(t, ns3Golden, []byte(digests.String()))
	}
}

func firstDifference(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d of %d and %d: %q here, %q in ns-3", i+1, len(x), len(y), x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines here, %d in ns-3", len(x), len(y))
}
