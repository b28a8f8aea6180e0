package system

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// FuzzParseRanges parses arbitrary ranges: accepted ones fit a table and survive a round trip through text.
func FuzzParseRanges(f *testing.F) {
	for _, seed := range []string{"0-63", "0-63,64-127", " 1-1 ,2-3", "0-16777215", "0-16777216", "5-4", "-1-2", "1", "", "0-63,",
		"a-b", "+1-+2", "0-0x3f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ranges, err := ParseRanges(text)
		if err != nil {
			if !errors.Is(err, ErrOptions) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		var written []string
		for _, r := range ranges {
			if r.First < 0 || r.size() < 1 || r.Last >= maxSlots {
				t.Errorf("%q gives %+v", text, r)
			}
			written = append(written, r.String())
		}
		if again, err := ParseRanges(strings.Join(written, ",")); err != nil || !slices.Equal(again, ranges) {
			t.Errorf("%q is %v, which reads as %v, %v", text, ranges, again, err)
		}
	})
}
