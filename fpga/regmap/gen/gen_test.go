package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf/internal/test/peer"
)

func TestGeneratedFilesAreFresh(t *testing.T) {
	described, err := currentBlocks()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range listOutputs() {
		want, err := o.render(described)
		if err != nil {
			t.Fatalf("%s: %v", o.path, err)
		}
		got, err := os.ReadFile(filepath.Join("..", o.path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run go generate ./fpga/regmap", o.path)
		}
	}
}

// TestVerilogHeaderCompiles checks that Verilator, as a real peer, compiles the header and a use of one of its values.
func TestVerilogHeaderCompiles(t *testing.T) {
	tool := peer.NeedProgram(t, "verilator")
	described, err := currentBlocks()
	if err != nil {
		t.Fatal(err)
	}
	text, err := renderVerilog(described)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	top := "`include \"olaf_regs.svh\"\nmodule top(output logic [31:0] magic);\n  assign magic = olaf_regs::COMMON_MAGIC_RESET_VALUE;\nendmodule\n"
	for name, content := range map[string][]byte{"olaf_regs.svh": text, "top.sv": []byte(top)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(tool, "--lint-only", "--top-module", "top", "top.sv")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("verilator: %v\n%s", err, out)
	}
}
