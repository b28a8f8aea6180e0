package program_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// TestEmptyTraceChangesNothing checks that an empty trace does not change another trace, whichever of the two is added
// to the other.
func TestEmptyTraceChangesNothing(t *testing.T) {
	one := program.NewTrace(3, 4, 500)
	one.ReadSum = 6
	sum := one
	sum.Add(&program.Trace{NewestNS: 900, OldestNS: 1, SumNS: 7})
	var other program.Trace
	other.Add(&one)
	if sum != one || other != one {
		t.Errorf("%+v and %+v, want %+v", sum, other, one)
	}
	two := program.NewTrace(5, 4, 300)
	two.ReadSum = 8
	sum.Add(&two)
	if want := (program.Trace{Inside: one.Inside + two.Inside, NewestNS: 500, OldestNS: 300, SumNS: 800, ReadSum: 14,
		Vectors: 2}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
}

// TestLedgersHaveTheirParts checks that classes of dropped packets are among the parts of an account, and other classes
// are not.
func TestLedgersHaveTheirParts(t *testing.T) {
	l := program.NewLedger([]olaf.Counter{{Name: "consumed"}, {Name: "stranger", Column: "STRANGERS"}}, "consumed")
	if want := []string{"stranger", "vectors_held", "vectors_cleared"}; !slices.Equal(l.Parts, want) ||
		!slices.Equal(l.Output, []string{"consumed"}) {
		t.Errorf("%v, want %v; %v", l.Parts, want, l.Output)
	}
}

// TestParametersOfJobs checks that partitions are described in 32-bit numbers, and that a parent is described in one
// bit.
func TestParametersOfJobs(t *testing.T) {
	for _, f := range program.PartParams() {
		if f.Bits != 32 {
			t.Errorf("%s has %d bits", f.Name, f.Bits)
		}
	}
	parents := 0
	for _, d := range told(t) {
		for i := range d.Tables {
			table := &d.Tables[i]
			at := slices.IndexFunc(table.Params, func(f program.Field) bool { return f.Means == program.HasParent })
			if at < 0 {
				continue
			}
			parents++
			for parent := range uint32(2) {
				params := make([]uint32, len(table.Params))
				params[at] = parent
				if j, _ := table.ReadEntry(make([]uint32, len(table.Key)), params); j.Parent != (parent == 1) || table.Params[at].Bits != 1 {
					t.Errorf("%s of %d: %+v", table.Name, parent, j)
				}
			}
		}
	}
	if parents == 0 {
		t.Error("no program has parents")
	}
}

// TestMembersWithoutPort checks that a member without a port on the switch is in no table.
func TestMembersWithoutPort(t *testing.T) {
	for _, d := range told(t) {
		members := slices.ContainsFunc(d.Tables, func(table program.Table) bool {
			return slices.ContainsFunc(table.Params, func(f program.Field) bool { return f.Means == program.ChildPort })
		})
		if !members {
			continue
		}
		if _, err := d.Entries(program.Job{ID: 1, Slots: 1,
			Members: []program.Member{{Worker: 1, Port: program.Uplink}}}); !errors.Is(err, program.ErrConfig) {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}
