package regmap

import _ "embed"

// Verilog is the map as a SystemVerilog package for building the RTL: the file olaf_regs.svh.
//
//go:embed olaf_regs.svh
var Verilog []byte
