package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/system"
)

// TestCommandsUseGivenSystems runs commands in an environment with an additional system and without a built-in one. It
// checks that everything that looks up a system by name, including files and stored runs, uses the set that it was
// given.
func TestCommandsUseGivenSystems(t *testing.T) {
	store := t.TempDir()
	topology := filepath.Join(t.TempDir(), "net.yaml")
	var systems system.Set
	for _, s := range system.All() {
		switch s.Name {
		case "iswitch":
			s.Name, s.Title = "mine", "Mine"
			fallthrough
		case "olaf", "fifo":
			systems = append(systems, s)
		}
	}
	ask := func(want int, line string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		env := testEnvironment(&out, &errs)
		env.Systems, env.Declared, env.Published = systems, systems.FindDeclaration, listExperiments(systems)
		args := strings.Fields(strings.NewReplacer("STORE", store, "NET", topology).Replace(line))
		if code := run(t.Context(), env, args); code != want {
			t.Errorf("%s: exit code %d\n%s%s", line, code, &out, &errs)
		}
		return out.String(), errs.String()
	}
	for _, c := range []struct{ line, says string }{
		{"system list", "mine"},
		{"bench --schema", `"mine"`},
		{"topology schema", `"mine"`},
		{"bench --system mine --runs 2 --out-rate 20G -q --store STORE", "mine"},
		{"bench --system mine --versus none --topology S --runs 2 --out-rate 20G -q --keep=false", "mine"},
		{"simulate --preset multihop --system mine --duration 1s --warmup 1s -q --store STORE", "mine"},
		{"simulate --preset multihop --system mine --mode open --h 3 --duration 1s --warmup 1s -q --store STORE", "mine"},
		{"simulate --preset isw-lab --system mine --wrap --updates 2 -q --store STORE", "mine"},
		{"train --system mine --iterations 2 --workers 2 -q --store STORE", "mine"},
	} {
		if out, _ := ask(0, c.line); !strings.Contains(out, c.says) || strings.Contains(out, "\niswitch ") || strings.Contains(out, `"iswitch"`) {
			t.Errorf("%s:\n%s", c.line, out)
		}
		if strings.Contains(c.line, "STORE") {
			ask(0, "runs verify last --store STORE")
		}
	}
	text, _ := ask(0, "simulate --preset multihop --system mine --duration 1s --warmup 1s -o yaml")
	for name, want := range map[string]int{"mine": 0, "iswitch": 2} {
		if err := os.WriteFile(topology, []byte(strings.ReplaceAll(text, "mine", name)), 0o600); err != nil {
			t.Fatal(err)
		}
		ask(want, "simulate NET -q --keep=false")
	}
	for _, line := range []string{"bench --system iswitch", "simulate --preset multihop --system iswitch", "simulate --preset isw-lab --system iswitch", "system show iswitch"} {
		if _, said := ask(2, line); !strings.Contains(said, "iswitch") || !strings.Contains(said, "mine") {
			t.Errorf("%s: %s", line, said)
		}
	}
}
