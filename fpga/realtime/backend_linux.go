package realtime

import (
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/xdp"
)

// Kernel is the backend whose planes are programs of the kernel, attached in a mode.
func Kernel(mode xdp.Mode) Backend {
	address := "xdp:"
	if mode != xdp.Native {
		address += string(mode)
	}
	return Backend{
		Kind: "xdp", Address: address, Build: "xdp-1 " + string(mode), Mode: mode, Rights: xdp.LoadRights,
		Disciplines: engine.Names(),
		Load: func(discipline string, b xdp.Build) (Plane, error) {
			q, err := xdp.Load(discipline, b)
			if err != nil {
				return nil, err // not a Plane that holds nothing
			}
			return q, nil
		},
	}
}
