package system

import (
	"slices"
	"testing"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programs"
)

// TestProgramsOfSystems checks that devices are built with the programs of all systems, in the order of their codes.
func TestProgramsOfSystems(t *testing.T) {
	all, built := All(), slices.DeleteFunc(programs.AllPrograms(), func(d program.Description) bool { return d.Code == 0 }) // except forwarding, which needs no program
	if have, want := program.ProgramNames(all.Programs()), program.ProgramNames(built); !slices.Equal(have, want) {
		t.Errorf("systems have the programs %v, the build has %v", have, want)
	}
	if have := program.ProgramNames(append(all, all...).Programs()); len(have) != len(built) {
		t.Errorf("programs of systems that are there twice: %v", have)
	}
	open := slices.DeleteFunc(built, func(d program.Description) bool { return !d.Open })
	if have := program.ProgramNames(all.Open().Programs()); !slices.Equal(have, program.ProgramNames(open)) {
		t.Errorf("programs of workers that do not wait: %v", have)
	}
}
