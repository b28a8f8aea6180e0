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

	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/pktgen/attach"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

var attachedFlag = flag.String("attached", "", "a built olafctl, to measure attached programs with")

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

// runBench runs a mode of bench.py as the program of all workers, in their namespaces, and returns what each wrote.
func runBench(t *testing.T, p *Program, mode string) (ranks []map[string]way) {
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
			ranks := runBench(t, &Program{Values: megabyte, Lanes: lanes, Device: "xdp:"}, "allreduce")
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
