package programs

import (
	"slices"
	"testing"

	"github.com/olafctl/olaf/fpga/program"
)

func TestNames(t *testing.T) {
	all := AllPrograms()
	if names := program.ProgramNames(all); !slices.Equal(names, []string{"pass", "iswitch", "switchml", "atp", "p4inc", "xagg"}) {
		t.Errorf("the programs are %v", names)
	}
	for _, d := range all {
		if got := program.ProgramName(all, d.Code); got != d.Name {
			t.Errorf("code %d is called %s, want %s", d.Code, got, d.Name)
		}
	}
	if got := program.ProgramName(all, 4711); got != "4711" {
		t.Errorf("a code of nobody is called %s", got)
	}
}
