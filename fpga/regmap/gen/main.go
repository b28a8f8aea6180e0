// Command gen writes what is derived from the register map: registers.go, olaf_regs.svh and docs/registers.md. Run it by
// go generate in fpga/regmap.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

func main() {
	for _, o := range outputs() {
		text, err := o.render()
		if err == nil {
			err = renameio.WriteFile(o.path, text, 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "gen: %s: %v\n", o.path, err)
			os.Exit(1)
		}
	}
}

// output is one generated file; path is relative to fpga/regmap.
type output struct {
	path   string
	render func() ([]byte, error)
}

func outputs() []output {
	return []output{
		{"registers.go", renderGo},
		{"olaf_regs.svh", renderVerilog},
		{filepath.Join("..", "..", "docs", "registers.md"), renderMarkdown},
	}
}
