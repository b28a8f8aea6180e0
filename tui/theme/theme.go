// Package theme defines the appearance of styles. Themes use the terminal's sixteen colours, as set by the user, on a
// dark or a light background, or no colours. No information is conveyed by colour alone; panels add words and symbols.
package theme

import (
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"github.com/olafctl/olaf/tui/screen"
)

// Styles, named by purpose.
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
	Versus  // the queue that it is compared with
	Locked
	Caption
	Changed
	firstCluster
)

// clusterHues is the number of different colours for clusters. The number of a cluster is always shown as well.
const clusterHues = 6

// Styles is the number of styles.
const Styles = int(firstCluster) + clusterHues

// ClusterStyle returns the style for the number of a cluster.
func ClusterStyle(id int) screen.Style { return firstCluster + screen.Style(id%clusterHues) }

// QueueStyle returns the style for the queue with index i.
func QueueStyle(i int) screen.Style {
	if i == 0 {
		return Subject
	}
	return Versus
}

// Options selects a theme.
type Options struct {
	Light  bool // light background
	Colour bool // false uses only bold, faint and reverse
}

// look is the appearance of a style, as indexes into the sixteen colours. An index of -1 means the default colour.
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

// Theme is a palette in the form that screens use.
type Theme struct {
	options Options
	palette []string
}

// New returns the theme that the options select.
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

// Palette returns the terminal sequence for each style.
func (t *Theme) Palette() []string { return t.palette }

// hues lists the sixteen terminal colours for use in pictures.
var hues = [16]string{
	"#1d1f21", "#c0392b", "#3d8b3d", "#a8740f", "#2f6fb5", "#8e44ad", "#16808a", "#c5c8c6",
	"#7f8a93", "#ff6b68", "#8fd06a", "#f2c14e", "#6cb2f5", "#d38cf0", "#5fd3da", "#ffffff",
}

// Looks returns the appearance of each style in pictures, and the colours of text and background.
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
