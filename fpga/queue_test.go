package fpga_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// The register map and the table of disciplines are rooms on one floor; this is where they are held together.
func TestDisciplinesAreThoseOfTheRegisterMap(t *testing.T) {
	ref, err := regmap.Lookup("queue.mode")
	if err != nil {
		t.Fatal(err)
	}
	values := ref.Register.Fields[0].Values
	coded := make([]string, len(values))
	for i := range coded {
		k, _ := engine.Coded(uint32(i))
		coded[i] = k.Name
	}
	if d := cmp.Diff(values, coded); d != "" || len(engine.Names()) != len(values) {
		t.Errorf("queue.mode.discipline (-register map +engine, which has %v):\n%s", engine.Names(), d)
	}
}
