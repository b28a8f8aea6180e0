package device

import (
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// FuzzAssignments checks that parseAssignments returns usage errors for bad input and never writes a bit outside the
// named register or field.
func FuzzAssignments(f *testing.F) {
	for _, seed := range []string{"queue.depth=8", "queue.mode.discipline=olaf", "queue.control.enable=1", "common.cycles=1", "queue.depth=", "=", "a.b.c.d=1", "queue.control.enable=2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		writes, err := parseAssignments([]string{text})
		if err != nil {
			if cli.ExitCode(err) != cli.ExitUsage {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		for _, a := range writes {
			if !a.wide && a.Value&^uint64(a.mask) != 0 {
				t.Errorf("%q writes %#x beside %#x", text, a.Value, a.mask)
			}
		}
	})
}
