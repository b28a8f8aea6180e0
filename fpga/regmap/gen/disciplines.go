package main

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/fpga/regmap"
)

// disciplineNames returns the names of the queue disciplines in package engine, indexed by code.
func disciplineNames() ([]string, error) {
	names := make([]string, len(engine.DisciplineNames()))
	for code := range names {
		k, known := engine.FindByCode(uint32(code))
		if !known {
			return nil, fmt.Errorf("no queue has the code %d; the codes of %v must follow each other from 0 on", code,
				engine.DisciplineNames())
		}
		names[code] = k.Name
	}
	return names, nil
}

// programNames returns the names of the switch programs, indexed by code.
func programNames() ([]string, error) {
	var names []string
	for code, d := range programs.AllPrograms() {
		if int(d.Code) != code {
			return nil, fmt.Errorf("%s has the code %d and stands at %d; codes must follow each other from 0 on",
				d.Name, d.Code, code)
		}
		names = append(names, d.Name)
	}
	return names, nil
}

// currentBlocks returns the register map with the current disciplines and programs. The lists in the existing
// registers.go cannot be used, because they may be outdated.
func currentBlocks() ([]regmap.Block, error) {
	names, err := disciplineNames()
	if err != nil {
		return nil, err
	}
	codes, err := programNames()
	if err != nil {
		return nil, err
	}
	values := map[string][]string{"queue.mode.discipline": names, "aggregator.program.program": codes}
	all := slices.Clone(regmap.AllBlocks())
	for b := range all {
		all[b].Registers = slices.Clone(all[b].Registers)
		for r := range all[b].Registers {
			register := &all[b].Registers[r]
			register.Fields = slices.Clone(register.Fields)
			for f := range register.Fields {
				field := &register.Fields[f]
				if now := values[all[b].Name+"."+register.Name+"."+field.Name]; now != nil {
					field.Values = now
				}
			}
		}
	}
	return all, nil
}
