package onwire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/netip"
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

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
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

// way is the output of a bench.py rank about one of its ways to sum.
type way struct {
	Spans           [][2]float64 // seconds
	CPU             float64      // of the machine
	Losses, Weights []float64
	Digest          string
	Scale           float64

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

// TestAttachedExact checks every sum against the inputs of all workers while cables lose packets.
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

// TestRealTimeBeginsWithTheFirstPoint checks for a training run around a switch in this process that no point includes
// the programs' start-up, and that no sum is called torn although frames do not name their contributors.
func TestRealTimeBeginsWithTheFirstPoint(t *testing.T) {
	if err := netlab.CheckRights(lab.Rights()...); err != nil {
		t.Skip(err)
	}
	r, notes := trainTest(t, &Program{Systems: []string{"ring"}, Workers: 2, Values: 4}, onWires(t))
	if got := notes["0"].Sums[0]; got.Torn != 0 || got.Workers != 2 {
		t.Errorf("worker 0 learns %+v, want a sum of 2 vectors that is not torn", got)
	}
	first, last := int64(math.MaxInt64), int64(0)
	for _, points := range r.Runs[0].Points {
		first, last = min(first, points[0].AtNS), max(last, points[len(points)-1].AtNS)
	}
	if first != 0 || last != r.Runs[0].TookNS {
		t.Errorf("points are from %d to %d ns in a run of %d, want them from 0 to its end", first, last, r.Runs[0].TookNS)
	}
}

// TestWorkerThatEndsEarlyOnWires checks that training around a switch in this process ends with an error if one worker
// ends a round before the others.
func TestWorkerThatEndsEarlyOnWires(t *testing.T) {
	if err := netlab.CheckRights(lab.Rights()...); err != nil {
		t.Skip(err)
	}
	checkEarlyEnd(t, "switchml", onWires(t))
}

// onWires returns a function that trains through a job around a switch in this process.
func onWires(t *testing.T) func(*Program) (*ProgramReport, error) {
	return func(p *Program) (*ProgramReport, error) {
		spec, err := systemSpec(p.Systems[0], "sync", system.Options{})
		if err != nil {
			return nil, err
		}
		return p.RunJobs(t.Context(), &Jobs{Specs: map[string]*job.Spec{p.Systems[0]: spec}, Wired: true})
	}
}

// runBench runs a mode of bench.py as the program of all workers, in their namespaces, and returns each rank's output.
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
	p.Progress, p.OnPoint = t.Logf, func(Point) {}
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

// row is a line of the table: a figure beside its required value and its desired value.
type row struct {
	name                string
	measured, must, aim float64 // must and aim are 0 if there is none
	detail              string
}

// limit returns an upper limit and whether it is met.
func (r *row) limit(most float64) string {
	switch {
	case most == 0:
		return ""
	case r.measured > most:
		return fmt.Sprintf("%.4g: missed", most)
	}
	return fmt.Sprintf("%.4g: met", most)
}

// TestAttachedSpeed measures attached programs and gloo in the same namespaces, in turns, and prints the figures beside
// their required values. The test enforces no limits, because a busy machine misses them.
func TestAttachedSpeed(t *testing.T) {
	needAttached(t)
	rows := measureClient(t)
	for _, lanes := range []int{704, 256} {
		rows = append(rows, measureSums(t, lanes)...)
	}
	rows = append(rows, measureTraining(t))
	var b strings.Builder
	fmt.Fprintf(&b, "%s; must and aim are upper limits\n\n| | measured | must | aim | |\n|---|---|---|---|---|\n",
		time.Now().Format(time.DateOnly))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %.3g | %s | %s | %s |\n", r.name, r.measured, r.limit(r.must), r.limit(r.aim), r.detail)
	}
	t.Log(b.String())
}

// measureClient measures the socket and the recorder alone.
func measureClient(t *testing.T) []row {
	t.Helper()
	folder := t.TempDir()
	script, err := filepath.Abs("../../../clients/python/tests/bench.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), needAttached(t), "-B", script, "client")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Dir(filepath.Dir(script)), "OLAF_TEST_SUMS="+echoSums(t),
		"OLAF_TEST_PUSH="+echoPushes(t), "OLAF_TEST_FOLDER="+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(folder, "0.json"))
	if err != nil {
		t.Fatal(err)
	}
	var us map[string]struct{ Least, Median, P99 float64 }
	if err := json.Unmarshal(text, &us); err != nil {
		t.Fatal(err)
	}
	at := "load " + load()
	return []row{
		{"socket alone, 1 MB there and back, ms, best", us["sum"].Least / 1e3, 1, 0, fmt.Sprintf("median %.2f, %s", us["sum"].Median/1e3, at)},
		{"`push` of a frame, µs, median", us["push"].Median, 100, 0, fmt.Sprintf("best %.0f, %s", us["push"].Least, at)},
		{"`push` of a frame, ms, 99 %", us["push"].P99 / 1e3, 2, 0, at},
		{"recorder, 608 values, µs, median", us["record"].Median, 50, 0, at},
	}
}

// measureSums measures sums of 1 MB with the given number of lanes per frame, beside gloo's and beside workers that
// compute the sums themselves.
func measureSums(t *testing.T, lanes int) []row {
	t.Helper()
	alone := selfComputing(t, lanes)
	ranks := runBench(t, &Program{Values: megabyte, Lanes: lanes, Device: "xdp:"}, "allreduce", 0)
	alone = min(alone, selfComputing(t, lanes))
	ours, gloo, n := round(ranks, "olaf"), round(ranks, "gloo"), float64(len(ranks[0]["olaf"].Spans))
	cpu, theirs := 1e3*ranks[0]["olaf"].CPU/n, 1e3*ranks[0]["gloo"].CPU/n
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	at := "load " + load()
	attached := row{fmt.Sprintf("attached worker beside one that computes itself, %d lanes", lanes), ms(ours) / ms(alone), 1.05, 0,
		fmt.Sprintf("%.1f and %.1f ms, %s", ms(ours), ms(alone), at)}
	sum := row{fmt.Sprintf("`allreduce` of 1 MB, %d lanes, time beside gloo's", lanes), ms(ours) / ms(gloo), 5, 2.5,
		fmt.Sprintf("%.1f and %.1f ms, %s", ms(ours), ms(gloo), at)}
	used := row{fmt.Sprintf("CPU of the same, %d lanes", lanes), cpu / theirs, 0, 0,
		fmt.Sprintf("%.0f and %.0f ms of the machine's", cpu, theirs)}
	if lanes == 704 {
		sum.must, sum.aim, used.must, used.aim = 3, 1.5, 2.5, 1.5
	}
	return []row{sum, used, attached}
}

// selfComputing returns the time of a round of workers without a program, which check every value.
func selfComputing(t *testing.T, lanes int) time.Duration {
	t.Helper()
	p := &Program{Values: megabyte, Lanes: lanes, Device: "xdp:", Workers: attachedWorkers}
	const few, many = 5, 35
	took := map[int]time.Duration{}
	for _, vectors := range []int{few, many} {
		bed, err := p.sumBed("")
		if err != nil {
			t.Fatal(err)
		}
		s := p.sumStand(bed)
		start := func(at place, args ...string) testbed.Process {
			args = append(args, "--values", strconv.Itoa(megabyte), "--lanes", strconv.Itoa(lanes), "--vectors", strconv.Itoa(vectors),
				"--listen", netip.AddrPortFrom(at.address, olaf.UDPPort).String())
			k, err := at.start(exec.Command(*attachedFlag, args...))
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		start(s.server, append([]string{"ps"}, s.ps...)...)
		began := time.Now()
		var workers []testbed.Process
		for k, at := range s.workers {
			workers = append(workers, start(at, append([]string{"worker", "--worker", strconv.Itoa(k)}, s.worker(k)...)...))
		}
		for _, w := range workers {
			if err := w.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		took[vectors] = time.Since(began)
		if err := bed.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return (took[many] - took[few]) / (many - few)
}

// lossWithin bounds the difference of two losses after rounding gradients to 1e-8 at each step.
const lossWithin = 1e-4

// measureTraining trains the same model with the hook and with gloo, step by step in turns. All ranks end with the same
// weights, and the losses differ by what quantisation explains.
func measureTraining(t *testing.T) row {
	t.Helper()
	t.Setenv("OLAF_TEST_STEPS", "40")
	ranks := runBench(t, &Program{Values: megabyte, Lanes: 704, Device: "xdp:"}, "ddp", 0)
	ours, gloo := ranks[0]["olaf"], ranks[0]["gloo"]
	for k, r := range ranks {
		if r["olaf"].Digest != ours.Digest {
			t.Errorf("rank %d ends with other weights than rank 0", k)
		}
	}
	var loss, weight float64
	for i := range ours.Losses {
		loss = max(loss, math.Abs(ours.Losses[i]-gloo.Losses[i]))
	}
	for i := range ours.Weights {
		weight = max(weight, math.Abs(ours.Weights[i]-gloo.Weights[i]))
	}
	if loss > lossWithin {
		t.Errorf("losses differ by up to %g from gloo's, want %g", loss, lossWithin)
	}
	for i := 0; i < len(ours.Losses); i += len(ours.Losses) / 6 {
		t.Logf("step %3d: loss %.6f, gloo %.6f", i, ours.Losses[i], gloo.Losses[i])
	}
	a, b := round(ranks, "olaf"), round(ranks, "gloo")
	return row{"DDP step, 26,122 parameters, beside gloo", float64(a) / float64(b), 2, 1.3,
		fmt.Sprintf("%.1f and %.1f ms, load %s; equal weights on all ranks, at scale %g losses within %.1e of gloo's and weights within %.1e",
			float64(a.Microseconds())/1e3, float64(b.Microseconds())/1e3, load(), ours.Scale, loss, weight)}
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

// echoPushes starts a worker whose updates are always sent.
func echoPushes(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	w, err := attach.NewPushes(attach.Config{System: "olaf", Largest: 608, Lanes: 610, Scale: attach.DefaultScale}, nil, cancel)
	if err != nil {
		t.Fatal(err)
	}
	return echo(t, w, "pushes", func() {
		for vector := uint32(0); ctx.Err() == nil; vector++ {
			if w.Compute(ctx, vector); ctx.Err() == nil {
				w.Sends(0)
			}
		}
	})
}
