package yamlfile_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/yamlfile"
	"github.com/olafctl/olaf/internal/yamlfile/yamlfiletest"
)

// everything has a field of every kind that files use.
type everything struct {
	Text  string            `json:"text"`
	Yes   bool              `json:"yes,omitempty"`
	Whole int               `json:"whole"`
	Seed  uint64            `json:"seed"`
	Share float64           `json:"share"`
	Rate  olaf.Rate         `json:"rate"`
	Later *int              `json:"later,omitempty"`
	Words []string          `json:"words,omitempty"`
	Named map[string]string `json:"named,omitempty"`
	Parts []everything      `json:"parts,omitempty"`
}

// FuzzDecode decodes arbitrary text into fields of every kind: each mistake names a line of the file, and accepted
// values survive a round trip.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"text: a\nyes: true\nwhole: -3\nseed: 18446744073709551615\nshare: 1e-3\nrate: 40G\nlater: 7\nwords: [a, b c]\nnamed: {x: 1, y: ~}\nparts:\n  - text: |\n      two\n      lines\n  - parts: [{whole: 0}]\n",
		"words: one\n", "text: 'a", "text: &a b\nwords: [*a]\n", "whole: 1\nwhole: 2\n", "parts: {a: b}\n",
		"named:\n  \"a\\nb\": [c]\n", "schema: x\n", "- a\n", "", "# none\n", "a: {b: ",
	} {
		f.Add(seed)
	}
	kind := errors.New("bad file")
	format := yamlfile.Format{Name: "file", Hint: "write one", Fail: func(line int, what string) error {
		return &yamlfile.Error{Kind: kind, File: "f.yaml", Line: line, What: what}
	}}
	f.Fuzz(func(t *testing.T, text string) {
		var first, second everything
		if err := format.Decode([]byte(text), &first); err != nil {
			yamlfiletest.CheckMistakes(t, err, kind, "f.yaml", text)
			return
		}
		again, err := yamlfile.Marshal(first)
		if err != nil {
			return // a number that JSON cannot express
		}
		if err := format.Decode(again, &second); err != nil {
			t.Fatalf("%v in\n%s", err, again)
		}
		if third, err := yamlfile.Marshal(second); err != nil || string(third) != string(again) || !sameFields(first, second) {
			t.Errorf("%#v came back as %#v, %v", first, second, err)
		}
	})
}

// sameFields works like reflect.DeepEqual, but treats empty and nil lists as equal.
func sameFields(a, b everything) bool {
	for _, e := range []*everything{&a, &b} {
		bare(e)
	}
	return reflect.DeepEqual(a, b)
}

func bare(e *everything) {
	if len(e.Words) == 0 {
		e.Words = nil
	}
	if len(e.Named) == 0 {
		e.Named = nil
	}
	if len(e.Parts) == 0 {
		e.Parts = nil
	}
	for i := range e.Parts {
		bare(&e.Parts[i])
	}
}
