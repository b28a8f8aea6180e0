package rtl

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/olafctl/olaf/internal/test/golden"
	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/table"
)

// Resources of an XCU55.
const (
	cardLUTs  = 1_303_680
	cardFlops = 2_607_360
)

// synthesized reads a file written by 'make area': a header, and one row per size or part.
func synthesized(t *testing.T, file string) (rows []map[string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma = '\t'
	all, err := r.ReadAll()
	if err != nil || len(all) < 2 {
		t.Fatalf("%s: %d lines, %v", file, len(all), err)
	}
	for _, line := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// printed returns a number printed in the paper's text.
func printed(t *testing.T, id string) float64 {
	t.Helper()
	for _, c := range paper.ListClaims() {
		if c.ID == id {
			return c.Value
		}
	}
	t.Fatalf("no claim %s", id)
	return 0
}

// TestArea checks the tables and the figure in docs/notes/rtl-sizes.md against the last results of 'make area'.
func TestArea(t *testing.T) {
	lut, ff := printed(t, "olaf/hardware.utilisation.lut"), printed(t, "olaf/hardware.utilisation.ff")
	var page strings.Builder
	page.WriteString("| slots, frame, read ports | LUT: logic, memory | of an XCU55 | FF | of an XCU55 | RAMB18, RAMB36, URAM | DSP |\n|---|---|---|---|---|---|---|\n")
	sheet := table.Sheet{Name: "Area", Title: "OlafQueue by yosys for UltraScale+, an estimate",
		Columns: []table.Column{{Header: "build"}, {Header: "LUTs", Unit: "%", Format: table.General},
			{Header: "paper", Unit: "%", Format: table.General},
			{Header: "flip-flops", Unit: "%", Format: table.General}, {Header: "paper", Unit: "%", Format: table.General}},
		Charts: []table.Chart{
			{Kind: table.Bars, Title: "LUTs; cross: the paper, with two P4 blocks", YTitle: "of an XCU55 [%]",
				Series: []table.Series{{Name: "LUTs", Column: 1, PaperColumn: 2}}},
			{Kind: table.Bars, Title: "Flip-flops; cross: the paper, with two P4 blocks", YTitle: "of an XCU55 [%]",
				Series: []table.Series{{Name: "flip-flops", Column: 3, PaperColumn: 4}}},
		}}
	for _, r := range synthesized(t, "synth/area.tsv") {
		luts := 100 * (number(t, r["lut"]) + number(t, r["lutram"])) / cardLUTs
		flops := 100 * number(t, r["ff"]) / cardFlops
		fmt.Fprintf(&page, "| %s, %s B, %s | %s, %s | %.2f %% | %s | %.2f %% | %s, %s, %s | %s |\n", r["slots"], r["frame"], r["ports"],
			r["lut"], r["lutram"],
			luts, r["ff"], flops, r["ramb18"], r["ramb36"], r["uram"], r["dsp"])
		build := fmt.Sprintf("%s × %s B", r["slots"], r["frame"])
		if r["ports"] == "1" {
			build += ", one port"
		}
		sheet.Rows = append(sheet.Rows, []table.Cell{table.S(build), table.N(luts), table.N(lut), table.N(flops), table.N(ff)})
	}
	fmt.Fprintf(&page, "| the paper, with two P4 blocks | | %g %% | | %g %% | | |\n", lut, ff)
	golden.Page(t, "../../docs/notes/rtl-sizes.md", "<!-- area: make area -->", "<!-- end of area -->", page.String())
	var svg bytes.Buffer
	if err := figure.Write(&svg, "svg", &sheet); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "../../docs/img/area.svg", svg.Bytes())
}

// TestPaths checks the table of longest paths against the last results of 'make area'.
func TestPaths(t *testing.T) {
	const cyclePS = 4000
	var page strings.Builder
	page.WriteString("| part | LUTs in a row | 4 ns over these | from | to |\n|---|---|---|---|---|\n")
	for _, r := range synthesized(t, "synth/path.tsv") {
		fmt.Fprintf(&page, "| `%s` | %s | %.0f ps | `%s` | `%s` |\n", r["part"], r["levels"], cyclePS/number(t, r["levels"]), r["from"],
			r["to"])
	}
	golden.Page(t, "../../docs/notes/rtl-sizes.md", "<!-- paths: make area -->", "<!-- end of paths -->", page.String())
}
