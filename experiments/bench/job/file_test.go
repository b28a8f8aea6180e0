package job

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFileRoundTrip checks that files survive a round trip, and that plain numbers are not quoted.
func TestFileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z0-9.,:%]{1,8}`)
		f := &File{
			Preset: word.Draw(t, "preset"), Options: rapid.MapOfN(rapid.StringMatching(`[a-z]{1,5}`), word, 1, 4).Draw(t, "options"),
			Runs: rapid.Ptr(rapid.IntRange(0, 9), true).Draw(t, "runs"), Seed: rapid.Ptr(rapid.Uint64Range(0, 9), true).Draw(t, "seed"),
			Expect: rapid.SliceOfN(word, 1, 3).Draw(t, "expect"),
		}
		text, err := f.Text()
		if err != nil {
			t.Fatal(err)
		}
		if !IsFile(text) {
			t.Fatalf("it does not call itself a file:\n%s", text)
		}
		again, err := ParseFile("", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		again.lines = nil
		if !reflect.DeepEqual(again, f) {
			t.Fatalf("%+v became %+v", f, again)
		}
	})
	f := &File{Preset: "lab", Options: Options{"workers": "4", "wrap": "true", "jobs": "vgg16:3"}}
	text, err := f.Text()
	for _, line := range []string{"    workers: 4\n", "    wrap: true\n", "    jobs: vgg16:3\n"} {
		if err != nil || !strings.Contains(string(text), line) {
			t.Errorf("%q is not in\n%s (%v)", line, text, err)
		}
	}
}

// TestFileRefusals checks that mistakes are reported with their lines, and that other files are not accepted.
func TestFileRefusals(t *testing.T) {
	head := "schema: " + fileSchema + "\n"
	for text, want := range map[string]string{
		head + "preset: lab\nrun: 3\n":           "f.yaml:3: job has no field \"run\"; did you mean \"runs\"?",
		head + "preset: [lab]\n":                 "f.yaml:2: ",
		head + "options: {workers: [1]}\n":       "f.yaml:2: ",
		head + "runs: many\n":                    "f.yaml:2: ",
		"schema: olafctl.topology/v1\nruns: 3\n": "f.yaml:1: schema",
	} {
		if _, err := ParseFile("f.yaml", []byte(text)); !errors.Is(err, ErrFile) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, other := range []string{"", "schema: olafctl.topology/v1", "duration: 3s", "\t", "- a"} {
		if IsFile([]byte(other)) {
			t.Errorf("%q is taken for a job", other)
		}
	}
	f, err := ParseFile("f.yaml", []byte(head+"options:\n  workers: 3\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.In("options.workers", errors.New("too few")); err.Error() != "f.yaml:3: too few" || f.In("runs", nil) != nil {
		t.Error(err)
	}
}
