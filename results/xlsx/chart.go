package xlsx

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/olafctl/olaf/results/table"
	"github.com/tealeg/xlsx/v3"
)

const (
	xmlHeader = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
)

// addCharts adds a drawing with all charts to the sheet with the given number.
func addCharts(parts map[string]string, placed []place, sheet int) error {
	var overrides, anchors, rels strings.Builder
	for i := range placed {
		chart := fmt.Sprintf("chart%d.xml", i+1)
		body, err := chartXML(placed[i].sheet, &placed[i].chart)
		if err != nil {
			return err
		}
		parts["xl/charts/"+chart] = body
		anchors.WriteString(placed[i].anchorXML(i))
		fmt.Fprintf(&rels, `<Relationship Id="rId%d" Type="%s/chart" Target="../charts/%s"/>`, i+1, relations, chart)
		addOverride(&overrides, "/xl/charts/"+chart, "application/vnd.openxmlformats-officedocument.drawingml.chart+xml")
	}
	parts["xl/drawings/drawing1.xml"] = xmlHeader +
		`<xdr:wsDr xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main">` + anchors.String() + `</xdr:wsDr>`
	parts["xl/drawings/_rels/drawing1.xml.rels"] = relationsXML(rels.String())
	addOverride(&overrides, "/xl/drawings/drawing1.xml", "application/vnd.openxmlformats-officedocument.drawing+xml")
	name := fmt.Sprintf("sheet%d.xml", sheet)
	if err := appendTo(parts, sheet, `<drawing r:id="rId1"/>`); err != nil {
		return err
	}
	parts["xl/worksheets/_rels/"+name+
		".rels"] = relationsXML(fmt.Sprintf(
		`<Relationship Id="rId1" Type="%s/drawing" Target="../drawings/drawing1.xml"/>`, relations))
	const types = "[Content_Types].xml"
	parts[types] = strings.Replace(parts[types], "</Types>", overrides.String()+"</Types>", 1)
	return nil
}

// appendTo adds XML elements to the end of the sheet with the given number.
func appendTo(parts map[string]string, sheet int, elements string) error {
	name := fmt.Sprintf("xl/worksheets/sheet%d.xml", sheet)
	body, ok := strings.CutSuffix(parts[name], "</worksheet>")
	if !ok {
		return fmt.Errorf("%w: %s has an unexpected end", ErrBook, name)
	}
	parts[name] = body + elements + "</worksheet>"
	return nil
}

func addOverride(b *strings.Builder, part, contentType string) {
	fmt.Fprintf(b, `<Override PartName="%s" ContentType="%s"/>`, part, contentType)
}

func relationsXML(body string) string {
	return xmlHeader + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
		body + `</Relationships>`
}

func coreProperties(title string) string {
	return xmlHeader + `<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>` +
		escapeXML(title) + `</dc:title><dc:creator>olafctl</dc:creator></cp:coreProperties>`
}

func escapeXML(s string) string {
	var b bytes.Buffer
	// Writing to a buffer cannot fail.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// anchorXML returns the XML that anchors the k-th chart at its place.
func (p *place) anchorXML(k int) string {
	return fmt.Sprintf(`<xdr:twoCellAnchor><xdr:from><xdr:col>%d</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>%d</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:from>`+
		`<xdr:to><xdr:col>%d</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>%d</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:to>`+
		`<xdr:graphicFrame macro=""><xdr:nvGraphicFramePr><xdr:cNvPr id="%d" name="Chart %d" descr="%s"/><xdr:cNvGraphicFramePr/></xdr:nvGraphicFramePr>`+
		`<xdr:xfrm><a:off x="0" y="0"/><a:ext cx="0" cy="0"/></xdr:xfrm><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/chart">`+
		`<c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:r="%s" r:id="rId%d"/></a:graphicData></a:graphic></xdr:graphicFrame><xdr:clientData/></xdr:twoCellAnchor>`,
		p.column, p.row, p.column+chartColumns, p.row+chartRows, k+2, k+1, escapeXML(p.chart.Title), relations, k+1)
}

// chartModel is the input for the chart's XML template.
type chartModel struct {
	Title, XTitle, YTitle string
	Kind                  string // bar or scatter
	Stacked               bool
	YMax                  float64
	Series                []seriesModel
	Paper                 []seriesModel // published numbers, as crosses
}

type seriesModel struct {
	Index                      int
	Name, Colour, Dash, Marker string
	X, Y, Error                *rangeModel
}

// Dashes and markers distinguish series without colours.
var (
	dashes  = []string{"solid", "dash", "sysDot", "dashDot", "lgDash", "lgDashDotDot"}
	markers = []string{"circle", "square", "triangle", "diamond", "dot", "plus"}
)

// manyPoints is the number of points from which a line is drawn without markers.
const manyPoints = 60

// rangeModel is a range of cells with its values. The values are included so that a viewer can draw the chart without
// calculating.
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
	m := chartModel{Title: c.Title, XTitle: c.XTitle, YTitle: c.YTitle, Kind: "bar",
		Stacked: c.Kind == table.Stacked, YMax: c.YMax}
	if c.Kind == table.Steps || c.Kind == table.Lines {
		m.Kind = "scatter"
	}
	from, to := rowsOf(s, c)
	for i, series := range c.Series {
		colour := table.Palette[i%len(table.Palette)]
		out := seriesModel{Index: i, Name: series.Name, Colour: fmt.Sprintf("%02X%02X%02X", colour.R, colour.G,
			colour.B), Dash: dashes[i%len(dashes)],
			Marker: markers[i%len(markers)], X: rangeOf(s, from, to, c.X), Y: rangeOf(s, from, to, series.Column)}
		if series.X > 0 {
			out.X = rangeOf(s, from, to, series.X)
		}
		if c.Kind == table.Steps || len(s.Rows) > manyPoints {
			out.Marker = "none"
		}
		if series.ErrorColumn > 0 && c.Kind != table.Stacked {
			out.Error = rangeOf(s, from, to, series.ErrorColumn)
		}
		m.Series = append(m.Series, out)
		if series.PaperColumn > 0 {
			m.Paper = append(m.Paper, seriesModel{Index: len(c.Series) + i, Name: "paper", X: out.X,
				Y: rangeOf(s, from, to, series.PaperColumn)})
		}
	}
	var b strings.Builder
	b.WriteString(xmlHeader)
	err := chartTemplate.Execute(&b, m)
	return b.String(), err
}

// rowsOf returns the range of rows in which any series of the chart has a number. If there are none, it returns the
// first row.
func rowsOf(s *table.Sheet, c *table.Chart) (from, to int) {
	from, to = -1, 1
	for i, row := range s.Rows[:min(len(s.Rows), maxRows)] {
		if slices.ContainsFunc(c.Series, func(one table.Series) bool { return row[one.Column].Kind == table.Number }) {
			if to = i + 1; from < 0 {
				from = i
			}
		}
	}
	return max(from, 0), to
}

// rangeOf returns the cells of one column in the rows from … to.
func rangeOf(s *table.Sheet, from, to, column int) *rangeModel {
	letter := xlsx.ColIndexToLetters(column)
	r := &rangeModel{Ref: fmt.Sprintf("%s!$%s$%d:$%s$%d", quoteSheet(s.Name), letter, from+2, letter, to+1),
		Count: to - from}
	for i := range min(to, len(s.Rows)) - from {
		switch v := s.Rows[from+i][column]; v.Kind {
		case table.String:
			r.Text = true
			r.Points = append(r.Points, pointModel{i, v.Text})
		case table.Number:
			r.Points = append(r.Points, pointModel{i, strconv.FormatFloat(v.Number, 'g', -1, 64)})
		}
	}
	return r
}

var chartTemplate = template.Must(template.New("chart").Funcs(template.FuncMap{"x": escapeXML}).Parse(strings.NewReplacer("\n", "", "\t", "").Replace(`
{{define "text"}}<c:tx><c:rich><a:bodyPr/><a:p><a:pPr><a:defRPr sz="1000" b="0"/></a:pPr><a:r><a:rPr lang="en-GB" sz="1000" b="0"/><a:t>{{x .}}</a:t></a:r></a:p></c:rich></c:tx><c:overlay val="0"/>{{end}}
{{define "points"}}<c:ptCount val="{{.Count}}"/>{{range .Points}}<c:pt idx="{{.Index}}"><c:v>{{x .Value}}</c:v></c:pt>{{end}}{{end}}
{{define "data"}}{{if .Text}}<c:strRef><c:f>{{x .Ref}}</c:f><c:strCache>{{template "points" .}}</c:strCache></c:strRef>
{{else}}<c:numRef><c:f>{{x .Ref}}</c:f><c:numCache><c:formatCode>General</c:formatCode>{{template "points" .}}</c:numCache></c:numRef>{{end}}{{end}}
{{define "errors"}}<c:errBarType val="both"/><c:errValType val="cust"/><c:noEndCap val="0"/><c:plus>{{template "data" .}}</c:plus><c:minus>{{template "data" .}}</c:minus></c:errBars>{{end}}
{{define "head"}}<c:idx val="{{.Index}}"/><c:order val="{{.Index}}"/><c:tx><c:v>{{x .Name}}</c:v></c:tx>{{end}}
{{define "cross"}}<c:spPr><a:ln w="22225"><a:noFill/></a:ln></c:spPr><c:marker><c:symbol val="x"/><c:size val="8"/><c:spPr><a:noFill/><a:ln w="19050"><a:solidFill><a:srgbClr val="000000"/></a:solidFill></a:ln></c:spPr></c:marker>{{end}}

{{define "axis"}}<c:majorTickMark val="out"/><c:minorTickMark val="none"/><c:tickLblPos val="low"/>{{end}}
<c:chartSpace xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">
<c:roundedCorners val="0"/>
<c:chart><c:title>{{template "text" .Title}}</c:title><c:autoTitleDeleted val="0"/><c:plotArea><c:layout/>
{{if eq .Kind "bar"}}
<c:barChart><c:barDir val="col"/><c:grouping val="{{if .Stacked}}stacked{{else}}clustered{{end}}"/><c:varyColors val="0"/>
{{range .Series}}<c:ser>{{template "head" .}}
<c:spPr><a:solidFill><a:srgbClr val="{{.Colour}}"/></a:solidFill></c:spPr><c:invertIfNegative val="0"/>
{{with .Error}}<c:errBars>{{template "errors" .}}{{end}}
<c:cat>{{template "data" .X}}</c:cat><c:val>{{template "data" .Y}}</c:val></c:ser>{{end}}
<c:gapWidth val="60"/>{{if .Stacked}}<c:overlap val="100"/>{{end}}<c:axId val="1001"/><c:axId val="1002"/></c:barChart>
{{if .Paper}}<c:lineChart><c:grouping val="standard"/><c:varyColors val="0"/>
{{range .Paper}}<c:ser>{{template "head" .}}{{template "cross"}}<c:cat>{{template "data" .X}}</c:cat><c:val>{{template "data" .Y}}</c:val><c:smooth val="0"/></c:ser>{{end}}
<c:marker val="1"/><c:axId val="1001"/><c:axId val="1002"/></c:lineChart>{{end}}
<c:catAx><c:axId val="1001"/><c:scaling><c:orientation val="minMax"/></c:scaling><c:delete val="0"/><c:axPos val="b"/>{{with .XTitle}}<c:title>{{template "text" .}}</c:title>{{end}}{{template "axis"}}<c:crossAx val="1002"/><c:crosses val="autoZero"/></c:catAx>
{{else}}
<c:scatterChart><c:scatterStyle val="lineMarker"/><c:varyColors val="0"/>
{{range .Series}}<c:ser>{{template "head" .}}
<c:spPr><a:ln w="22225"><a:solidFill><a:srgbClr val="{{.Colour}}"/></a:solidFill><a:prstDash val="{{.Dash}}"/></a:ln></c:spPr>
<c:marker><c:symbol val="{{.Marker}}"/>{{if ne .Marker "none"}}<c:size val="6"/><c:spPr><a:solidFill><a:srgbClr val="{{.Colour}}"/></a:solidFill></c:spPr>{{end}}</c:marker>
{{with .Error}}<c:errBars><c:errDir val="y"/>{{template "errors" .}}{{end}}
<c:xVal>{{template "data" .X}}</c:xVal><c:yVal>{{template "data" .Y}}</c:yVal><c:smooth val="0"/></c:ser>{{end}}
{{range .Paper}}<c:ser>{{template "head" .}}{{template "cross"}}<c:xVal>{{template "data" .X}}</c:xVal><c:yVal>{{template "data" .Y}}</c:yVal><c:smooth val="0"/></c:ser>{{end}}
<c:axId val="1001"/><c:axId val="1002"/></c:scatterChart>
<c:valAx><c:axId val="1001"/><c:scaling><c:orientation val="minMax"/></c:scaling><c:delete val="0"/><c:axPos val="b"/><c:title>{{template "text" .XTitle}}</c:title>{{template "axis"}}<c:crossAx val="1002"/><c:crosses val="autoZero"/></c:valAx>
{{end}}
<c:valAx><c:axId val="1002"/><c:scaling><c:orientation val="minMax"/>{{if .YMax}}<c:max val="{{.YMax}}"/><c:min val="0"/>{{end}}</c:scaling><c:delete val="0"/><c:axPos val="l"/><c:majorGridlines><c:spPr><a:ln w="6350"><a:solidFill><a:srgbClr val="D9D9D9"/></a:solidFill></a:ln></c:spPr></c:majorGridlines><c:title>{{template "text" .YTitle}}</c:title>{{template "axis"}}<c:crossAx val="1001"/><c:crosses val="autoZero"/></c:valAx>
</c:plotArea><c:legend><c:legendPos val="b"/><c:overlay val="0"/></c:legend><c:plotVisOnly val="1"/><c:dispBlanksAs val="gap"/></c:chart></c:chartSpace>`)))
