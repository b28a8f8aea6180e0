package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// FuzzSnapshot reads anything as kept registers: what is refused is the user's mistake, and what is taken is written as it was read.
func FuzzSnapshot(f *testing.F) {
	for _, seed := range []string{
		`{"schema":"olafctl.register-values/v1","device":{"kind":"twin"},"registers":[{"name":"queue.depth","value":"8"},{"name":"gone","value":""}]}`,
		`{"schema":"olafctl.register-values/v1"}`, `{"schema":"olafctl.register-values/v2"}`, `{"schema":"olafctl.register-values/v1","registers":{}}`, `{`, `null`,
		`{"schema":"olafctl.register-values/v1","registers":[{"name":"queue.depth","value":"0x10"},{"name":"queue.depth","value":"9"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		document, err := parseSnapshot("before.json", text)
		if err != nil {
			if cli.ExitCode(err) != cli.ExitUsage {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		written, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseSnapshot("again.json", written)
		if err != nil {
			t.Fatalf("%v in %s", err, written)
		}
		if second, err := json.Marshal(again); err != nil || !bytes.Equal(written, second) {
			t.Errorf("%s and %s, %v", written, second, err)
		}
		for _, c := range compareSnapshots(document, new(registerDocument)) {
			_ = decoded(c.Name, c.Before)
		}
	})
}

// FuzzWords reads anything as the short values of flags: what is refused is the user's mistake, what is taken is within its range.
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
		if age, err := parseAge(text); !refused(err) && (age <= 0 || time.Now().Add(-age).After(time.Now())) {
			t.Errorf("%q is an age of %v", text, age)
		}
		if a, err := parseAddress(text); !refused(err) && !a.Is4() {
			t.Errorf("%q is %v", text, a)
		}
		if part, of, ok := parseShard(text); ok && (part < 1 || part > of) {
			t.Errorf("%q is part %d of %d", text, part, of)
		}
		if writes, err := parseRawAssignments([]string{text}); !refused(err) && (writes[0].addr%4 != 0 || writes[0].value>>32 != 0) {
			t.Errorf("%q is %+v", text, writes[0])
		}
		if by, err := timeScale(text); !refused(err) && by < 1 {
			t.Errorf("%q divides by %d", text, by)
		}
		if v, err := percent(text); err == nil && !(v >= 0 && v < 1) {
			t.Errorf("%q is a share of %v", text, v)
		}
	})
}
