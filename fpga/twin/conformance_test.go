package twin_test

import (
	"testing"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/fpgatest"
	"github.com/olafctl/olaf/fpga/twin"
)

func TestConformance(t *testing.T) {
	fpgatest.Run(t, func(tb *testing.T) fpga.Device {
		d, err := twin.New(twin.Config{})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = d.Close() })
		return d
	})
}
