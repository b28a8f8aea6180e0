package saturate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/process"
)

// feeder returns a feeder for a testbed; it skips the test by name if rights are missing.
func feeder(t *testing.T, text string) *Feeder {
	t.Helper()
	return feederIn(t, "", text)
}

// feederIn returns a feeder like feeder, with the mode of all aggregators; an empty mode keeps the testbed's own.
func feederIn(t *testing.T, mode, text string) *Feeder {
	t.Helper()
	file, err := lab.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := file.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Adders {
		p.Adders[i].Mode = cmp.Or(mode, p.Adders[i].Mode)
	}
	l, err := lab.Up(p, lab.Options{LogBytes: LogBytes})
	if errors.Is(err, netlab.ErrRights) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := NewFeeder(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// TestRunInUserSpace checks that sums are exact where the program runs in this process, with one server and in a tree,
// also if packets are lost.
func TestRunInUserSpace(t *testing.T) {
	for name, text := range map[string]string{
		"star":     "tree: {workers: 4, mode: generic}\njob: {lanes: 256, fragments: 100}",
		"wrapping": "tree: {workers: 2, mode: generic, arithmetic: wrapping}\njob: {lanes: 320, fragments: 40}",
		"tree":     "tree: {workers: 9, children: 2, mode: generic}\njob: {lanes: 64, fragments: 100}",
	} {
		t.Run(name, func(t *testing.T) {
			f := feederIn(t, lab.User, text)
			f.deaf = 50
			for seed := range uint64(2) {
				r, err := f.Run(t.Context(), Config{Vectors: 3, Line: 100 * olaf.Mbps, Seed: seed}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !r.Valid() || r.Wrong > 0 || r.Checked == 0 || r.Decisions.Checked > 0 {
					t.Errorf("seed %d: %+v", seed, r)
				}
			}
		})
	}
}

// TestRun checks that sums are exact and every decision is the program's, with one server and in a tree, in both modes,
// run after run.
func TestRun(t *testing.T) {
	for name, text := range map[string]string{
		"star":     "tree: {workers: 4}\njob: {lanes: 256, fragments: 100}",
		"generic":  "tree: {workers: 3, mode: generic}\njob: {lanes: 33, fragments: 100}",
		"wrapping": "tree: {workers: 2, arithmetic: wrapping}\njob: {lanes: 704, fragments: 40}\n",
		"tree":     "tree: {workers: 9, children: 2}\njob: {lanes: 64, fragments: 200}",
		"alone":    "tree: {workers: 1}\njob: {lanes: 1, fragments: 1}",
	} {
		if strings.Contains(text, "704") {
			text = strings.Replace(text, "workers: 2,", "workers: 2, mtu: 3000,", 1)
		}
		t.Run(name, func(t *testing.T) {
			f := feeder(t, text)
			for seed := range uint64(2) {
				r, err := f.Run(t.Context(), Config{Vectors: 3, Line: 100 * olaf.Mbps, Seed: seed}, nil)
				if err != nil {
					t.Fatal(err)
				}
				want := uint64(len(f.workers) * f.lab.Fragments * 3)
				if !r.Valid() || r.Wrong > 0 || r.Sent < want || r.Decisions.Void != "" || r.Decisions.Checked < int64(want) ||
					r.Decisions.Differ() {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// TestSumsAreExactUnderFaults checks that missing packets are detected and all sums are exact if every n-th frame is
// lost on the way up and at the server, and others are duplicated and reordered, from two threads.
func TestSumsAreExactUnderFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		m     process.Mishaps
		deaf  int
		asked func(*Run) uint64 // counts the events that must have happened
	}{
		{"every 2nd", process.Mishaps{Skip: 2}, 0, func(r *Run) uint64 { return r.Resent }},
		{"every 7th", process.Mishaps{Skip: 7}, 0, func(r *Run) uint64 { return r.Resent }},
		{"every 101st", process.Mishaps{Skip: 101}, 0, func(r *Run) uint64 { return r.Resent }},
		{"every 5th sum", process.Mishaps{}, 5, func(r *Run) uint64 { return r.SumsAgain }},
		{"twice", process.Mishaps{Twice: 3}, 0, func(r *Run) uint64 { return duplicates(r) }},
		{"out of order", process.Mishaps{Swap: 2}, 0, func(*Run) uint64 { return 1 }},
		{"all together", process.Mishaps{Skip: 7, Twice: 3, Swap: 2}, 5,
			func(r *Run) uint64 { return min(r.Resent, r.SumsAgain, duplicates(r)) }},
	} {
		for _, tree := range []string{"workers: 4", "workers: 6, children: 3"} {
			t.Run(c.name+"/"+tree, func(t *testing.T) {
				f := feeder(t, fmt.Sprintf("tree: {%s}\njob: {lanes: 16, fragments: 120, group: 32}", tree))
				f.mishaps, f.deaf = c.m, c.deaf
				said := 0
				r, err := f.Run(t.Context(), Config{Vectors: 2, Line: 50 * olaf.Mbps, Seed: 1}, func() { said++ })
				if err != nil {
					t.Fatal(err)
				}
				if !r.Valid() || r.Decisions.Differ() || r.Decisions.Void != "" || c.asked(r) == 0 || said != 2 {
					t.Errorf("after %d vectors %+v", said, r)
				}
			})
		}
	}
}

// TestRepeatedSumsAreTimedOnce checks that repeated sums, also from the previous run or across the end of the epochs,
// are timed once.
func TestRepeatedSumsAreTimedOnce(t *testing.T) {
	said := 0
	k := &run{Feeder: &Feeder{lab: &lab.Lab{Plan: &lab.Plan{Fragments: 2}}, epoch: 65535}, begun: time.Now(), onVector: func() { said++ },
		left: make([]atomic.Int64, 2), next: []uint16{65535, 65535}}
	for _, c := range []struct {
		epoch  uint16
		seg    uint64
		heard  bool
		timed  int
		vector int
	}{
		{65534, 0, false, 0, 0}, {65535, 0, true, 1, 0}, {65535, 0, true, 1, 0}, {65535, 1, true, 2, 1}, {0, 1, true, 3, 1},
		{65535, 1, true, 3, 1}, {0, 1, true, 3, 1}, {0, 0, true, 4, 2},
	} {
		heard := k.recordArrival(0, 0, &program.Packet{Kind: program.Data, Seg: c.seg, Round: c.epoch}, nil)
		if heard != c.heard || len(k.times) != c.timed || said != c.vector {
			t.Errorf("%+v: heard %t, %d sums are timed, %d vectors are through", c, heard, len(k.times), said)
		}
	}
}

func duplicates(r *Run) (n uint64) {
	for _, k := range r.Kernel {
		n += k["duplicate"]
	}
	return n
}

// TestSilentLossInvalidatesRun checks that sums that vanish in a cable make a run invalid, and complete ones do not.
func TestSilentLossInvalidatesRun(t *testing.T) {
	f := feeder(t, "tree: {workers: 2}\njob: {lanes: 8, fragments: 50}")
	var err error
	if f.came, err = f.countArrived(); err != nil {
		t.Fatal(err)
	}
	r := &Run{Kernel: map[string]map[string]uint64{"s0": {}}}
	if err := f.checkVanished(r); err != nil || !r.Valid() {
		t.Errorf("%+v, %v", r, err)
	}
	r.Kernel["s0"]["completed"] = 1000
	if err := f.checkVanished(r); err != nil || len(r.Invalid) != 1 ||
		!strings.HasPrefix(r.Invalid[0], "the cable from s0 to ps: 1000 sums went in and ") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRemovedCableEndsRun checks that removing a cable, or programs, during a run ends it with the names of the cable
// and the program.
func TestRemovedCableEndsRun(t *testing.T) {
	for name, c := range map[string]struct {
		says string
		do   func(*lab.Lab) error
	}{
		"cable": {"the cable from w0 to s0 is gone", func(l *lab.Lab) error {
			at := l.Cables[0].B
			return at.Do(func() error {
				link, err := netlink.LinkByName(at.Name)
				if err != nil {
					return err
				}
				return netlink.LinkDel(link)
			})
		}},
		"what adds": {`the cable from w\d to s0: the program arrive was detached from w\d of s0`,
			func(*lab.Lab) error { return testbedtest.DetachPrograms("arrive") }},
		"what listens": {"the cable from s0 to ps: the program pass was detached from s0 of ps",
			func(*lab.Lab) error { return testbedtest.DetachPrograms("pass") }},
		"both": {"the program (arrive|pass) was detached from",
			func(*lab.Lab) error { return testbedtest.DetachPrograms("arrive", "pass") }},
	} {
		t.Run(name, func(t *testing.T) {
			f := feeder(t, "tree: {workers: 2}\njob: {lanes: 8, fragments: 50}")
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			vectors := 0
			_, err := f.Run(ctx, Config{Vectors: MaxVectors, Line: 50 * olaf.Mbps}, func() {
				if vectors++; vectors != 3 {
					return
				}
				if err := c.do(f.lab); err != nil {
					t.Error(err)
				}
			})
			if !errors.Is(err, lab.ErrBroken) || !regexp.MustCompile(c.says).MatchString(err.Error()) ||
				errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

func TestCancelledRun(t *testing.T) {
	f := feeder(t, "tree: {workers: 2}\njob: {lanes: 8, fragments: 50}")
	ctx, stop := context.WithCancel(t.Context())
	_, err := f.Run(ctx, Config{Vectors: MaxVectors, Line: 50 * olaf.Mbps}, stop)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
