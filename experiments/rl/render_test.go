package rl

import (
	"bytes"
	"image/gif"
	"image/png"
	"os"
	"testing"
)

func TestPictureShowsSkyGroundAndHull(t *testing.T) {
	var w World
	w.Seed(42)
	w.Reset()
	for range 40 {
		w.Step(Coast)
	}
	picture := w.Picture()
	if got := picture.RGBAAt(5, 5); got != space {
		t.Errorf("the sky is %v", got)
	}
	if got := picture.RGBAAt(300, 395); got != moon {
		t.Errorf("the ground is %v", got)
	}
	at := w.hull.GetPosition()
	if got := picture.RGBAAt(int(at.X*scale), viewportH-int(at.Y*scale)); got != hull {
		t.Errorf("the hull is %v", got)
	}
	if path := os.Getenv("LANDER_PICTURE"); path != "" { // to look at by eye
		var b bytes.Buffer
		if err := png.Encode(&b, picture); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilmIsAGIF(t *testing.T) {
	film, _ := Film(0, func(Observation) Action { return Coast })
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, film); err != nil {
		t.Fatal(err)
	}
	back, err := gif.DecodeAll(&b)
	if err != nil {
		t.Fatal(err)
	}
	if len(back.Image) != len(film.Image) || len(back.Image) < 20 {
		t.Errorf("%d pictures, want %d and at least 20", len(back.Image), len(film.Image))
	}
}

func BenchmarkPicture(b *testing.B) {
	var w World
	w.Seed(42)
	w.Reset()
	for b.Loop() {
		w.Picture()
	}
}
