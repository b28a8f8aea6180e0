package realtime

import (
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/xdp"
)

// KernelBackend returns a backend whose planes are kernel programs that are attached in the given mode.
func KernelBackend(mode xdp.Mode) Backend {
	address := "xdp:"
	if mode != xdp.Native {
		address += string(mode)
	}
	return Backend{
		Kind: "xdp", Address: address, Build: "xdp-1 " + string(mode), Mode: mode, Rights: xdp.LoadRights,
		Disciplines: engine.DisciplineNames(),
		Load: func(discipline string, b xdp.Build) (Plane, error) {
			q, err := xdp.LoadQueue(discipline, b)
			if err != nil {
				return nil, err // nil, not a Plane that contains a nil pointer
			}
			return q, nil
		},
	}
}
