// Command gen generates registers.go, olaf_regs.svh and docs/reference/registers.md from the register map and the lists
// of queue disciplines and switch programs. Run it with go generate in fpga/regmap. The map must not import the engine,
// so this command imports both and passes the engine's names to the map.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/olafctl/olaf/fpga/regmap"
)

func main() {
	if err := writeOutputs(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func writeOutputs() error {
	described, err := currentBlocks()
	if err != nil {
		return err
	}
	for _, o := range listOutputs() {
		text, err := o.render(described)
		if err != nil {
			return fmt.Errorf("%s: %w", o.path, err)
		}
		if err := renameio.WriteFile(o.path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// output is a generated file. Its path is relative to fpga/regmap.
type output struct {
	path   string
	render func([]regmap.Block) ([]byte, error)
}

func listOutputs() []output {
	return []output{
		{"registers.go", renderGo},
		{"olaf_regs.svh", renderVerilog},
		{filepath.Join("..", "..", "docs", "reference", "registers.md"), renderMarkdown},
	}
}
