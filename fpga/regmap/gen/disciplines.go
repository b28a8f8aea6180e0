package main

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
)

// disciplines are the names of the queues by their codes, which engine declares.
func disciplines() ([]string, error) {
	names := make([]string, len(engine.Names()))
	for code := range names {
		k, known := engine.Coded(uint32(code))
		if !known {
			return nil, fmt.Errorf("no queue has the code %d; the codes of %v must follow each other from 0 on", code, engine.Names())
		}
		names[code] = k.Name
	}
	return names, nil
}

// blocks is the map with the queues that engine has now, which those of the generated registers.go may be older than.
func blocks() ([]regmap.Block, error) {
	names, err := disciplines()
	if err != nil {
		return nil, err
	}
	all := slices.Clone(regmap.Blocks())
	for b := range all {
		all[b].Registers = slices.Clone(all[b].Registers)
		for r := range all[b].Registers {
			register := &all[b].Registers[r]
			register.Fields = slices.Clone(register.Fields)
			for f := range register.Fields {
				if field := &register.Fields[f]; all[b].Name+"."+register.Name+"."+field.Name == "queue.mode.discipline" {
					field.Values = names
				}
			}
		}
	}
	return all, nil
}
