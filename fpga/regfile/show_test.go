package regfile

import (
	"testing"

	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestEveryClassHasItsRegister checks the rows of the engine against the cluster bank.
func TestEveryClassHasItsRegister(t *testing.T) {
	seen := map[uint32]bool{}
	for class, at := range classRegisters {
		if ref, _, ok := regmap.RegisterAt(at); !ok || ref.Register.Name != "cluster_"+engine.Class(class).String() || seen[at] {
			t.Errorf("class %v is at %#x", engine.Class(class), at)
		}
		seen[at] = true
	}
}
