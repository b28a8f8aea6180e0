package endpoint

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program/atp"
)

// TestDefaultsAndLimits checks the defaults, and that every setting is accepted at both ends of its range and rejected
// one step beyond.
func TestDefaultsAndLimits(t *testing.T) {
	cfg := func(workers int) *Config {
		return &Config{Job: 1, Workers: workers, Layout: Layout{Values: 6, PerPacket: 2}, Updates: 1}
	}
	for _, c := range []struct {
		workers int
		o       ATP
		refused string
	}{
		{4, ATP{}, ""}, {4, ATP{Aggregators: 1, Window: 1}, ""}, {4, ATP{Aggregators: 100, Window: 100}, ""},
		{4, ATP{Base: atp.MaxSlots - 100, Aggregators: 100}, ""}, {4, ATP{Aggregators: atp.MaxSlots, Batch: -3}, ""},
		{4, ATP{Trigger: 1, FirstTimeout: 1, Timeout: 1}, ""}, {4, ATP{PerRack: 4}, ""}, {4, ATP{PerRack: 5}, ""},
		{32, ATP{}, ""}, {31, ATP{Profile: atp.Paper}, ""}, {62, ATP{Profile: atp.Paper, PerRack: 31}, ""}, {961, ATP{Profile: atp.Paper, PerRack: 31}, ""},
		{4, ATP{Profile: "x"}, `no profile "x"`}, {4, ATP{Aggregators: -1, Window: 1}, "aggregators 0 to -2"},
		{4, ATP{Base: -1, Aggregators: 100}, "aggregators -1 to 98; an index of 16 bits reaches 0 to 65535"},
		{4, ATP{Base: atp.MaxSlots - 99, Aggregators: 100}, "aggregators 65437 to 65536"}, {4, ATP{Aggregators: 99}, "a window of 100 packets over 99 aggregators"},
		{4, ATP{Window: -1}, "a window of -1 packets"}, {4, ATP{Trigger: -1}, "after -1 acknowledgements"}, {4, ATP{FirstTimeout: -1}, "again after"}, {4, ATP{Timeout: -1}, "again after"},
		{4, ATP{Profile: atp.Paper, PerRack: -1}, "again after"}, {4, ATP{PerRack: 3}, "knows one level"},
		{33, ATP{}, "33 workers a switch; ATP's fan-in is 31 at most, and a bitmap has 32 bits"}, {32, ATP{Profile: atp.Paper}, "32 workers a switch"},
		{64, ATP{Profile: atp.Paper, PerRack: 32}, "32 workers a switch"}, {962, ATP{Profile: atp.Paper, PerRack: 31}, "32 workers a switch"},
	} {
		o := c.o
		err := o.check(cfg(c.workers))
		if (err == nil) != (c.refused == "") || err != nil && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%d workers, %+v: %v; want %q", c.workers, c.o, err, c.refused)
		}
		if err == nil && (o.Batch < 1 || o.Trigger < 1 || o.Window < 1 || o.Aggregators < 1 || o.FirstTimeout < 1 || o.Timeout < 1) {
			t.Errorf("%+v is filled to %+v", c.o, o)
		}
	}
	released, paper := ATP{}, ATP{Profile: atp.Paper}
	if err := errors.Join(released.check(cfg(4)), paper.check(cfg(4))); err != nil {
		t.Fatal(err)
	}
	want := ATP{Profile: atp.Released, Aggregators: atp.DefaultSlots, Window: ATPWindow, Trigger: 1, FirstTimeout: ATPFirstTimeout, Timeout: ATPTimeout, Batch: 1}
	if fmt.Sprintf("%+v", released) != fmt.Sprintf("%+v", want) || paper.Trigger != 3 {
		t.Errorf("%+v, want %+v; the paper's trigger is %d", released, want, paper.Trigger)
	}
	for _, c := range []struct {
		o       XAgg
		refused string
	}{
		{XAgg{}, ""}, {XAgg{Timeout: 1, Overhead: 1, Epoch: 65535, Fixed: Fixed{Scale: 0.5}}, ""},
		{XAgg{Timeout: -1}, "a timeout of -1ps"}, {XAgg{Overhead: -1}, "-1B beside a frame, a scale of 0"}, {XAgg{Fixed: Fixed{Scale: -0.5}}, "beside a frame, a scale of -0.5"},
	} {
		o := c.o
		err := o.check()
		if (err == nil) != (c.refused == "") || err != nil && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%+v: %v; want %q", c.o, err, c.refused)
		}
		if err == nil && o.Timeout != cmp.Or(c.o.Timeout, defaultTimeout) {
			t.Errorf("%+v is filled to %+v", c.o, o)
		}
		if _, made := NewXAgg(*cfg(1), c.o, nil); (made == nil) != (err == nil) {
			t.Errorf("%+v: %v of the constructor, %v of the check", c.o, made, err)
		}
	}
	for _, c := range []struct {
		o       P4INC
		refused string
	}{
		{P4INC{Size: 1}, ""}, {P4INC{Size: 5, Window: 1, Timeout: 1}, ""}, {P4INC{Size: 5, Window: 9}, ""}, {P4INC{Base: 1, Size: 1}, ""},
		{P4INC{Window: 1}, "a segment of 0 aggregators from 0 on"}, {P4INC{Base: -1, Size: 1}, "a segment of 1 aggregators from -1 on"},
		{P4INC{Size: 5, Window: -1}, "a window of -1 packets"}, {P4INC{Size: 5, Timeout: -1}, "a timeout of -1ps"},
	} {
		o := c.o
		err := o.check()
		if (err == nil) != (c.refused == "") || err != nil && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%+v: %v; want %q", c.o, err, c.refused)
		}
		if err == nil && (o.Timeout == 0 || o.Window == 0 || c.o.Window == 0 && o.Window != o.Size || c.o.Timeout == 0 && o.Timeout != defaultTimeout) {
			t.Errorf("%+v is filled to %+v", c.o, o)
		}
	}
}

// TestProposals checks that proposals cycle through a job's aggregators in a shuffled order that differs for each job,
// and name each equally often.
func TestProposals(t *testing.T) {
	o := &ATP{Base: 40, Aggregators: 25}
	round := func(p *proposals) (all []uint32) {
		for range o.Aggregators {
			all = append(all, p.take())
		}
		return all
	}
	seen := map[string]bool{}
	for job := range olaf.ClusterID(20) {
		p := newProposals(o, job)
		first := round(&p)
		if !slices.Equal(first, round(&p)) {
			t.Errorf("job %d: the second round is not the first", job)
		}
		seen[fmt.Sprint(first)] = true
		if sorted := slices.Sorted(slices.Values(first)); slices.Equal(sorted, first) || sorted[0] != 40 || sorted[24] != 64 || len(slices.Compact(sorted)) != 25 {
			t.Errorf("job %d: %v", job, first)
		}
	}
	if len(seen) != 20 {
		t.Errorf("20 jobs have %d orders", len(seen))
	}
}

// TestClampInt32 checks rounding towards zero, the ends of the range, and NaN.
func TestClampInt32(t *testing.T) {
	for v, want := range map[float64]int32{0: 0, 1.9: 1, -1.9: -1, math.MaxInt32 - 1: math.MaxInt32 - 1, math.MaxInt32: math.MaxInt32, math.MaxInt32 + 1: math.MaxInt32, 1e300: math.MaxInt32,
		math.Inf(1): math.MaxInt32, -math.MaxInt32 + 1: -math.MaxInt32 + 1, -math.MaxInt32: -math.MaxInt32, math.MinInt32: -math.MaxInt32, -1e300: -math.MaxInt32, math.Inf(-1): -math.MaxInt32, math.NaN(): 0} {
		if got := clampInt32(v); got != want {
			t.Errorf("%v is %d, want %d", v, got, want)
		}
	}
}

// TestWindowGrowth checks how a window grows with sums and shrinks with marks.
func TestWindowGrowth(t *testing.T) {
	c := newClimb(12)
	var got []int
	for _, what := range "ssssssmsssssssssssssssssssmmmmms" {
		if what == 's' {
			c.sum()
		} else {
			c.onMark()
		}
		got = append(got, c.packets)
	}
	want := []int{9, 10, 11, 12, 12, 12, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 4, 2, 1, 1, 1, 2}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if c := newClimb(3); c.packets != 3 {
		t.Errorf("a window of 3 begins with %d", c.packets)
	}
}
