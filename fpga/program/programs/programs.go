// Package programs lists the switch programs of this build. Those who run one are handed its description; this list is for
// who hands them out, and for the register map, in which every program has its code.
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

// All are the programs, in the order of their codes and of reports.
func All() []program.Description {
	return []program.Description{pass.Describe(), iswitch.Describe(), switchml.Describe(), atp.Describe(),
		p4inc.Describe(), xagg.Describe()}
}
