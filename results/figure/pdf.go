package figure

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// pdf is a canvas for a PDF document with one page. Unlike gonum's canvas, it supports Unicode text and does not write
// the time, so that the same figure always produces the same bytes.
type pdf struct {
	doc    *fpdf.Fpdf
	height float64
	stack  []pdfState
	fonts  map[string]bool
	err    error
}

// pdfState is the state that Push saves. It consists of the mapping x' = a·x + c·y + e, y' = b·x + d·y + f, and the
// pen.
type pdfState struct {
	a, b, c, d, e, f float64
	width            vg.Length
}

func newPDF(width, height vg.Length, title string) *pdf {
	doc := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: width.Points(), Ht: height.Points()}})
	doc.SetMargins(0, 0, 0)
	doc.SetAutoPageBreak(false, 0)
	doc.SetCatalogSort(true)
	doc.SetCreationDate(time.Unix(0, 0).UTC())
	doc.SetModificationDate(time.Unix(0, 0).UTC())
	doc.SetProducer("olafctl", true)
	doc.SetTitle(title, true)
	doc.AddPage()
	p := &pdf{doc: doc, height: height.Points(), stack: []pdfState{{a: 1, d: 1}}, fonts: map[string]bool{}}
	vg.Initialize(p)
	return p
}

func (p *pdf) write(w io.Writer) error {
	if p.err != nil {
		return p.err
	}
	return p.doc.Output(w)
}

func (p *pdf) state() *pdfState { return &p.stack[len(p.stack)-1] }

// toPage converts a point to coordinates on the page, which count from the top.
func (p *pdf) toPage(at vg.Point) (x, y float64) {
	s := p.state()
	return s.a*at.X.Points() + s.c*at.Y.Points() + s.e, p.height - (s.b*at.X.Points() + s.d*at.Y.Points() + s.f)
}

// SetLineWidth implements vg.Canvas.
func (p *pdf) SetLineWidth(w vg.Length) {
	p.state().width = w
	p.doc.SetLineWidth(w.Points())
}

// SetLineDash implements vg.Canvas.
func (p *pdf) SetLineDash(pattern []vg.Length, offset vg.Length) {
	dots := make([]float64, len(pattern))
	for i, d := range pattern {
		dots[i] = d.Points()
	}
	p.doc.SetDashPattern(dots, offset.Points())
}

// SetColor implements vg.Canvas.
func (p *pdf) SetColor(c color.Color) {
	if c == nil {
		c = color.Black
	}
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	r, g, b := int(n.R), int(n.G), int(n.B)
	p.doc.SetFillColor(r, g, b)
	p.doc.SetDrawColor(r, g, b)
	p.doc.SetTextColor(r, g, b)
	p.doc.SetAlpha(float64(n.A)/math.MaxUint8, "Normal")
}

// Rotate implements vg.Canvas.
func (p *pdf) Rotate(by float64) {
	s := p.state()
	sin, cos := math.Sincos(by)
	s.a, s.b, s.c, s.d = s.a*cos+s.c*sin, s.b*cos+s.d*sin, s.c*cos-s.a*sin, s.d*cos-s.b*sin
}

// Translate implements vg.Canvas.
func (p *pdf) Translate(by vg.Point) {
	s := p.state()
	s.e += s.a*by.X.Points() + s.c*by.Y.Points()
	s.f += s.b*by.X.Points() + s.d*by.Y.Points()
}

// Scale implements vg.Canvas.
func (p *pdf) Scale(x, y float64) {
	s := p.state()
	s.a, s.b, s.c, s.d = s.a*x, s.b*x, s.c*y, s.d*y
}

// Push implements vg.Canvas.
func (p *pdf) Push() { p.stack = append(p.stack, *p.state()) }

// Pop implements vg.Canvas.
func (p *pdf) Pop() {
	p.stack = p.stack[:len(p.stack)-1]
	p.doc.SetLineWidth(p.state().width.Points())
}

// Stroke implements vg.Canvas.
func (p *pdf) Stroke(path vg.Path) {
	if p.state().width > 0 {
		p.draw(path, "D")
	}
}

// Fill implements vg.Canvas.
func (p *pdf) Fill(path vg.Path) { p.draw(path, "F") }

func (p *pdf) draw(path vg.Path, how string) {
	if len(path) == 0 {
		return
	}
	for _, step := range path {
		x, y := p.toPage(step.Pos)
		switch step.Type {
		case vg.MoveComp:
			p.doc.MoveTo(x, y)
		case vg.LineComp:
			p.doc.LineTo(x, y)
		case vg.CloseComp:
			p.doc.ClosePath()
		case vg.ArcComp:
			p.arc(&step)
		default:
			p.err = fmt.Errorf("%w: a curve of another kind", ErrFigure)
		}
	}
	p.doc.DrawPath(how)
}

// arc draws an arc as Bézier curves that each cover at most a quarter of a circle.
func (p *pdf) arc(a *vg.PathComp) {
	parts := max(math.Ceil(math.Abs(a.Angle)/(math.Pi/2)), 1)
	step := a.Angle / parts
	pull := 4.0 / 3 * math.Tan(step/4)
	at := func(angle, tangent float64) (x, y float64) {
		sin, cos := math.Sincos(angle)
		return p.toPage(vg.Point{X: a.Pos.X + a.Radius*vg.Length(cos-tangent*sin), Y: a.Pos.Y +
			a.Radius*vg.Length(sin+tangent*cos)})
	}
	p.doc.LineTo(at(a.Start, 0))
	for i := range int(parts) {
		from := a.Start + float64(i)*step
		x1, y1 := at(from, pull)
		x2, y2 := at(from+step, -pull)
		x, y := at(from+step, 0)
		p.doc.CurveBezierCubicTo(x1, y1, x2, y2, x, y)
	}
}

// FillString implements vg.Canvas.
func (p *pdf) FillString(face font.Face, at vg.Point, text string) {
	name := face.Name()
	if !p.fonts[name] {
		var raw bytes.Buffer
		if _, err := face.Face.WriteSourceTo(nil, &raw); err != nil {
			p.err = fmt.Errorf("%w: %w", ErrFigure, err)
			return
		}
		p.fonts[name] = true
		p.doc.AddUTF8FontFromBytes(name, "", raw.Bytes())
	}
	p.doc.SetFont(name, "", face.Font.Size.Points())
	x, y := p.toPage(at)
	s := p.state()
	p.doc.TransformBegin()
	p.doc.TransformRotate(math.Atan2(s.b, s.a)*180/math.Pi, x, y)
	p.doc.Text(x, y, text)
	p.doc.TransformEnd()
}

// DrawImage implements vg.Canvas; figures contain no images.
func (p *pdf) DrawImage(vg.Rectangle, image.Image) {
	p.err = fmt.Errorf("%w: it holds a picture", ErrFigure)
}
