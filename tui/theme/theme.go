// Package theme says what styles look like: the sixteen colours that every terminal has and its user chose, on a dark or
// a light ground, or no colour at all. Meaning never rests on colour alone; panels add words and marks.
package theme

import (
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/olafctl/olaf/tui/screen"
)

// Styles by what they are for.
const (
	Text screen.Style = iota
	Dim
	Strong
	Border
	Focus
	Title
	Good
	Warn
	Bad
	Key
	Selected
	Subject // the queue under test
	Versus  // the queue beside it
	Locked
	Caption
	Changed
	firstCluster
)

// clusterHues is how many clusters look different; their numbers always stand beside the colour.
const clusterHues = 6

// Styles is how many there are.
const Styles = int(firstCluster) + clusterHues

// Cluster is the style of a cluster's number.
func Cluster(id int) screen.Style { return firstCluster + screen.Style(id%clusterHues) }

// Queue is the style of the queue with an index.
func Queue(i int) screen.Style {
	if i == 0 {
		return Subject
	}
	return Versus
}

// Options choose a theme.
type Options struct {
	Light  bool // the ground is light
	Colour bool // false keeps bold, faint and reverse
}

// look is one style: colour numbers of the sixteen, or -1.
type look struct {
	dark, light            int
	bold, faint, backwards bool
}

var looks = [Styles]look{
	Text:             {dark: -1, light: -1},
	Dim:              {dark: 8, light: 8, faint: true},
	Strong:           {dark: -1, light: -1, bold: true},
	Border:           {dark: 8, light: 8, faint: true},
	Focus:            {dark: 14, light: 6, bold: true},
	Title:            {dark: 7, light: 0, bold: true},
	Good:             {dark: 10, light: 2},
	Warn:             {dark: 11, light: 3, bold: true},
	Bad:              {dark: 9, light: 1, bold: true},
	Key:              {dark: 14, light: 6, bold: true},
	Selected:         {dark: -1, light: -1, backwards: true},
	Subject:          {dark: 10, light: 2, bold: true},
	Versus:           {dark: 11, light: 3, bold: true},
	Locked:           {dark: 15, light: 0, bold: true},
	Caption:          {dark: -1, light: -1, bold: true, backwards: true},
	Changed:          {dark: 13, light: 5, bold: true},
	firstCluster:     {dark: 12, light: 4},
	firstCluster + 1: {dark: 13, light: 5},
	firstCluster + 2: {dark: 14, light: 6},
	firstCluster + 3: {dark: 10, light: 2},
	firstCluster + 4: {dark: 11, light: 3},
	firstCluster + 5: {dark: 9, light: 1},
}

// Theme is a palette, ready to be drawn with.
type Theme struct {
	options Options
	palette []string
}

// New makes a theme.
func New(o Options) *Theme {
	renderer := lipgloss.NewRenderer(io.Discard)
	renderer.SetColorProfile(termenv.ANSI)
	t := &Theme{options: o, palette: make([]string, Styles)}
	for i, l := range looks {
		style := renderer.NewStyle().Bold(l.bold).Faint(l.faint && !o.Colour).Reverse(l.backwards)
		if n := l.number(o.Light); n >= 0 && o.Colour {
			style = style.Foreground(lipgloss.ANSIColor(n))
		}
		t.palette[i], _, _ = strings.Cut(style.Render("x"), "x")
	}
	return t
}

func (l look) number(light bool) int {
	if light {
		return l.light
	}
	return l.dark
}

// Palette is every style's terminal sequence.
func (t *Theme) Palette() []string { return t.palette }

// hues are the sixteen colours of a picture.
var hues = [16]string{
	"#1d1f21", "#c0392b", "#3d8b3d", "#a8740f", "#2f6fb5", "#8e44ad", "#16808a", "#c5c8c6",
	"#7f8a93", "#ff6b68", "#8fd06a", "#f2c14e", "#6cb2f5", "#d38cf0", "#5fd3da", "#ffffff",
}

// Looks is the theme for pictures, with the colours of text and ground.
func (t *Theme) Looks() (styles []screen.Look, fore, back string) {
	fore, back = "#d5d8da", "#16191c"
	if t.options.Light {
		fore, back = "#24292e", "#ffffff"
	}
	styles = make([]screen.Look, Styles)
	for i, l := range looks {
		styles[i].Bold = l.bold
		if n := l.number(t.options.Light); n >= 0 && t.options.Colour {
			styles[i].Fore = hues[n]
		}
		if l.backwards {
			styles[i].Fore, styles[i].Back = back, fore
		}
	}
	return styles, fore, back
}
