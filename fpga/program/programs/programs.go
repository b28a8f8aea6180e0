// Package programs lists the switch programs in this build. Code that runs a program receives its description as an
// argument. This list is only for the code that passes the descriptions, and for the register map, which has a code for
// each program.
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

// AllPrograms returns the descriptions of all programs, in the order of their codes. Reports use the same order.
func AllPrograms() []program.Description {
	return []program.Description{pass.Describe(), iswitch.Describe(), switchml.Describe(), atp.Describe(),
		p4inc.Describe(), xagg.Describe()}
}
