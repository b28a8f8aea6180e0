package p4ctl_test

import (
	"testing"

	"github.com/olafctl/olaf/p4ctl"
)

// FuzzElectionID checks that an id that can be parsed is printed in a form that reads back as the same id.
func FuzzElectionID(f *testing.F) {
	for _, seed := range []string{"1:1", "0:0", "18446744073709551615:18446744073709551615", "7", "1:", ":1",
		"1:2:3", "-1:0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := p4ctl.ParseElectionID(text)
		if err != nil {
			return
		}
		if again, err := p4ctl.ParseElectionID(id.String()); err != nil || again != id {
			t.Errorf("%q is %v, which is written %q and reads as %v, %v", text, id, id, again, err)
		}
	})
}
