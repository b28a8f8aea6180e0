package main

import (
	"testing"

	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestProgramsFitTheMap checks that the register map has registers for as many counters as each program has.
func TestProgramsFitTheMap(t *testing.T) {
	for _, d := range programs.AllPrograms() {
		if n := len(d.Ledger.Counters); n > regmap.LedgerCounters || d.Classes > n {
			t.Errorf("%s counts %d in %d registers", d.Name, n, regmap.LedgerCounters)
		}
	}
}
