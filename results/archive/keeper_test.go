package archive

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestNewDocumentMustContainStored checks that a new document is accepted if it contains all of the stored one: new
// fields are named, reasons for missing values are ignored, and a missing value equals a stored 0 for zeroed metrics
// only.
func TestNewDocumentMustContainStored(t *testing.T) {
	const kept = `{"provenance":1,"seeds":[1,2],"n":{"held":{"mean":0,"n":2},"rate":{"mean":null,"n":0,"reason":"hung"}},"by_seed":[{"held":0,"rate":0.10}]}`
	for _, c := range []struct {
		name, made string
		at         string // where they differ
		news       string
	}{
		{"equal", kept, "", ""},
		{"made by another", strings.Replace(kept, `"provenance":1`, `"provenance":2`, 1), "", ""},
		{"another reason", strings.Replace(kept, "hung", "no table", 1), "", ""},
		{"a new field", strings.Replace(kept, `"n":{`, `"n":{"most":3,`, 1), "", "most"},
		{"nothing for 0", strings.Replace(strings.Replace(kept, `"mean":0`, `"mean":null`, 1), `"held":0,`, `"held":null,`, 1), "", ""},
		{"0 for nothing", strings.Replace(kept, `"mean":null`, `"mean":0`, 1), "n.rate.mean", ""},
		{"nothing for a number", strings.Replace(kept, `0.10`, `null`, 1), "rate", ""},
		{"as many digits", strings.Replace(kept, `0.10`, `0.1`, 1), "rate", ""},
		{"a number for 0", strings.Replace(kept, `"held":0,`, `"held":1,`, 1), "held", ""},
		{"one seed less", strings.Replace(kept, `[1,2]`, `[1]`, 1), "seeds", ""},
		{"a field less", strings.Replace(kept, `"seeds":[1,2],`, ``, 1), "seeds", ""},
		{"another kind", strings.Replace(kept, `[1,2]`, `{}`, 1), "seeds", ""},
	} {
		was, err := treeOf([]byte(kept))
		if err != nil {
			t.Fatal(err)
		}
		is, err := treeOf([]byte(c.made))
		if err != nil {
			t.Fatal(err)
		}
		s := sameness{zeroed: map[string]bool{"held": true}, news: map[string]bool{}}
		at, same := s.compareObjects("", was, is)
		if news := strings.Join(slices.Sorted(maps.Keys(s.news)), " "); same != (c.at == "") || !strings.HasSuffix(at, c.at) ||
			news != c.news {
			t.Errorf("%s: same %v, at %q, new %q", c.name, same, at, news)
		}
	}
}
