package screen

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

func TestTextIsCutAtEdges(t *testing.T) {
	var s Screen
	s.Resize(10, 3)
	r := s.All().Sub(2, 1, 5, 1)
	r.Text(-2, 0, 0, "abcdefghijkl")
	r.Text(0, 5, 0, "below")
	if got := s.Text(); got != "\n  cdefg\n\n" {
		t.Errorf("%q", got)
	}
}

func TestWideAndControlCharacters(t *testing.T) {
	var s Screen
	s.Resize(6, 1)
	next := s.All().Text(0, 0, 0, "a漢\tb漢")
	if got := s.Text(); got != "a漢 b\n" && got != "a漢 b \n" || next != 6 {
		t.Errorf("%q, then column %d", got, next)
	}
}

func TestANSIEndsEveryStyle(t *testing.T) {
	var s Screen
	s.Resize(4, 2)
	s.All().Text(0, 0, 1, "ab")
	s.All().Text(2, 0, 2, "cd")
	if got, want := s.ANSI([]string{"", "<1>", "<2>"}), "<1>ab\x1b[0m<2>cd\x1b[0m\n    "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSVGIsXMLAndKeepsTheText(t *testing.T) {
	var s Screen
	s.Resize(30, 2)
	s.All().Text(0, 0, 1, "a <b> & c   far")
	s.All().Box(Thin, 1, 0, "")
	picture := s.SVG("a < b", []Look{{}, {Fore: "#fff", Bold: true}, {Back: "#000"}}, "#111", "#222")
	d := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, picture)
		}
	}
}

func FuzzDraw(f *testing.F) {
	f.Add(10, 5, 2, 2, 4, 2, "hello")
	f.Add(-1, 0, -5, 99, 1<<40, -2, "漢字\x00\xff")
	f.Fuzz(func(t *testing.T, w, h, x, y, sw, sh int, text string) {
		var s Screen
		s.Resize(w%500, h%200)
		r := s.All().Sub(x, y, sw, sh)
		r.Box(Heavy, 1, 2, text).Text(x%50, y%50, 1, text)
		r.TextRight(r.W, 0, 0, text)
		r.Restyle(3)
		if n := strings.Count(s.Text(), "\n"); n != max(h%200, 0) {
			t.Errorf("%d lines of %d", n, h%200)
		}
		s.ANSI(nil)
		s.SVG("", nil, "", "")
	})
}
