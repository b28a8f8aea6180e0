// Package figure draws the charts of a sheet as one figure, with one panel per chart. Published points are crosses next
// to our points, which have intervals. The package draws the same rows as the workbook's charts and writes SVG, PDF and
// PNG.
package figure

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/olafctl/olaf/results/table"
)

// ErrFigure is matched by errors about figures that cannot be drawn.
var ErrFigure = errors.New("figure: the chart can't be drawn")

const pngDPI = 192

// formats contains the functions that write figures, by file extension.
var formats = map[string]func(io.Writer, *table.Sheet) error{"svg": svgFile, "pdf": pdfFile, "png": pngFile}

// Formats returns the file extensions that Write supports.
func Formats() []string { return []string{"svg", "pdf", "png"} }

// Write writes the figure of s on a white background. format is a file extension from Formats.
func Write(w io.Writer, format string, s *table.Sheet) error {
	write, ok := formats[format]
	if !ok {
		return fmt.Errorf("%w: figures are %s, not %q", ErrFigure, strings.Join(Formats(), ", "), format)
	}
	return write(w, s)
}

// HasData reports whether at least one chart of s has data to draw.
func HasData(s *table.Sheet) bool {
	return slices.ContainsFunc(s.Charts, func(c table.Chart) bool { return len(dataRows(s, &c)) > 0 })
}

// SVG writes the figure of s as an SVG element for an HTML page. The element scales with the page's width, has no
// background, and shows black in the page's text colour.
func SVG(w io.Writer, s *table.Sheet) error {
	svg, err := svgOf(s, nil)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, inlineSVG(svg, s.Title))
	return err
}

func svgFile(w io.Writer, s *table.Sheet) error {
	svg, err := svgOf(s, color.White)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, svgFamily.ReplaceAllLiteralString(svg,
		"font-family:'Liberation Sans',Arial,Helvetica,sans-serif"))
	return err
}

func svgOf(s *table.Sheet, background color.Color) (string, error) {
	f, err := layOut(s)
	if err != nil {
		return "", err
	}
	canvas := vgsvg.NewWith(vgsvg.UseWH(f.width, f.height))
	f.draw(draw.New(canvas), background)
	var b bytes.Buffer
	_, err = canvas.WriteTo(&b)
	return fixWidths(b.String()), err
}

// svgText matches a text element with its style, as package vgsvg writes it.
var svgText = regexp.MustCompile(`<text ([^>]*style="([^"]*)"[^>]*)>([^<]*)</text>`)

// fixWidths sets the width of every text in an SVG file to the planned width. A viewer with a wider font, such as
// DejaVu Sans, then draws narrower letters, so that labels do not overlap.
func fixWidths(svg string) string {
	return svgText.ReplaceAllStringFunc(svg, func(element string) string {
		part := svgText.FindStringSubmatch(element)
		style := plainStyle()
		if strings.Contains(part[2], "bold") {
			style = boldStyle()
		}
		width := style.Width(html.UnescapeString(part[3])).Points()
		if width <= 0 {
			return element
		}
		return fmt.Sprintf(`<text textLength="%.2f" lengthAdjust="spacingAndGlyphs" %s>%s</text>`, width, part[1], part[3])
	})
}

func pdfFile(w io.Writer, s *table.Sheet) error {
	f, err := layOut(s)
	if err != nil {
		return err
	}
	canvas := newPDF(f.width, f.height, s.Title)
	f.draw(draw.NewCanvas(canvas, f.width, f.height), color.White)
	return canvas.write(w)
}

func pngFile(w io.Writer, s *table.Sheet) error {
	f, err := layOut(s)
	if err != nil {
		return err
	}
	canvas := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(pngDPI))
	f.draw(draw.New(canvas), color.White)
	_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

var (
	svgSize   = regexp.MustCompile(`<svg width="([^"]*)pt" height="[^"]*"`)
	svgFamily = regexp.MustCompile(`font-family:[^;"]*`)
)

// inlineSVG converts an SVG file to an element for an HTML page, with a maximum width. White borders of crosses and
// white hatching get the page's background colour, --page.
func inlineSVG(svg, title string) string {
	svg = svg[strings.Index(svg, "<svg"):]
	svg = svgSize.ReplaceAllString(svg,
		`<svg role="img" fill="currentColor" style="max-width:${1}pt" aria-label="`+
			strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "$", "$$").Replace(title)+`"`)
	svg = strings.NewReplacer("#000000", "currentColor", "#FFFFFF", "var(--page, #FFFFFF)").Replace(svg)
	return svgFamily.ReplaceAllLiteralString(svg, "font-family:inherit")
}

// dataRows returns the rows in which a series of the chart has a number. A map also keeps rows without numbers, whose
// cells are empty. If all bars of a chart are 0, it returns nil, because they could not be seen.
func dataRows(s *table.Sheet, c *table.Chart) (rows []int) {
	visible, anywhere := c.Kind != table.Bars, false
	for k, row := range s.Rows {
		any := false
		for _, one := range c.Series {
			for _, column := range []int{one.Column, one.PaperColumn} {
				v, ok := numberAt(row, column)
				any, visible = any || ok, visible || v != 0
			}
		}
		if anywhere = anywhere || any; any || c.Kind == table.Map {
			rows = append(rows, k)
		}
	}
	if !visible || !anywhere {
		return nil
	}
	return rows
}

// numberAt returns the number in a column. ok is false if the cell is not a number or the column is 0, which means
// none.
func numberAt(row []table.Cell, column int) (v float64, ok bool) {
	if column <= 0 || row[column].Kind != table.Number {
		return 0, false
	}
	return row[column].Number, true
}

// valueAt returns the number in a column of a row, or NaN if there is none.
func valueAt(row []table.Cell, column int) float64 {
	if v, ok := numberAt(row, column); ok {
		return v
	}
	return math.NaN()
}

func rectanglePath(x0, y0, x1, y1 vg.Length) []vg.Point {
	return []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}}
}
