package xlsx

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	"github.com/olafctl/olaf/results/table"
	"github.com/tealeg/xlsx/v3"
)

const (
	xmlHeader = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	// A chart covers this many columns and rows of its sheet, beginning beside the table.
	chartColumns, chartRows, chartGap = 9, 20, 1
)

// palette tells series apart in print and for colour-blind readers (Okabe and Ito's set).
var palette = []string{"0072B2", "D55E00", "009E73", "CC79A7", "E69F00", "56B4E9", "F0E442", "000000"}

// addCharts adds the drawing and chart parts of every sheet that has charts.
func addCharts(parts map[string]string, b *table.Book) error {
	number := 0
	var overrides strings.Builder
	for i := range b.Sheets {
		s := &b.Sheets[i]
		if len(s.Charts) == 0 {
			continue
		}
		drawing := fmt.Sprintf("drawing%d.xml", i+1)
		var anchors, rels strings.Builder
		for k := range s.Charts {
			number++
			chart := fmt.Sprintf("chart%d.xml", number)
			body, err := chartXML(s, &s.Charts[k])
			if err != nil {
				return err
			}
			parts["xl/charts/"+chart] = body
			anchors.WriteString(anchorXML(s, k))
			fmt.Fprintf(&rels, `<Relationship Id="rId%d" Type="%s/chart" Target="../charts/%s"/>`, k+1, relations, chart)
			override(&overrides, "/xl/charts/"+chart, "application/vnd.openxmlformats-officedocument.drawingml.chart+xml")
		}
		parts["xl/drawings/"+drawing] = xmlHeader + `<xdr:wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">` + anchors.String() + `</xdr:wsDr>`
		parts["xl/drawings/_rels/"+drawing+".rels"] = relationsXML(rels.String())
		override(&overrides, "/xl/drawings/"+drawing, "application/vnd.openxmlformats-officedocument.drawing+xml")
		sheet := fmt.Sprintf("sheet%d.xml", i+1)
		name := "xl/worksheets/" + sheet
		if !strings.HasSuffix(parts[name], "</worksheet>") {
			return fmt.Errorf("%w: %s has an unexpected end", ErrBook, name)
		}
		parts[name] = strings.TrimSuffix(parts[name], "</worksheet>") + `<drawing r:id="rId1"/></worksheet>`
		parts["xl/worksheets/_rels/"+sheet+".rels"] = relationsXML(fmt.Sprintf(`<Relationship Id="rId1" Type="%s/drawing" Target="../drawings/%s"/>`, relations, drawing))
	}
	const types = "[Content_Types].xml"
	parts[types] = strings.Replace(parts[types], "</Types>", overrides.String()+"</Types>", 1)
	return nil
}

func override(b *strings.Builder, part, contentType string) {
	fmt.Fprintf(b, `<Override PartName="%s" ContentType="%s"/>`, part, contentType)
}

func relationsXML(body string) string {
	return xmlHeader + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` + body + `</Relationships>`
}

func coreProperties(title string) string {
	return xmlHeader + `<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>` +
		escaped(title) + `</dc:title><dc:creator>olafctl</dc:creator></cp:coreProperties>`
}

func escaped(s string) string {
	var b bytes.Buffer
	// Writing to a buffer can't fail.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// anchorXML places chart k of s to the right of its table, one below the other.
func anchorXML(s *table.Sheet, k int) string {
	column, row := len(s.Columns)+1, 1+k*(chartRows+chartGap)
	return fmt.Sprintf(`<xdr:twoCellAnchor><xdr:from><xdr:col>%d</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>%d</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:from>`+
		`<xdr:to><xdr:col>%d</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>%d</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:to>`+
		`<xdr:graphicFrame macro=""><xdr:nvGraphicFramePr><xdr:cNvPr id="%d" name="Chart %d" descr="%s"/><xdr:cNvGraphicFramePr/></xdr:nvGraphicFramePr>`+
		`<xdr:xfrm><a:off x="0" y="0"/><a:ext cx="0" cy="0"/></xdr:xfrm><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/chart">`+
		`<c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:r="%s" r:id="rId%d"/></a:graphicData></a:graphic></xdr:graphicFrame><xdr:clientData/></xdr:twoCellAnchor>`,
		column, row, column+chartColumns, row+chartRows, k+2, k+1, escaped(s.Charts[k].Title), relations, k+1)
}

// chartModel is what the template draws.
type chartModel struct {
	Title, XTitle, YTitle string
	Kind                  string // bar or scatter
	Stacked               bool
	YMax                  float64
	Series                []seriesModel
}

type seriesModel struct {
	Index              int
	Name, Colour, Dash string
	X, Y, Error        *rangeModel
}

// rangeModel is a range of cells with the values it holds, so that a viewer need not calculate to draw.
type rangeModel struct {
	Ref    string
	Text   bool
	Count  int
	Points []pointModel
}

type pointModel struct {
	Index int
	Value string
}

func chartXML(s *table.Sheet, c *table.Chart) (string, error) {
	m := chartModel{Title: c.Title, XTitle: c.XTitle, YTitle: c.YTitle, Kind: "bar", Stacked: c.Kind == table.Stacked, YMax: c.YMax}
	if c.Kind == table.Steps || c.Kind == table.Lines {
		m.Kind = "scatter"
	}
	for i, series := range c.Series {
		out := seriesModel{Index: i, Name: series.Name, Colour: palette[i%len(palette)], Dash: "solid",
			X: rangeOf(s, c.X), Y: rangeOf(s, series.Column)}
		if series.X > 0 {
			out.X = rangeOf(s, series.X)
		}
		if series.Dashed {
			out.Dash = "dash"
		}
		if series.ErrorColumn > 0 {
			out.Error = rangeOf(s, series.ErrorColumn)
		}
		m.Series = append(m.Series, out)
	}
	var b strings.Builder
	b.WriteString(xmlHeader)
	err := chartTemplate.Execute(&b, m)
	return b.String(), err
}

// rangeOf is all rows of one column.
func rangeOf(s *table.Sheet, column int) *rangeModel {
	rows := min(len(s.Rows), MaxRows)
	sheet := "'" + strings.ReplaceAll(s.Name, "'", "''") + "'"
	letter := xlsx.ColIndexToLetters(column)
	r := &rangeModel{Ref: fmt.Sprintf("%s!$%s$2:$%s$%d", sheet, letter, letter, rows+1), Count: rows}
	for i := range rows {
		switch v := s.Rows[i][column]; v.Kind {
		case table.String:
			r.Text = true
			r.Points = append(r.Points, pointModel{i, v.Text})
		case table.Number:
			r.Points = append(r.Points, pointModel{i, strconv.FormatFloat(v.Number, 'g', -1, 64)})
		}
	}
	return r
}

var chartTemplate = template.Must(template.New("chart").Funcs(template.FuncMap{"x": escaped}).Parse(strings.NewReplacer("\n", "", "\t", "").Replace(`
{{define "text"}}<c:tx><c:rich><a:bodyPr/><a:p><a:pPr><a:defRPr sz="1000" b="0"/></a:pPr><a:r><a:rPr lang="en-GB" sz="1000" b="0"/><a:t>{{x .}}</a:t></a:r></a:p></c:rich></c:tx><c:overlay val="0"/>{{end}}
{{define "points"}}<c:ptCount val="{{.Count}}"/>{{range .Points}}<c:pt idx="{{.Index}}"><c:v>{{x .Value}}</c:v></c:pt>{{end}}{{end}}
{{define "data"}}{{if .Text}}<c:strRef><c:f>{{x .Ref}}</c:f><c:strCache>{{template "points" .}}</c:strCache></c:strRef>
{{else}}<c:numRef><c:f>{{x .Ref}}</c:f><c:numCache><c:formatCode>General</c:formatCode>{{template "points" .}}</c:numCache></c:numRef>{{end}}{{end}}

{{define "axis"}}<c:majorTickMark val="out"/><c:minorTickMark val="none"/><c:tickLblPos val="nextTo"/>{{end}}
<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">
<c:roundedCorners val="0"/>
<c:chart><c:title>{{template "text" .Title}}</c:title><c:autoTitleDeleted val="0"/><c:plotArea><c:layout/>
{{if eq .Kind "bar"}}
<c:barChart><c:barDir val="col"/><c:grouping val="{{if .Stacked}}stacked{{else}}clustered{{end}}"/><c:varyColors val="0"/>
{{range .Series}}<c:ser><c:idx val="{{.Index}}"/><c:order val="{{.Index}}"/><c:tx><c:v>{{x .Name}}</c:v></c:tx>
<c:spPr><a:solidFill><a:srgbClr val="{{.Colour}}"/></a:solidFill></c:spPr><c:invertIfNegative val="0"/>
{{with .Error}}<c:errBars><c:errBarType val="both"/><c:errValType val="cust"/><c:noEndCap val="0"/><c:plus>{{template "data" .}}</c:plus><c:minus>{{template "data" .}}</c:minus></c:errBars>{{end}}
<c:cat>{{template "data" .X}}</c:cat><c:val>{{template "data" .Y}}</c:val></c:ser>{{end}}
<c:gapWidth val="60"/>{{if .Stacked}}<c:overlap val="100"/>{{end}}<c:axId val="1001"/><c:axId val="1002"/></c:barChart>
<c:catAx><c:axId val="1001"/><c:scaling><c:orientation val="minMax"/></c:scaling><c:delete val="0"/><c:axPos val="b"/><c:title>{{template "text" .XTitle}}</c:title>{{template "axis"}}<c:crossAx val="1002"/><c:crosses val="autoZero"/></c:catAx>
{{else}}
<c:scatterChart><c:scatterStyle val="lineMarker"/><c:varyColors val="0"/>
{{range .Series}}<c:ser><c:idx val="{{.Index}}"/><c:order val="{{.Index}}"/><c:tx><c:v>{{x .Name}}</c:v></c:tx>
<c:spPr><a:ln w="22225"><a:solidFill><a:srgbClr val="{{.Colour}}"/></a:solidFill><a:prstDash val="{{.Dash}}"/></a:ln></c:spPr><c:marker><c:symbol val="none"/></c:marker>
<c:xVal>{{template "data" .X}}</c:xVal><c:yVal>{{template "data" .Y}}</c:yVal><c:smooth val="0"/></c:ser>{{end}}
<c:axId val="1001"/><c:axId val="1002"/></c:scatterChart>
<c:valAx><c:axId val="1001"/><c:scaling><c:orientation val="minMax"/></c:scaling><c:delete val="0"/><c:axPos val="b"/><c:title>{{template "text" .XTitle}}</c:title>{{template "axis"}}<c:crossAx val="1002"/><c:crosses val="autoZero"/></c:valAx>
{{end}}
<c:valAx><c:axId val="1002"/><c:scaling><c:orientation val="minMax"/>{{if .YMax}}<c:max val="{{.YMax}}"/><c:min val="0"/>{{end}}</c:scaling><c:delete val="0"/><c:axPos val="l"/><c:majorGridlines><c:spPr><a:ln w="6350"><a:solidFill><a:srgbClr val="D9D9D9"/></a:solidFill></a:ln></c:spPr></c:majorGridlines><c:title>{{template "text" .YTitle}}</c:title>{{template "axis"}}<c:crossAx val="1001"/><c:crosses val="autoZero"/></c:valAx>
</c:plotArea><c:legend><c:legendPos val="b"/><c:overlay val="0"/></c:legend><c:plotVisOnly val="1"/><c:dispBlanksAs val="gap"/></c:chart></c:chartSpace>`)))
