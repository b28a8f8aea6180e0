package main

import (
	"os"
	"path/filepath"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// fakeFaults lists the faults that a script can select with OLAFCTL_TEST_CARD.
var fakeFaults = map[string]func(*pcietest.Card, *pcietest.Function){
	"healthy": func(*pcietest.Card, *pcietest.Function) {},
	"driver":  func(_ *pcietest.Card, f *pcietest.Function) { f.Driver = "onic" },
	"p2p":     func(c *pcietest.Card, _ *pcietest.Function) { c.Box(0xB0000000) },
	"gone":    func(c *pcietest.Card, _ *pcietest.Function) { c.AllOnesFrom(1) },
	"vanish":  func(c *pcietest.Card, _ *pcietest.Function) { c.AllOnesFrom(200) },
	"fades":   func(c *pcietest.Card, _ *pcietest.Function) { c.AllOnesFrom(2000) },
	"stuck":   func(c *pcietest.Card, _ *pcietest.Function) { c.StuckBits(regmap.QueueDepth, 4, 0) },
	"nolight": func(c *pcietest.Card, _ *pcietest.Function) { c.Answer(0x8204, 0xC0) },
}

// addFakeCard adds the card selected by a script to the environment, next to unrelated PCI functions.
func addFakeCard(env *cli.Env) error {
	fault, ok := fakeFaults[os.Getenv("OLAFCTL_TEST_CARD")]
	if !ok {
		return nil
	}
	card, err := pcietest.New(twin.Config{})
	if err != nil {
		return err
	}
	function := pcietest.OpenNIC()
	fault(card, &function)
	dir, err := os.MkdirTemp("", "olafctl-card-")
	if err != nil {
		return err
	}
	env.Bus, err = card.Bus(dir, function)
	if err != nil {
		return err
	}
	others := []pcietest.Function{
		{BDF: "0000:04:00.0", Vendor: 0x8086, Device: 0x1572, BAR2: 4096},
		{BDF: "0000:17:00.0", Vendor: 0x10ee, Device: 0x505c, BAR2: 4 << 20},
		{BDF: "0000:5e:00.0", Vendor: 0x10ee, Device: 0x903f, BAR2: 8 << 20},
		{BDF: "0000:86:00.0", Vendor: 0x10ee, Device: 0x903f, BAR2: 4 << 20, MemoryOff: true},
		{BDF: "0000:af:00.0", Vendor: 0x10ee, Device: 0x7038, BAR2: 4 << 20},
	}
	for _, f := range others {
		if err := pcietest.WriteSysfs(filepath.Join(dir, "devices"), f); err != nil {
			return err
		}
	}
	return nil
}
