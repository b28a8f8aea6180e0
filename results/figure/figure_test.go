package figure_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results/figure"
	"github.com/olafctl/olaf/results/internal/example"
	"github.com/olafctl/olaf/results/sheets"
	"github.com/olafctl/olaf/results/table"
)

func TestEveryChartDraws(t *testing.T) {
	charts := 0
	for _, s := range sheets.Book(example.Result(3)).Sheets {
		for i := range s.Charts {
			charts++
			var svg, again, picture bytes.Buffer
			if err := errors.Join(figure.SVG(&svg, &s, &s.Charts[i]), figure.SVG(&again, &s, &s.Charts[i]), figure.PNG(&picture, &s, &s.Charts[i])); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(svg.Bytes(), again.Bytes()) {
				t.Errorf("%s: two drawings differ", s.Name)
			}
			for d := xml.NewDecoder(&again); ; {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", s.Name, err)
				}
			}
			if text := svg.String(); strings.Contains(text, "NaN") || strings.Contains(text, "#000000") || !strings.HasPrefix(text, "<svg role=") || !strings.Contains(text, s.Charts[i].YTitle) {
				t.Errorf("%s: %.300s", s.Name, text)
			}
			if _, err := png.Decode(bytes.NewReader(picture.Bytes())); err != nil {
				t.Error(err)
			}
			if keep := os.Getenv("OLAF_KEEP"); keep != "" {
				if err := os.WriteFile(filepath.Join(keep, fmt.Sprintf("%s%d.png", s.Name, i)), picture.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if charts != 6 {
		t.Errorf("%d charts, want 6", charts)
	}
}

func TestEmptyChartIsAnError(t *testing.T) {
	if err := figure.PNG(io.Discard, &table.Sheet{}, &table.Chart{Title: "x"}); !errors.Is(err, figure.ErrFigure) {
		t.Error(err)
	}
}

// TestLegendStandsInOtherFonts holds that a name does not run into the next swatch where the reader's font is wider than
// Liberation Sans: in DejaVu Sans this name takes 66 points.
func TestLegendStandsInOtherFonts(t *testing.T) {
	s := table.Sheet{Columns: make([]table.Column, 5), Rows: [][]table.Cell{{table.S("0"), table.N(1), table.N(2), table.N(3), table.N(4)}}}
	c := table.Chart{Kind: table.Bars, Title: "ages"}
	for i := range 4 {
		c.Series = append(c.Series, table.Series{Name: "olaf 40Gbps", Column: 1 + i})
	}
	var svg strings.Builder
	if err := figure.SVG(&svg, &s, &c); err != nil {
		t.Fatal(err)
	}
	entries := regexp.MustCompile(`<path d="M([0-9.]+),258[^>]*>\s*<text x="([0-9.]+)"`).FindAllStringSubmatch(svg.String(), -1)
	if len(entries) != 4 {
		t.Fatalf("%d names on the first line, want 4: %s", len(entries), svg.String())
	}
	for i, e := range entries {
		name, err := strconv.ParseFloat(e[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		next := 400.0
		if i < 3 {
			next, err = strconv.ParseFloat(entries[i+1][1], 64)
		}
		if err != nil || next-name < 66+6 {
			t.Errorf("name %d has %v points, %v", i, next-name, err)
		}
	}
}

// TestNamesStayApart draws ever more bars: names on one line, on two, upright.
func TestNamesStayApart(t *testing.T) {
	for bars, want := range map[int]string{3: ">olaf 40Gbps<", 7: ">40Gbps<", 18: "rotate("} {
		s := table.Sheet{Columns: []table.Column{{Header: "configuration"}, {Header: "lost", Format: table.Fixed1}}}
		for range bars {
			s.Rows = append(s.Rows, []table.Cell{table.S("olaf 40Gbps"), table.N(10)})
		}
		var svg strings.Builder
		c := table.Chart{Kind: table.Stacked, Title: "loss", Series: []table.Series{{Name: "lost", Column: 1}}}
		if err := figure.SVG(&svg, &s, &c); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(svg.String(), want) {
			t.Errorf("%d bars: no %s", bars, want)
		}
	}
}
