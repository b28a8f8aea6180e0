package rl

import (
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"math"

	"github.com/ByteArena/box2d"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// frameDelay is the time between two pictures of an animation, in hundredths of a second. An animation shows every
// second step.
const frameDelay = 4

// The colours of an animation.
var (
	space = color.RGBA{12, 14, 28, 255}
	moon  = color.RGBA{214, 214, 204, 255}
	hull  = color.RGBA{128, 102, 230, 255}
	leg   = color.RGBA{102, 77, 200, 255}
	flag  = color.RGBA{232, 200, 32, 255}
	flame = color.RGBA{255, 128, 48, 255}
)

// Picture draws the world with 600 x 400 pixels. It is meant for viewing only, because one picture takes as long as
// dozens of steps.
func (w *World) Picture() *image.RGBA {
	canvas := vgimg.NewWith(vgimg.UseWH(viewportW, viewportH), vgimg.UseDPI(72), vgimg.UseBackgroundColor(space))
	w.drawGround(canvas)
	w.drawFlags(canvas)
	if w.hull != nil {
		w.drawFlame(canvas)
		for _, body := range w.legs {
			drawBody(canvas, body, leg)
		}
		drawBody(canvas, w.hull, hull)
	}
	return canvas.Image().(*image.RGBA) // vgimg always draws on an image.RGBA
}

func (w *World) drawGround(canvas vg.Canvas) {
	points := [][2]float64{{0, 0}}
	points = append(points, w.terrain[:]...)
	fillPolygon(canvas, append(points, [2]float64{worldW, 0}), moon)
}

// drawFlags marks the ends of the landing pad.
func (w *World) drawFlags(canvas vg.Canvas) {
	for _, i := range [2]int{chunks/2 - 1, chunks/2 + 1} {
		x := worldW / (chunks - 1) * float64(i)
		const pole = 50 / scale
		fillPolygon(canvas, [][2]float64{{x, padY}, {x + 0.05, padY}, {x + 0.05, padY + pole}, {x, padY + pole}}, moon)
		fillPolygon(canvas, [][2]float64{{x, padY + pole}, {x, padY + pole - 10/scale}, {x + 25/scale, padY + pole - 5/scale}}, flag)
	}
}

// drawFlame draws the flame of the engine that fired in the last step.
func (w *World) drawFlame(canvas vg.Canvas) {
	var outline [][2]float64
	switch w.last {
	case FireMain:
		outline = [][2]float64{{-5, -10}, {5, -10}, {0, -32}}
	case FireLeft:
		outline = [][2]float64{{-16, 11}, {-16, 5}, {-28, 8}}
	case FireRight:
		outline = [][2]float64{{16, 11}, {16, 5}, {28, 8}}
	default:
		return
	}
	for i, p := range outline {
		at := w.hull.GetWorldPoint(box2d.MakeB2Vec2(p[0]/scale, p[1]/scale))
		outline[i] = [2]float64{at.X, at.Y}
	}
	fillPolygon(canvas, outline, flame)
}

func drawBody(canvas vg.Canvas, body *box2d.B2Body, paint color.Color) {
	shape := body.GetFixtureList().GetShape().(*box2d.B2PolygonShape)
	var outline [][2]float64
	for _, v := range shape.M_vertices[:shape.M_count] {
		at := body.GetWorldPoint(v)
		outline = append(outline, [2]float64{at.X, at.Y})
	}
	fillPolygon(canvas, outline, paint)
}

// fillPolygon fills the polygon with the given outline, whose coordinates are in metres.
func fillPolygon(canvas vg.Canvas, outline [][2]float64, paint color.Color) {
	var path vg.Path
	for i, p := range outline {
		at := vg.Point{X: vg.Length(p[0] * scale), Y: vg.Length(p[1] * scale)}
		if i == 0 {
			path.Move(at)
			continue
		}
		path.Line(at)
	}
	path.Close()
	canvas.SetColor(paint)
	canvas.Fill(path)
}

// Fly plays one episode from seed and returns its reward and its number of steps. pilot chooses the actions. If see is
// not nil, it is called after every step.
func Fly(seed uint64, pilot func(Observation) Action, see func(*World)) (reward float64, steps int) {
	var w World
	w.Seed(seed)
	for s := w.Reset(); ; {
		next, r, terminated, truncated := w.Step(pilot(s))
		s = next
		reward += r
		if see != nil {
			see(&w)
		}
		if terminated || truncated {
			return reward, w.steps
		}
	}
}

// Film plays one episode like Fly. It returns an animation at true speed, with every second step, and the reward.
func Film(seed uint64, pilot func(Observation) Action) (*gif.GIF, float64) {
	palette := shades(space, moon, hull, leg, flag, flame)
	var film gif.GIF
	reward, _ := Fly(seed, pilot, func(w *World) {
		if w.steps%2 != 0 {
			return
		}
		picture := w.Picture()
		frame := image.NewPaletted(picture.Bounds(), palette)
		draw.Draw(frame, frame.Bounds(), picture, image.Point{}, draw.Src)
		film.Image = append(film.Image, frame)
		film.Delay = append(film.Delay, frameDelay)
	})
	return &film, reward
}

// shades returns a palette for drawing with soft edges: the ground colour, and every other colour both at full strength
// and mixed half with the ground colour.
func shades(ground color.RGBA, others ...color.RGBA) color.Palette {
	palette := color.Palette{ground}
	for _, c := range others {
		half := func(a, b uint8) uint8 { return uint8(math.Round((float64(a) + float64(b)) / 2)) }
		palette = append(palette, c, color.RGBA{half(c.R, ground.R), half(c.G, ground.G), half(c.B, ground.B), 255})
	}
	return palette
}
