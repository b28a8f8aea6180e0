package program_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// TestProgramAtItsLimits checks that a program can be built up to its limits and not beyond, and that unset options
// have their defaults.
func TestProgramAtItsLimits(t *testing.T) {
	l := program.Limits{Name: "S", Profiles: []string{"first", "second"}, Slots: 9, Reach: "an index reaches", Default: 4,
		Places: "slots"}
	unwrapped := l
	unwrapped.Unwrapped, unwrapped.Reach = "workers choose", ""
	for _, c := range []struct {
		limits  program.Limits
		asked   program.Config
		filled  program.Config
		refused string
	}{
		{l, program.Config{}, program.Config{Slots: 4, Profile: "first"}, ""},
		{l, program.Config{Slots: 1, Profile: "second", Wrap: true}, program.Config{Slots: 1, Profile: "second", Wrap: true}, ""},
		{l, program.Config{Slots: 9, LaneMemory: olaf.MaxLanes, Lanes: 3},
			program.Config{Slots: 9, LaneMemory: olaf.MaxLanes, Lanes: 3, Profile: "first"}, ""},
		{unwrapped, program.Config{}, program.Config{Slots: 4, Profile: "first"}, ""},
		{l, program.Config{Profile: "third"}, program.Config{}, `S has no profile "third"; it has first, second`},
		{l, program.Config{Slots: -1}, program.Config{}, "-1 slots; an index reaches 1 to 9"},
		{l, program.Config{Slots: 10}, program.Config{}, "10 slots; an index reaches 1 to 9"},
		{unwrapped, program.Config{Slots: 10}, program.Config{}, "10 slots; there can be 1 to 9"},
		{l, program.Config{LaneMemory: -1}, program.Config{}, "-1 lanes for each of the slots; there can be 0 to 2243"},
		{l, program.Config{LaneMemory: olaf.MaxLanes + 1}, program.Config{},
			"2244 lanes for each of the slots; there can be 0 to 2243"},
		{unwrapped, program.Config{Wrap: true}, program.Config{}, "workers choose; there is nothing to wrap"},
	} {
		got, err := c.limits.FillConfig(c.asked)
		if c.refused == "" && (err != nil || got != c.filled) {
			t.Errorf("%+v: %+v, %v; want %+v", c.asked, got, err, c.filled)
		}
		if c.refused != "" && (!errors.Is(err, program.ErrConfig) || !strings.HasSuffix(err.Error(), ": "+c.refused)) {
			t.Errorf("%+v: %v; want %q", c.asked, err, c.refused)
		}
	}
}

// drawPart draws a partition of a small table, which is often impossible.
func drawPart(t *rapid.T, id olaf.ClusterID) program.Job {
	j := program.Job{ID: id, Base: rapid.IntRange(-1, 9).Draw(t, "base"), Slots: rapid.IntRange(-1, 9).Draw(t, "slots")}
	for i := range rapid.IntRange(0, 4).Draw(t, "members") {
		j.Members = append(j.Members, program.Member{Worker: olaf.WorkerID(i),
			Port: program.Port(rapid.IntRange(0, 5).Draw(t, "port"))})
	}
	j.Fan = rapid.SampledFrom([]int{0, 0, len(j.Members), len(j.Members) + 1}).Draw(t, "fan")
	return j
}

// slots returns all slots of a partition.
func slots(j *program.Job) (all []int) {
	for i := range j.Slots {
		all = append(all, j.Base+i)
	}
	return all
}

// TestDivision checks the division of a table against lists of slots: no job has a slot that does not exist or that
// another job has.
func TestDivision(t *testing.T) {
	d := program.Division{Slots: 8, Members: 3, Places: "slots", Children: "workers", Sum: "a set"}
	rapid.Check(t, func(t *rapid.T) {
		var tenants program.Tenants
		of := map[olaf.ClusterID]*program.Tenant{}
		holds := map[int]*program.Tenant{}
		for range rapid.IntRange(1, 12).Draw(t, "jobs") {
			j := drawPart(t, olaf.ClusterID(rapid.IntRange(0, 5).Draw(t, "id")))
			k, err := d.AdmitJob(j, tenants)
			if j.Slots == 0 {
				j.Slots = d.Slots - j.Base
			}
			fits := j.Slots >= 1 && len(j.Members) >= 1 && len(j.Members) <= d.Members && (j.Fan == 0 || j.Fan == len(j.Members))
			for _, i := range slots(&j) {
				fits = fits && i >= 0 && i < d.Slots && (holds[i] == nil || holds[i].ID == j.ID)
			}
			if fits != (err == nil) || err != nil && !errors.Is(err, program.ErrConfig) {
				t.Fatalf("%+v: %v, fits %t", j, err, fits)
			}
			if err != nil {
				continue
			}
			if diff := cmp.Diff(j, k.Job); diff != "" {
				t.Fatal(diff)
			}
			for port, at := range k.Ports {
				last := -1 // the last of several members behind one port
				for i, m := range j.Members {
					if int(m.Port) == port {
						last = i
					}
				}
				if at != last {
					t.Fatalf("%+v: behind port %d is %d, want %d", j, port, at, last)
				}
			}
			if most := slices.MaxFunc(j.Members,
				func(a, b program.Member) int { return int(a.Port - b.Port) }); len(k.Ports) != int(most.Port)+1 {
				t.Fatalf("%+v: %d ports", j, len(k.Ports))
			}
			tenants.Put(k)
			of[j.ID] = k
			for i := range holds {
				if holds[i].ID == j.ID {
					delete(holds, i)
				}
			}
			for _, i := range slots(&j) {
				holds[i] = k
			}
			for i := -1; i <= d.Slots; i++ {
				if got := tenants.OwnerOf(i); got != holds[i] {
					t.Fatalf("slot %d is held by %+v, want %+v", i, got, holds[i])
				}
			}
			for id := range olaf.ClusterID(8) {
				if tenants.Find(id) != of[id] {
					t.Fatalf("job %d is %+v, want %+v", id, tenants.Find(id), of[id])
				}
			}
		}
	})
}

// TestOverlaps checks that two partitions overlap if they share a slot, in either order of arguments, and that an empty
// partition overlaps none.
func TestOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := func(id olaf.ClusterID) program.Job {
			return program.Job{ID: id, Base: rapid.IntRange(0, 6).Draw(t, "base"), Slots: rapid.IntRange(0, 4).Draw(t, "slots")}
		}
		a, b := part(1), part(2)
		shared := slices.ContainsFunc(slots(&a), func(i int) bool { return slices.Contains(slots(&b), i) })
		if a.Overlaps(&b) != shared || b.Overlaps(&a) != shared || (a.CheckOverlap(&b, "slots") == nil) == shared {
			t.Fatalf("%+v and %+v share a slot: %t", a, b, shared)
		}
		if b.ID = a.ID; a.CheckOverlap(&b, "slots") != nil {
			t.Fatalf("a job is in its own way")
		}
	})
	one, two := program.Job{ID: 1, Base: 3, Slots: 5}, program.Job{ID: 2, Base: 7, Slots: 2}
	if err := one.CheckOverlap(&two, "slots"); err == nil ||
		!strings.HasSuffix(err.Error(), "the slots of jobs 2 and 1 overlap: 7 to 8 and 3 to 7; give each its own") {
		t.Error(err)
	}
}

// TestDivisionRefuses checks that errors use the protocol's words.
func TestDivisionRefuses(t *testing.T) {
	d := program.Division{Slots: 8, Members: 2, Places: "slots", Children: "racks", Sum: "a set"}
	two := []program.Member{{Worker: 1, Port: 0}, {Worker: 2, Port: 1}}
	for want, j := range map[string]program.Job{
		"job 3 asks for slots 7 to 9 of 8":                                 {ID: 3, Base: 7, Slots: 3, Members: two},
		"0 racks; a bitmap has bits for 1 to 2":                            {Slots: 1},
		"3 racks; a bitmap has bits for 1 to 2":                            {Slots: 1, Members: make([]program.Member, 3)},
		"a fan-in of 1 for 2 racks; a set is complete when all are inside": {Slots: 1, Fan: 1, Members: two},
		"member 1 has no port": {Slots: 1,
			Members: []program.Member{{}, {Port: program.Uplink}}},
	} {
		if _, err := d.AdmitJob(j, nil); !errors.Is(err, program.ErrConfig) || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%+v: %v; want %q", j, err, want)
		}
	}
}
