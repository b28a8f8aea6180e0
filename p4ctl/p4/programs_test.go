package p4

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/internal/test/golden"
)

// TestP4InfoOfEverySystem checks every pipeline against its golden file, and OLAF's byte by byte, because a controller
// treats a changed P4Info as another pipeline.
func TestP4InfoOfEverySystem(t *testing.T) {
	golden.Equal(t, "olaf.p4info.txtpb", Lab().InfoText())
	golden.Equal(t, "olaf.config.json", Lab().DeviceConfig())
	for _, d := range programs.AllPrograms() {
		if len(d.Tables) > 0 {
			golden.Equal(t, d.Name+".p4info.txtpb", Lab().InfoText(d))
		}
	}
}

// TestPipelinesGoTogether checks that without programs the pipeline has only the blocks' tables, and that the tables of
// two programs can be combined.
func TestPipelinesGoTogether(t *testing.T) {
	base := Hash(Twin().Info())
	if base != Hash(Twin().Info([]program.Description{}...)) ||
		base != "35d7cff4f1942d48f25f4add01c09418ead580cceae4a0e4d296a93e9d9b6ccf" {
		t.Errorf("without programs %s", base)
	}
	all := Twin().Info(programs.AllPrograms()...)
	if all.PkgInfo.Name != "iswitch+switchml+atp+p4inc" || len(all.Tables) != 3+1+2+2+2 {
		t.Errorf("%s with %d tables", all.PkgInfo.Name, len(all.Tables))
	}
}

// TestKeysAreNumbers checks that an entry's number encodes all its key fields.
func TestKeysAreNumbers(t *testing.T) {
	tables := TablesOf(programs.AllPrograms())
	rapid.Check(t, func(t *rapid.T) {
		table := &tables[rapid.IntRange(0, len(tables)-1).Draw(t, "table")]
		key := make([]uint32, len(table.Key))
		for i, f := range table.Key {
			key[i] = uint32(rapid.Uint64Max(1<<f.Bits-1).Draw(t, f.Name))
		}
		for i, v := range table.Fields(table.Number(key)) {
			if v != key[i] {
				t.Errorf("%s: %v comes back as %v", table.Name, key, table.Fields(table.Number(key)))
			}
		}
	})
}
