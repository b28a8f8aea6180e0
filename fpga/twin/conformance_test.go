package twin_test

import (
	"slices"
	"testing"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/fpgatest"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/fpga/twin"
)

func TestConformance(t *testing.T) {
	open := slices.DeleteFunc(programs.AllPrograms(), func(d program.Description) bool { return !d.Open })
	for name, cfg := range map[string]twin.Config{"queue alone": {}, "with programs": {Programs: open}} {
		t.Run(name, func(t *testing.T) {
			fpgatest.Run(t, func(tb *testing.T) fpga.Device {
				d, err := twin.New(cfg)
				if err != nil {
					tb.Fatal(err)
				}
				tb.Cleanup(func() { _ = d.Close() })
				return d
			})
		})
	}
}
