package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results"
)

// TestAgesAbovePath measures on three hosts with clocks compared by echoes and by probe frames past a kernel queue. It
// checks that ages above the path have other names, that they are above 0 and not above the ages by echo and both
// bounds, that ordinary ages are withheld, and that runs verify measures the same again.
func TestAgesAbovePath(t *testing.T) {
	l := newKernelRoles(t, "p")
	store, file := t.TempDir(), ""
	bench := func(clock string) (doc results.Bench, said string, code int) {
		t.Helper()
		file = writeRoles(t, l.Network, strings.NewReplacer("eth0", "eth0p", "in,out", "inp,outp", "eth2", "eth2p").Replace(kernelRoles)+clock)
		return l.bench(t, "testbed:"+file, "--age-error", "50", "--keep", "--store", store)
	}
	echo, said, code := bench("clock: {by: echo}\n")
	if code != 0 || len(echo.Rows) != 1 {
		t.Fatalf("by echo: exit code %d: %s", code, said)
	}
	probe, said, code := bench("clock: {by: probe}\n")
	if code != 0 || len(probe.Rows) != 1 {
		t.Fatalf("by probe: exit code %d: %s", code, said)
	}
	whole, above := &echo.Rows[0], &probe.Rows[0]
	bound := results.Float(0)
	for _, doc := range []*results.Bench{&echo, &probe} {
		for i := range doc.Provenance.Hosts {
			bound += doc.Provenance.Hosts[i].BoundNS
		}
	}
	for name, short := range map[string]string{"aom_cluster_ns": "aom_cluster_above_path_ns", "peak_aom_ns": "peak_aom_above_path_ns"} {
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
	if err != nil || len(runs) != 2 {
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
