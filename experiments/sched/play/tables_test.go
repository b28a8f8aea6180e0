package play

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched/policy"
	"github.com/olafctl/olaf/p4ctl"
)

// TestTell checks from slot to slot that every aggregated job has exactly its workers as hosts, in one group with their
// ports, that continuing jobs keep their hosts and aggregators, that no aggregators are shared, and that no host or
// port is lost.
func TestTell(t *testing.T) {
	made := plan(t, crowded(t, 30, 2), policy.TW)
	hosts, err := MakeUpHosts(0, 64)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]Segment{}
	told := 0
	for slot := range made.Slots {
		o, err := PlanOrders(made, "r1", slot, hosts)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Tables.Validate(); err != nil {
			t.Fatal(err)
		}
		if len(o.Tables.Workers) != 64 || ports(o.Tables) != 64*65/2 {
			t.Fatalf("slot %d: %d hosts, ports add up to %d", slot, len(o.Tables.Workers), ports(o.Tables))
		}
		now, used := map[string]Segment{}, map[int]bool{}
		for _, s := range o.Segments {
			told++
			if want := workersOf(made.Problem.Jobs[s.Cluster-1].Workers); len(s.Hosts) != want || used[s.First] {
				t.Errorf("slot %d: %s has %d hosts, wants %d; its aggregators are another's: %v", slot, s.Job, len(s.Hosts), want,
					used[s.First])
			}
			if old, there := before[s.Job]; there && (old.First != s.First || old.Hosts[0] != s.Hosts[0]) {
				t.Errorf("slot %d: %s moved", slot, s.Job)
			}
			now[s.Job], used[s.First] = s, true
		}
		if got := jobsIn(o.Tables); !maps.EqualFunc(got, segments(o.Segments), slices.Equal) {
			t.Errorf("slot %d: the program is told %v, the segments are %v", slot, got, o.Segments)
		}
		before, hosts = now, o.Tables
	}
	if told == 0 {
		t.Fatal("the switch was told nothing")
	}
}

// jobsIn returns the jobs as a switch program would read them from tables: workers, first aggregator and aggregators of
// each.
func jobsIn(t p4ctl.Tables) map[olaf.ClusterID][]int {
	said := map[olaf.ClusterID][]int{}
	for _, e := range t.Canonical().Entries { // jobs before segments
		for _, v := range e.Params {
			said[olaf.ClusterID(e.Key[0])] = append(said[olaf.ClusterID(e.Key[0])], int(v))
		}
	}
	return said
}

func segments(of []Segment) map[olaf.ClusterID][]int {
	said := map[olaf.ClusterID][]int{}
	for _, s := range of {
		said[s.Cluster] = []int{len(s.Hosts), s.First, s.Size}
	}
	return said
}

func workersOf(by map[string]int) (n int) {
	for _, k := range by {
		n += k
	}
	return n
}

func ports(t p4ctl.Tables) (sum int) {
	for _, g := range t.Groups {
		for _, m := range g.Members {
			sum += int(m.Port)
		}
	}
	return sum
}

func TestTellRefuses(t *testing.T) {
	made := plan(t, crowded(t, 30, 2), policy.TW)
	few, err := MakeUpHosts(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"another unit":    func() error { _, err := PlanOrders(made, "r99", 0, few); return err },
		"another slot":    func() error { _, err := PlanOrders(made, "r1", made.Slots, few); return err },
		"no hosts at all": func() error { _, err := MakeUpHosts(0, 0); return err },
		"too few hosts": func() error {
			for slot := range made.Slots {
				if _, err := PlanOrders(made, "r1", slot, few); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		if err := try(); !errors.Is(err, ErrPlay) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
