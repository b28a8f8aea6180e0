package regmap

import _ "embed"

// Verilog is the content of the file olaf_regs.svh, which defines the register map as a SystemVerilog package for
// building the RTL.
//
//go:embed olaf_regs.svh
var Verilog []byte
