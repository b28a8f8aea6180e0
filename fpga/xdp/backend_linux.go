package xdp

import (
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/engine"
)

// NewBackend returns the backend of a card in real time whose planes are kernel programs, attached in the given mode.
func NewBackend(mode dataplane.Mode) dataplane.Backend {
	address := "xdp:"
	if mode != dataplane.Native {
		address += string(mode)
	}
	return dataplane.Backend{
		Kind: "xdp", Address: address, Build: "xdp-1 " + string(mode), Mode: mode, Rights: LoadRights,
		Disciplines: engine.DisciplineNames(),
		Load: func(discipline string, b dataplane.Build) (dataplane.Plane, error) {
			q, err := LoadQueue(discipline, b)
			if err != nil {
				return nil, err // nil, not a Plane that contains a nil pointer
			}
			return q, nil
		},
	}
}
