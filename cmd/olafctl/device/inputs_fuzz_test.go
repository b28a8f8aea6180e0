package device

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// FuzzSnapshot checks that parseSnapshot returns usage errors for bad input, and that accepted input is written in the
// form in which it was read.
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
			_ = decodeFields(c.Name, c.Before)
		}
	})
}
