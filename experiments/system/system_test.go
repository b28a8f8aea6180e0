package system

import (
	"slices"
	"testing"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programs"
)

// TestProgramsOfSystems holds that a twin which is opened for systems is the one that cmd opens: no program is of no system, and those of
// all systems are in the order of their codes.
func TestProgramsOfSystems(t *testing.T) {
	name := func(all []program.Description) (names []string) {
		for i := range all {
			names = append(names, all[i].Name)
		}
		return names
	}
	all := All()
	if have, want := name(all.Programs()), name(programs.Built()); !slices.Equal(have, want) {
		t.Errorf("systems have the programs %v, devices are built with %v", have, want)
	}
	if have := name(append(all, all...).Programs()); len(have) != len(programs.Built()) {
		t.Errorf("programs of systems that are there twice: %v", have)
	}
	if have := all.Open().Programs(); len(have) != len(programs.Open()) {
		t.Errorf("programs of workers that do not wait: %v", name(have))
	}
}
