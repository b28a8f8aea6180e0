package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results/result"
)

// TestPlansAreReadAgain checks that a plan gives the same document after a round trip, for every kind of network.
func TestPlansAreReadAgain(t *testing.T) {
	racks := jobOf(t, "iswitch", system.Options{Profile: "isw-x", Recovery: "help"}, 2, 0.02)
	racks.Job.Jitter, racks.Job.Late = 0.3, []olaf.Duration{0, olaf.Millisecond}
	links := jobOf(t, "switchml", system.Options{Packet: 1024, Slots: 12}, 0, 0)
	links.Network.Access = []closedloop.Link{{Rate: 848 * olaf.Kbps, Delay: 3 * olaf.Nanosecond, Frame: 7, Mark: 3000}}
	links.Network.Worker = closedloop.Costs{PerMessage: 1234567 * olaf.Nanosecond, PerMiB: 89}
	links.Network.Accelerator = closedloop.Accelerator{BusBytes: 32, Beat: 5 * olaf.Nanosecond, Pipeline: 16}
	tree := jobOf(t, "xagg", system.Options{}, 0, 0)
	server := closedloop.TreeServer{Link: tree.Network.Link}
	tree.Network.Tree = &closedloop.Tree{Servers: []closedloop.TreeServer{server, server}, Workers: []int{0, 0, 1, 1}}
	tree.Network.Through = true
	p := &Plan{Title: "three", Config: json.RawMessage(`{"b":1,"a":2}`), Seeds: []uint64{3, 4}, Jobs: []*Spec{racks, links, tree}}
	asked, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	first, err := p.Run(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(first.ReplayPlan(), "", "  ")
	if err != nil || !bytes.Equal(text, asked) {
		t.Fatalf("%v: playing it changed the plan:\n%s\n%s", err, asked, text)
	}
	back, err := ReadPlan(system.All(), text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Jobs {
		if a, b := p.Jobs[i], back.Jobs[i]; !reflect.DeepEqual(a.Network, b.Network) || !reflect.DeepEqual(a.Job, b.Job) ||
			!reflect.DeepEqual(a.Options, b.Options) || a.Name() != b.Name() {
			t.Errorf("%+v\nis read back as\n%+v", a, b)
		}
	}
	again, err := back.Run(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := json.Marshal(first.Document())
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(again.Document())
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("%v:\n%s\n%s", err, a, b)
	}
	read, err := result.Read(a)
	if err != nil || len(read.Runs()) != p.Runs() {
		t.Fatalf("%d runs: %v", len(read.Runs()), err)
	}
	runs := read.Runs()
	for i := range runs {
		for _, row := range closedloop.ListRows() {
			if was, is := row.Of(first.Outcomes[i/2].Runs[i%2]), runs[i].Metrics.Of(row.Name); was != is &&
				(was.Known() || is.Known()) {
				t.Errorf("run %d: %s is read back as %v, not %v", i, row.Name, is, was)
			}
		}
	}
}

// TestPlansRefuse checks that plans that cannot be written, or use systems missing here, are rejected.
func TestPlansRefuse(t *testing.T) {
	s := jobOf(t, "iswitch", system.Options{}, 0, 0)
	s.Job.Begin = func(int, uint32) olaf.Duration { return 0 }
	if _, err := json.Marshal(s); err == nil || !strings.Contains(err.Error(), "handed") {
		t.Errorf("a job that is handed times: %v", err)
	}
	for text, want := range map[string]error{`{"system":"other"}`: system.ErrUnknown,
		`{"system":"switchml","mode":"async"}`: system.ErrMode} {
		if _, err := ReadSpec(system.All(), []byte(text)); !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	some := slices.DeleteFunc(system.All(), func(s system.System) bool { return s.Name == "atp" })
	for text, systems := range map[string]system.Set{`{"system":"atp"}`: some, `null`: system.All(), `{"system":"iswitch"}`: nil} {
		if p, err := ReadPlan(systems, []byte(`{"jobs":[`+text+`]}`)); !errors.Is(err, system.ErrUnknown) {
			t.Errorf("a plan of %s: %v, %v", text, p, err)
		}
		if err := json.Unmarshal([]byte(text), new(Spec)); err == nil && text != "null" {
			t.Errorf("%s was read without a set", text)
		}
	}
	h := jobOf(t, "iswitch", system.Options{H: 5}, 0, 0)
	if err := h.Check(); !errors.Is(err, closedloop.ErrConfig) {
		t.Errorf("H of 5: %v", err)
	}
	h.Options.H, h.Job.Late = 0, []olaf.Duration{-1}
	if err := h.Check(); !errors.Is(err, closedloop.ErrConfig) {
		t.Errorf("late by less than nothing: %v", err)
	}
	h.Job.Late, h.Job.Layout = nil, endpoint.Layout{Values: 3000}
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}

// TestInterruptedPlanReturnsFinishedPart checks that an interrupted plan returns its finished part, with a plan for
// that part: the jobs with all seeds, or the first one's finished seeds. If nothing was finished, there is no report.
func TestInterruptedPlanReturnsFinishedPart(t *testing.T) {
	for runs, want := range map[int]struct{ jobs, least, most int }{0: {}, 2: {1, 2, 3}, 4: {1, 4, 4}, 6: {1, 4, 4}} {
		p := &Plan{Title: "three", Seeds: []uint64{1, 2, 3, 4},
			Jobs:    []*Spec{jobOf(t, "switchml", system.Options{}, 0, 0.02), jobOf(t, "ring", system.Options{}, 0, 0)},
			Printed: []Printed{{Claim: "iswitch/table4.dqn.ar", Job: 1, Number: "iteration_ns", By: 1}}}
		ctx, leave := context.WithCancel(t.Context())
		if runs == 0 {
			leave()
		}
		var done atomic.Int64
		r, err := p.Run(ctx, func() {
			if int(done.Add(1)) == runs {
				leave()
			}
		})
		leave()
		switch {
		case !errors.Is(err, context.Canceled):
			t.Errorf("left after %d: %v", runs, err)
		case want.jobs == 0 && r == nil:
			continue
		case r == nil || len(r.Outcomes) != want.jobs || len(r.Seeds) < want.least || len(r.Seeds) > want.most || !r.Partial ||
			len(r.Paper()) != 0:
			t.Errorf("left after %d: %+v", runs, r)
			continue
		}
		first, err := json.Marshal(r.Document())
		if err != nil {
			t.Fatal(err)
		}
		made, err := json.Marshal(r.ReplayPlan())
		if err != nil {
			t.Fatal(err)
		}
		back, err := ReadPlan(system.All(), made)
		if err != nil {
			t.Fatal(err)
		}
		again, err := back.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := json.Marshal(again.Document()); err != nil || !bytes.Equal(first, second) {
			t.Errorf("left after %d: %v\n%s\n%s", runs, err, first, second)
		}
	}
}
