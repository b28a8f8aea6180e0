package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/olafctl/olaf/fpga/regmap"
)

const intro = `# Registers

Generated from ` + "`fpga/regmap`" + ` by ` + "`go generate ./fpga/regmap`" + `; do not edit.

Map version %d.%d.%d. Addresses are byte offsets within BAR2 of an OpenNIC shell; the blocks lie in its 250 MHz user box, which starts at
0x100000. Registers are 32 bit, little-endian. A 64-bit register is two words, low word first. Bits that no field names read 0 and
writing 1 to them is refused.

- **RO** read only · **RW** read and write · **W1C** sticky bits, write 1 to clear · **CMD** write 1 to act, reads 0.
- **idle**: writable only while the block is disabled and empty (queue) or neither armed nor running (generator). A refused write changes
  nothing, sets the block's error bit and ` + "`common.errors`" + `, and leaves its address in ` +
	"`common.error_address`" + `.
- A reset of "built" is fixed by the bitstream or shows the state of the card.
- Counters change only by ` + "`common.command.snapshot`" + `, which latches all banks at one cycle.
- 0x140000–0x17FFFF and 0x180000–0x1BFFFF are left to the AXI-Lite windows of VNP4-1 and VNP4-2.
`

func renderMarkdown(blocks []regmap.Block) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, intro, regmap.VersionMajor, regmap.VersionMinor, regmap.VersionPatch)
	for _, block := range blocks {
		fmt.Fprintf(&b, "\n## %s: %#x, %d bytes\n\n%s\n\n", block.Name, block.Base, block.Size, block.Doc)
		b.WriteString("| offset | name | access | reset | unit | meaning |\n|---|---|---|---|---|---|\n")
		for _, r := range block.Registers {
			mdRegister(&b, r)
		}
	}
	b.WriteString("\n## Memories of the generator\n\nReached through `generator.mem_select`, `mem_address` and " +
		"`mem_data`, in 32-bit words. Bits that no field names are 0.\n")
	for _, rec := range regmap.AllRecords() {
		fmt.Fprintf(&b, "\n### %s: %d words\n\n%s\n", rec.Name, rec.Words, rec.Doc)
		if len(rec.Fields) == 0 {
			continue
		}
		b.WriteString("\n| word | bits | field | unit | meaning |\n|---|---|---|---|---|\n")
		for _, f := range rec.Fields {
			fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", f.Word, bitRange(f.Hi, f.Lo), f.Name, f.Unit, f.Doc)
		}
	}
	return b.Bytes(), nil
}

func mdRegister(b *bytes.Buffer, r regmap.Register) {
	reset := fmt.Sprintf("%#x", r.Reset)
	if r.Built {
		reset = "built"
	}
	acc := r.Access.String()
	if r.Idle {
		acc += " idle"
	}
	if r.Wide {
		acc += " 64"
	}
	fmt.Fprintf(b, "| 0x%03X | %s | %s | %s | %s | %s |\n", r.Offset, r.Name, acc, reset, r.Unit, r.Doc)
	for _, f := range r.Fields {
		doc := f.Doc
		if len(f.Values) > 0 {
			doc += " Values from 0: " + strings.Join(f.Values, ", ") + "."
		}
		fmt.Fprintf(b, "| | · %s [%s] | | | | %s |\n", f.Name, bitRange(f.Hi, f.Lo), doc)
	}
}

func bitRange(hi, lo uint8) string {
	if hi == lo {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d:%d", hi, lo)
}
