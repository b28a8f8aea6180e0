package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/results"
)

// TestAgesAbovePath measures on three hosts with clocks compared by echoes and by probe frames past a kernel queue. It
// checks that ages above the path have other names, that they are above 0 and not above the ages by echo and both
// bounds, that ordinary ages are withheld, and that runs verify measures the same again.
func TestAgesAbovePath(t *testing.T) {
	l := newKernelRoles(t, "p")
	store, file := t.TempDir(), ""
	// measure repeats a bench whose ages are withheld because this machine was too busy to send on time.
	measure := func(clock, age string) (doc results.Bench) {
		t.Helper()
		file = writeRoles(t, l.Network, strings.NewReplacer("eth0", "eth0p", "in,out", "inp,outp", "eth2", "eth2p").Replace(kernelRoles)+clock)
		for range 3 {
			out, said, code := runOnHead(t, l.Network, "bench", "-d", "testbed:"+file, "--rate", "100k", "--out-rate", "37.5k", "--burst", "1",
				"--updates", "6", "--runs", "1", "--versus", "none", "--age-error", "50", "--store", store, "-q", "-o", "json")
			doc = results.Bench{}
			if err := json.Unmarshal([]byte(out), &doc); err != nil || code != 0 || len(doc.Rows) != 1 {
				t.Fatalf("%sexit code %d, %v: %s", clock, code, err, said)
			}
			if doc.Rows[0].Stats.Of(age).Known() {
				return doc
			}
		}
		t.Skipf("this machine is too busy: %+v", doc.Rows[0].Withheld)
		return doc
	}
	echo := measure("clock: {by: echo}\n", "aom_cluster_ns")
	probe := measure("clock: {by: probe}\n", results.AbovePath)
	whole, above := &echo.Rows[0], &probe.Rows[0]
	bound := results.Float(0)
	for _, doc := range []*results.Bench{&echo, &probe} {
		for i := range doc.Provenance.Hosts {
			bound += doc.Provenance.Hosts[i].BoundNS
		}
		if by := doc.Provenance.Hosts[0].ClockBy; by != map[bool]string{true: "echo", false: "probe"}[doc == &echo] {
			t.Errorf("the document says that the clocks were compared by %q", by)
		}
	}
	for name, short := range map[string]string{"aom_cluster_ns": results.AbovePath, "peak_aom_ns": "peak_aom_above_path_ns"} {
		echoed, probed := whole.Stats.Of(name).Mean, above.Stats.Of(short).Mean
		const again = 0.05 // real frames do not repeat to the nanosecond
		if !(probed > 0 && probed <= echoed*(1+again)+bound) {
			t.Errorf("%s is %v ns by probe frames and %s is %v ns by echo; want at most that and %v ns", short, probed, name, echoed, bound)
		}
		if s := above.Stats.Of(name); s.Known() || !strings.Contains(s.Reason, "see aom_cluster_above_path_ns") || whole.Stats.Of(short).Known() {
			t.Errorf("%s has a mean of %v by probe frames, and none for %q", name, s.Mean, s.Reason)
		}
	}
	if said := strings.Join(probe.Statements, "\n"); !strings.Contains(said, "(clock.by probe): up to ") || strings.Contains(said, "were not updates") {
		t.Errorf("the statements are: %s", said)
	}
	runs, err := os.ReadDir(filepath.Join(store, "runs"))
	if err != nil || len(runs) < 2 {
		t.Fatalf("%d runs are stored, %v", len(runs), err)
	}
	for _, r := range runs {
		if out, said, code := runOnHead(t, l.Network, "runs", "verify", r.Name(), "--store", store); code != 0 {
			t.Errorf("%s does not verify: exit code %d, %s%s", r.Name(), code, out, said)
		}
	}
	if out, said, code := runOnHead(t, l.Network, "testbed", "doctor", file); code != 0 || !strings.Contains(out, "clocks for ages: by probe, frames past the queue") {
		t.Errorf("doctor: exit code %d, %s%s", code, out, said)
	}
	l.AwaitIdle(t)
}

// TestGeneratorOnTheQueuesHost checks that the server's clock is compared with the generator's and not with the queue's,
// which began later on the same host. Every update is younger than the time between the openings of both devices.
func TestGeneratorOnTheQueuesHost(t *testing.T) {
	if !canReal() {
		t.Skip("without the rights to make namespaces and load programs")
	}
	l := &kernelLab{Network: testbedtest.NewNetwork(t, 2, pathOfOlafctl(t))}
	q, ps := l.Hosts[0].Node, l.Hosts[1].Node
	for _, c := range [][2]netlab.End{{{Node: q, Name: "genq"}, {Node: q, Name: "inq"}}, {{Node: q, Name: "outq"}, {Node: ps, Name: "eth2q"}}} {
		if _, err := netlab.ConnectNodes(c[0], c[1], 1500); err != nil {
			t.Fatal(err)
		}
	}
	file := writeRoles(t, l.Network, "hosts: {q: {ssh: HOST0}, ps: {ssh: HOST1}}\nroles:\n  generator: {host: q, nic: genq}\n"+
		"  queue: {host: q, device: 'xdp:inq,outq'}\n  server: {host: ps, interface: eth2q}\n")
	name := strings.TrimSuffix(filepath.Base(file), ".yaml")
	t.Cleanup(func() { runOnHead(t, l.Network, "testbed", "down", name) })
	for _, device := range []string{file, name} {
		if device == name {
			if out, said, code := runOnHead(t, l.Network, "testbed", "up", file); code != 0 {
				t.Fatalf("up: exit code %d, %s%s", code, out, said)
			}
		}
		doc, said, code := l.bench(t, "testbed:"+device)
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", device, code, said)
		}
		youngest := regexp.MustCompile(`the youngest update of all runs was (\S+) old`).FindStringSubmatch(strings.Join(doc.Statements, "\n"))
		if youngest == nil {
			t.Fatalf("%s: no statement names the youngest update: %q", device, doc.Statements)
		}
		const opening = 300 * time.Millisecond // the devices measure for longer when they are opened
		if age, err := time.ParseDuration(youngest[1]); err != nil || age > opening {
			t.Errorf("%s: the youngest update was %s old, %v; want at most %v", device, youngest[1], err, opening)
		}
	}
	if out, said, code := runOnHead(t, l.Network, "testbed", "down", name); code != 0 {
		t.Errorf("down: exit code %d, %s%s", code, out, said)
	}
	l.AwaitIdle(t)
}

// TestProbesOnThisMachine measures behind a queue on this machine, whose generator is on another host. It checks that
// probe frames compare the clocks, and that ages are withheld if the file allows less than their bound.
func TestProbesOnThisMachine(t *testing.T) {
	if !canReal() {
		t.Skip("without the rights to make namespaces and load programs")
	}
	l := &kernelLab{Network: testbedtest.NewNetwork(t, 1, pathOfOlafctl(t))}
	for _, c := range [][2]netlab.End{{{Node: l.Hosts[0].Node, Name: "eth0h"}, {Node: l.Head, Name: "inh"}}, {{Node: l.Head, Name: "outh"}, {Node: l.Head, Name: "eth2h"}}} {
		if _, err := netlab.ConnectNodes(c[0], c[1], 1500); err != nil {
			t.Fatal(err)
		}
	}
	file := writeRoles(t, l.Network, "hosts: {gen: {ssh: HOST0}, here: {}}\nroles:\n  generator: {host: gen, nic: eth0h}\n"+
		"  queue: {host: here, device: 'xdp:inh,outh'}\n  server: {host: here, interface: eth2h}\nclock: {by: probe, at_most: 1ns}\n")
	doc, said, code := l.bench(t, "testbed:"+file)
	if code != 0 || len(doc.Rows) != 1 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if w := doc.Rows[0].Withheld; w == nil || !strings.HasSuffix(w.Reason, "(clock.at_most)") && !strings.Contains(w.Reason, "the pacer ") {
		t.Errorf("ages are withheld for %+v, want the bound in the file", w)
	}
	if said := strings.Join(doc.Statements, "\n"); !strings.Contains(said, "(clock.by probe): up to ") {
		t.Errorf("the statements are: %s", said)
	}
	l.AwaitIdle(t)
}
