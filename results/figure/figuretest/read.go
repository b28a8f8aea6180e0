// Package figuretest parses figures from their SVG and finds layout faults. These are labels that are cut or overlap,
// marks outside their axes, panels that are empty or too small, and more lines than can be distinguished. Tests call
// FindFaults; the drawing code does not depend on this package.
package figuretest

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
)

// box is a rectangle with horizontal and vertical sides, in page units. y increases downwards.
type box struct{ x0, y0, x1, y1 float64 }

func (b box) width() float64  { return b.x1 - b.x0 }
func (b box) height() float64 { return b.y1 - b.y0 }

// expand returns the box enlarged by a margin on all sides.
func (b box) expand(by float64) box { return box{b.x0 - by, b.y0 - by, b.x1 + by, b.y1 + by} }

func (b box) holds(o box) bool { return o.x0 >= b.x0 && o.x1 <= b.x1 && o.y0 >= b.y0 && o.y1 <= b.y1 }

func (b box) meets(o box) bool { return o.x0 < b.x1 && o.x1 > b.x0 && o.y0 < b.y1 && o.y1 > b.y0 }

func (b *box) add(x, y float64) {
	b.x0, b.y0, b.x1, b.y1 = min(b.x0, x), min(b.y0, y), max(b.x1, x), max(b.y1, y)
}

func emptyBox() box { return box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)} }

// label is a piece of text with the box that it occupies.
type label struct {
	text string
	box
}

// stroke is a path with its box and its look. A straight stroke connects the points from and to.
type stroke struct {
	box
	colour   string // colour of the line, or of the area if there is no line
	filled   bool
	faint    bool // the element is translucent, like bands and grids
	dash     string
	width    float64
	straight bool
	from, to [2]float64
}

// page is the content of an SVG figure.
type page struct {
	box     box
	labels  []label
	strokes []stroke
}

// affine is the mapping x' = a·x + c·y + e, y' = b·x + d·y + f.
type affine struct{ a, b, c, d, e, f float64 }

func (m affine) then(o affine) affine {
	return affine{m.a*o.a + m.c*o.b, m.b*o.a + m.d*o.b, m.a*o.c + m.c*o.d, m.b*o.c + m.d*o.d, m.a*o.e + m.c*o.f +
		m.e, m.b*o.e + m.d*o.f + m.f}
}

func (m affine) at(x, y float64) (float64, float64) {
	return m.a*x + m.c*y + m.e, m.b*x + m.d*y + m.f
}

var call = regexp.MustCompile(`(translate|scale|rotate)\(([^)]*)\)`)

// parseTransform parses the transform attribute of an SVG element.
func parseTransform(list string) (affine, error) {
	m := affine{a: 1, d: 1}
	for _, c := range call.FindAllStringSubmatch(list, -1) {
		v, err := parseNumbers(c[2])
		if err != nil || len(v) == 0 {
			return m, fmt.Errorf("transform %q: %v", list, err)
		}
		switch {
		case c[1] == "rotate":
			sin, cos := math.Sincos(v[0] * math.Pi / 180)
			m = m.then(affine{cos, sin, -sin, cos, 0, 0})
		case len(v) == 1: // the default for the second value is the first for a scale and 0 for a translation
			m = m.then(map[string]affine{"scale": {a: v[0], d: v[0]}, "translate": {1, 0, 0, 1, v[0], 0}}[c[1]])
		case c[1] == "scale":
			m = m.then(affine{a: v[0], d: v[1]})
		default:
			m = m.then(affine{1, 0, 0, 1, v[0], v[1]})
		}
	}
	return m, nil
}

func parseNumbers(list string) (v []float64, err error) {
	for _, field := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		x, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, err
		}
		v = append(v, x)
	}
	return v, nil
}

// parsePage parses an SVG figure that package figure has written.
func parsePage(r io.Reader) (*page, error) {
	p, stack := new(page), []affine{{a: 1, d: 1}}
	faces := font.NewCache(liberation.Collection())
	var text *written
	for d := xml.NewDecoder(r); ; {
		token, err := d.Token()
		if err == io.EOF {
			return p, p.check()
		}
		if err != nil {
			return nil, err
		}
		switch e := token.(type) {
		case xml.StartElement:
			attr := attributeMap(e)
			own, err := parseTransform(attr["transform"])
			if err != nil {
				return nil, err
			}
			at := stack[len(stack)-1].then(own)
			stack = append(stack, at)
			if err := p.begin(e.Name.Local, attr, at, &text); err != nil {
				return nil, err
			}
		case xml.CharData:
			if text != nil {
				text.text += string(e)
			}
		case xml.EndElement:
			stack = stack[:len(stack)-1]
			if e.Name.Local == "text" && text != nil {
				p.labels, text = append(p.labels, text.label(faces)), nil
			}
		}
	}
}

// begin handles the start of an element, whose coordinates are mapped by at. If the element is a text, begin sets
// *text.
func (p *page) begin(name string, attr map[string]string, at affine, text **written) (err error) {
	switch name {
	case "svg":
		v, err := parseNumbers(attr["viewBox"])
		if err != nil || len(v) != 4 {
			return fmt.Errorf("viewBox %q: %v", attr["viewBox"], err)
		}
		p.box = box{v[0], v[1], v[0] + v[2], v[1] + v[3]}
	case "path":
		return p.addPath(attr, at)
	case "text":
		*text, err = beginText(attr, at)
	}
	return err
}

// written is a text element that is being parsed.
type written struct {
	text string
	face font.Font
	at   affine
	x, y float64 // position before at
}

func beginText(attr map[string]string, at affine) (*written, error) {
	style := parseStyle(attr["style"])
	size, err := strconv.ParseFloat(strings.TrimSuffix(style["font-size"], "px"), 64)
	if err != nil {
		return nil, fmt.Errorf("size of a text: %v", err)
	}
	xy, err := parseNumbers(attr["x"] + "," + attr["y"])
	if err != nil || len(xy) != 2 {
		return nil, fmt.Errorf("place of a text: %v", err)
	}
	face := font.Font{Typeface: "Liberation", Variant: "Sans", Size: font.Length(size)}
	if style["font-weight"] == "bold" {
		face.Weight = 3
	}
	return &written{face: face, at: at, x: xy[0], y: xy[1]}, nil
}

// label returns the text with the box that it occupies.
func (w *written) label(faces *font.Cache) label {
	l := label{text: w.text, box: emptyBox()}
	found := faces.Lookup(w.face, w.face.Size)
	wide, size := found.Width(w.text).Points(), w.face.Size.Points()
	// In a browser, letters extend from a fifth of their size below the line to 0.9 of it above the line.
	for _, corner := range [][2]float64{{0, 0.2}, {wide, 0.2}, {0, -0.9}, {wide, -0.9}} {
		l.add(w.at.at(w.x+corner[0], w.y+corner[1]*size))
	}
	return l
}

func (p *page) check() error {
	if p.box.width() <= 0 || p.box.height() <= 0 {
		return fmt.Errorf("the page has no size")
	}
	return nil
}

func attributeMap(e xml.StartElement) map[string]string {
	m := map[string]string{}
	for _, a := range e.Attr {
		m[a.Name.Local] = a.Value
	}
	return m
}

func parseStyle(list string) map[string]string {
	m := map[string]string{}
	for part := range strings.SplitSeq(list, ";") {
		name, value, _ := strings.Cut(part, ":")
		m[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return m
}

var piece = regexp.MustCompile(`([MLAQCZ])([^MLAQCZ]*)`)

// addPath adds a path to the page. It ignores empty paths. Of curves it considers only the points.
func (p *page) addPath(attr map[string]string, at affine) error {
	s := stroke{box: emptyBox(), width: 1}
	points := 0
	for _, c := range piece.FindAllStringSubmatch(attr["d"], -1) {
		if c[1] == "Z" {
			continue
		}
		v, err := parseNumbers(c[2])
		if err != nil || len(v) < 2 {
			return fmt.Errorf("path %q: %v", attr["d"], err)
		}
		x, y := at.at(v[len(v)-2], v[len(v)-1])
		s.add(x, y)
		if points++; points == 1 {
			s.from = [2]float64{x, y}
		}
		s.to, s.straight = [2]float64{x, y}, points == 2 && c[1] == "L"
	}
	if points == 0 {
		return nil
	}
	style := parseStyle(attr["style"])
	s.filled = style["fill"] != "none"
	opacity := style["stroke-opacity"]
	s.colour, s.dash = style["stroke"], style["stroke-dasharray"]
	if s.filled {
		s.colour, opacity = style["fill"], style["fill-opacity"]
	}
	s.faint = opacity != "" && opacity != "1"
	if s.colour == "" || s.colour == "currentColor" {
		s.colour = black
	}
	if strings.Contains(s.colour, "-") { // gonum divides colours by the opacity
		return fmt.Errorf("path %q has the colour %q", attr["d"], s.colour)
	}
	if wide := style["stroke-width"]; wide != "" {
		var err error
		if s.width, err = strconv.ParseFloat(wide, 64); err != nil {
			return err
		}
	}
	p.strokes = append(p.strokes, s)
	return nil
}
