package job

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/internal/yamlfile/yamlfiletest"
)

// FuzzParseFile parses arbitrary job files: each mistake names a line of the file, and accepted ones survive a round
// trip.
func FuzzParseFile(f *testing.F) {
	for _, seed := range []string{
		"schema: olafctl.job-spec/v1\npreset: isw-lab\noptions: {workers: 4, loss: 1e-3, system: iswitch, x: '1', y: \"true\"}\nruns: 3\nseed: 18446744073709551615\nexpect: [done < 3]\n",
		"schema: olafctl.job-spec/v2\n", "preset: {a: b}\n", "runs: 0\nseed: -1\n", "options: [a]\n", "options: {a: \"b\\nc\"}\n", "",
		"runs: 1\nruns: 2\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ParseFile("f.yaml", []byte(text))
		if err != nil {
			yamlfiletest.CheckMistakes(t, err, ErrFile, "f.yaml", text)
			return
		}
		written, err := file.Text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseFile("again.yaml", written)
		if err != nil || !IsFile(written) {
			t.Fatalf("%v in\n%s", err, written)
		}
		if second, err := again.Text(); err != nil || !bytes.Equal(written, second) {
			t.Errorf("%s\nis read as\n%s, %v", written, second, err)
		}
	})
}

// FuzzSpec parses arbitrary stored jobs: accepted ones have a system and one of its modes, and survive a round trip.
func FuzzSpec(f *testing.F) {
	for _, seed := range []string{
		`{"system":"iswitch","mode":"sync","options":{},"network":{},"job":{}}`, `{"system":"atp","mode":"","options":{"Jobs":-1}}`,
		`{"system":"olaf"}`, `{"system":"iswitch","mode":"none"}`, `{`, `null`,
	} {
		f.Add([]byte(seed))
	}
	systems := system.All()
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := ReadSpec(systems, raw)
		if err != nil {
			return // not JSON, or not of a closed-loop system
		}
		if s.Mode == nil {
			t.Fatalf("%s without a mode", s.System.Name)
		}
		written, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadSpec(systems, written)
		if err != nil {
			t.Fatalf("%v in %s", err, written)
		}
		if second, err := json.Marshal(again); err != nil || !bytes.Equal(written, second) {
			t.Errorf("%s and %s, %v", written, second, err)
		}
	})
}
