package onwire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

var attachedFlag = flag.String("attached", "", "a built olafctl, to measure attached programs with")

var exactFlag = flag.Duration("exact", 20*time.Second, "how long sums are compared while packets are lost")

const (
	attachedWorkers = 4
	megabyte        = 1 << 18 // values
)

// needAttached skips the test without -attached or the rights, and returns the interpreter.
func needAttached(t *testing.T) string {
	t.Helper()
	if *attachedFlag == "" {
		t.Skip("make attached runs it")
	}
	if err := netlab.CheckRights(lab.Rights()...); err != nil {
		t.Skip(err)
	}
	return cmp.Or(os.Getenv("OLAFCTL_PYTHON"), "/usr/bin/python3")
}

// load returns the machine's load.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// rankFile is what a rank of bench.py wrote.
type way struct {
	Spans  [][2]float64 // seconds
	CPU    float64      // of the machine
	Losses []float64
	Digest string

	Rounds, Values int // of sums that were compared
}

// round returns the median time of a round, from the last rank's start to the last rank's end.
func round(ranks []map[string]way, name string) time.Duration {
	var took []float64
	for i := range ranks[0][name].Spans {
		var start, end float64
		for _, r := range ranks {
			start, end = max(start, r[name].Spans[i][0]), max(end, r[name].Spans[i][1])
		}
		took = append(took, end-start)
	}
	slices.Sort(took)
	return time.Duration(took[len(took)/2] * 1e9)
}

// lose drops packets at random at both ends of a worker's cable, until the testbed ends. A joined packet is lost as one.
func lose(t *testing.T, at *netlab.Interface, share float64) {
	t.Helper()
	const drop, next = 2, -1 // TCX_DROP, TCX_NEXT
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "lose", Type: ebpf.SchedCLS, License: "Apache-2.0", Instructions: asm.Instructions{
		asm.FnGetPrandomU32.Call(),
		asm.JLT.Imm(asm.R0, int32(share*(1<<32)), "lost"),
		asm.Mov.Imm(asm.R0, next), asm.Return(),
		asm.Mov.Imm(asm.R0, drop).WithSymbol("lost"), asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	for _, way := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
		var l link.Link
		err := at.Do(func() (err error) {
			l, err = link.AttachTCX(link.TCXOptions{Interface: at.Index, Program: p, Attach: way})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
}

// lossShare is the share of packets that are lost in each direction.
const lossShare = 0.001

// TestAttachedExact compares every sum with the inputs of all workers, while cables lose packets.
func TestAttachedExact(t *testing.T) {
	t.Setenv("OLAF_TEST_SECONDS", strconv.FormatFloat(exactFlag.Seconds(), 'f', 0, 64))
	began := time.Now()
	ranks := runBench(t, &Program{Values: megabyte, Lanes: 704, Device: "xdp:", Scale: 1}, "exact", lossShare)
	rounds, values := 0, 0
	for _, r := range ranks {
		if rounds = r["exact"].Rounds; rounds < 1 || rounds != ranks[0]["exact"].Rounds {
			t.Errorf("%d rounds, and %d at another worker", rounds, ranks[0]["exact"].Rounds)
		}
		values += r["exact"].Values
	}
	t.Logf("%v, %g of the packets lost on every cable in each direction: %d sums, %d values, all exact at all %d workers; load %s",
		time.Since(began).Round(time.Second), lossShare, rounds, values, attachedWorkers, load())
}

// runBench runs a mode of bench.py as the program of all workers, in their namespaces, and returns what each wrote.
func runBench(t *testing.T, p *Program, mode string, losses float64) (ranks []map[string]way) {
	t.Helper()
	python := needAttached(t)
	p.Workers = attachedWorkers
	bed, err := p.sumBed("")
	if err != nil {
		t.Fatal(err)
	}
	defer bed.Close()
	folder := t.TempDir()
	script, err := filepath.Abs("../../../clients/python/tests/bench.py")
	if err != nil {
		t.Fatal(err)
	}
	var nets []string
	for _, node := range bed.Workers() {
		nets = append(nets, bed.Nodes[node].Path())
		if losses > 0 {
			lose(t, bed.Cables[bed.Plan.Nodes[node].Up].A, losses)
		}
	}
	first := bed.Plan.Cables[bed.Plan.Nodes[bed.Workers()[0]].Up].Lower
	text := fmt.Sprintf("set -- %s; shift $RANK\nexec nsenter --net=$1 env MASTER_ADDR=%v GLOO_SOCKET_IFNAME=%s %s -B %s %s\n",
		strings.Join(nets, " "), first, lab.UpName, python, script, mode)
	if err := os.WriteFile(filepath.Join(folder, "run"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OLAF_TEST_FOLDER", folder)
	p.Command, p.Clusters, p.Systems, p.Seeds = "sh "+filepath.Join(folder, "run"), 1, []string{"xagg"}, []uint64{1}
	p.Scale = cmp.Or(p.Scale, attach.DefaultScale)
	p.Olafctl = func(args ...string) *exec.Cmd {
		return exec.Command(*attachedFlag, append([]string{"testbed"}, args...)...)
	}
	p.Say, p.Told = t.Logf, func(Point) {}
	r, err := p.run(t.Context(), p.sumStand(bed), "xagg", 1)
	if err := errors.Join(err, bed.Broken()); err != nil {
		t.Fatal(err)
	}
	t.Logf("kernel %v\nserver %s\nworkers %s", r.Counts, r.Server, r.Daemon)
	for k := range p.Workers {
		text, err := os.ReadFile(filepath.Join(folder, strconv.Itoa(k)+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]way
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, all)
	}
	return ranks
}

func TestAttachedSums(t *testing.T) {
	for _, lanes := range []int{704, 256} {
		t.Run(strconv.Itoa(lanes), func(t *testing.T) {
			ranks := runBench(t, &Program{Values: megabyte, Lanes: lanes, Device: "xdp:"}, "allreduce", 0)
			ours, gloo := round(ranks, "olaf"), round(ranks, "gloo")
			n := float64(len(ranks[0]["olaf"].Spans))
			t.Logf("%d lanes: %v, gloo %v, %.2f; CPU %.1f ms, gloo %.1f ms, %.2f; load %s", lanes, ours, gloo, float64(ours)/float64(gloo),
				1e3*ranks[0]["olaf"].CPU/n, 1e3*ranks[0]["gloo"].CPU/n, ranks[0]["olaf"].CPU/ranks[0]["gloo"].CPU, load())
		})
	}
}

// echo serves a worker in this process and returns its address.
func echo(t *testing.T, h attach.Handler, name string, play func()) string {
	t.Helper()
	address := "unix:" + filepath.Join(t.TempDir(), name)
	port, err := attach.Listen(address, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = port.Close(nil) })
	go port.Serve(h)
	go play()
	return address
}

// echoSums starts a worker whose sums are its own vectors.
func echoSums(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	w, err := attach.NewRounds(attach.Config{System: "xagg", Largest: megabyte, Lanes: 704, Scale: attach.DefaultScale, Workers: 1, Waits: true}, cancel)
	if err != nil {
		t.Fatal(err)
	}
	return echo(t, w, "sums", func() {
		for round := uint32(0); ctx.Err() == nil; round++ {
			if c := w.Compute(ctx, round); ctx.Err() == nil {
				w.Apply(&endpoint.Aggregate{Number: round, Vectors: 1, Values: c.Values})
			}
		}
	})
}
