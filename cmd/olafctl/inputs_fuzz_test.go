package main

import (
	"testing"
	"time"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	devicecmd "github.com/olafctl/olaf/cmd/olafctl/device"
	runscmd "github.com/olafctl/olaf/cmd/olafctl/runs"
	schedulecmd "github.com/olafctl/olaf/cmd/olafctl/schedule"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	tablescmd "github.com/olafctl/olaf/cmd/olafctl/tables"
)

// FuzzWords checks that short flag values are usage errors or within their range.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"30d", "12h", "0.5d", "200000d", "1h2d", "1e-300d", "nand", "10.0.0.1", "::1", "1/3", "3/1", "0x8204", "0x8204=7", "0x8203=7", "1/500", "1%", "99.9%", "nan%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		refused := func(err error) bool {
			if err != nil && cli.ExitCode(err) != cli.ExitUsage {
				t.Errorf("%q: %v", text, err)
			}
			return err != nil
		}
		if age, err := runscmd.ParseAge(text); !refused(err) && (age <= 0 || time.Now().Add(-age).After(time.Now())) {
			t.Errorf("%q is an age of %v", text, age)
		}
		if a, err := tablescmd.ParseAddress(text); !refused(err) && !a.Is4() {
			t.Errorf("%q is %v", text, a)
		}
		if part, of, ok := sweepcmd.ParseShard(text); ok && (part < 1 || part > of) {
			t.Errorf("%q is part %d of %d", text, part, of)
		}
		if writes, err := devicecmd.ParseRawAssignments([]string{text}); !refused(err) && (writes[0].Addr%4 != 0 || writes[0].Value>>32 != 0) {
			t.Errorf("%q is %+v", text, writes[0])
		}
		if by, err := cli.TimeScale(text); !refused(err) && by < 1 {
			t.Errorf("%q divides by %d", text, by)
		}
		if v, err := schedulecmd.ParsePercent(text); err == nil && !(v >= 0 && v < 1) {
			t.Errorf("%q is a share of %v", text, v)
		}
	})
}
