// Package programs lists the switch programs in this build. Code that runs a program gets its description as an
// argument; this list is for the code that passes them, and for the register map, which has a code for every
// program.
package programs

import (
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/atp"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/fpga/program/pass"
	"github.com/olafctl/olaf/fpga/program/switchml"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// AllPrograms returns the programs in the order of their codes and of reports.
func AllPrograms() []program.Description {
	return []program.Description{pass.Describe(), iswitch.Describe(), switchml.Describe(), atp.Describe(),
		p4inc.Describe(), xagg.Describe()}
}
