// Package programs lists the switch programs of this build. Those who run one are handed its description; this list is for
// who hands them out, and for the register map, in which every program has its code.
package programs

import (
	"slices"
	"strconv"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/fpga/program/pass"
	"github.com/olafctl/olaf/fpga/program/switchml"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// All are the programs, in the order of their codes and of reports.
func All() []program.Description {
	return []program.Description{pass.Describe(), iswitch.Describe(), switchml.Describe(), atp.Describe(), p4inc.Describe(), xagg.Describe()}
}

// Name is what the program of a code of the register map is called; of a code that no program of this build has, the code.
func Name(code uint32) string {
	for _, d := range All() {
		if d.Code == code {
			return d.Name
		}
	}
	return strconv.FormatUint(uint64(code), 10)
}

// Built are those that a card can be built with: all but passing on, which needs nothing.
func Built() []program.Description {
	return slices.DeleteFunc(All(), func(d program.Description) bool { return d.Code == 0 })
}

// Open are those that can stand in front of a queue, for workers that do not wait for answers.
func Open() []program.Description {
	return slices.DeleteFunc(All(), func(d program.Description) bool { return !d.Open })
}
