package results

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzDocuments decodes arbitrary bytes as a run and as a row of statistics. It checks that accepted input is encoded
// in a stable form.
func FuzzDocuments(f *testing.F) {
	run := aRun(0, 10, 5)
	row := Row{Queue: "olaf", Valid: true, Stats: Stats{{run.Declared.Metric("aom_cluster_ns"), Statistic{Mean: 1, N: 1}}}}
	for _, document := range []any{run, row, &Bench{Schema: BenchSchema}} {
		raw, err := json.Marshal(document)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"counters":{"in":1,"in":2},"metrics":{"a":null}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		stays(t, raw, new(Run), new(Run))
		stays(t, raw, new(Row), new(Row))
		stays(t, raw, new(Bench), new(Bench))
		for _, leaf := range ListLeaves(raw) {
			if len(leaf[0]) > 4*len(raw)+64*len(raw) {
				t.Errorf("a path of %d bytes in a document of %d", len(leaf[0]), len(raw))
			}
		}
	})
}

// stays decodes raw into v, encodes v, and checks that decoding and encoding the result again does not change it.
func stays(t *testing.T, raw []byte, v, again any) {
	t.Helper()
	if json.Unmarshal(raw, v) != nil {
		return
	}
	first, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%T was read and can't be written: %v", v, err)
	}
	if err := json.Unmarshal(first, again); err != nil {
		t.Fatalf("%T was written and can't be read: %v\n%s", v, err, first)
	}
	if second, err := json.Marshal(again); err != nil || !bytes.Equal(first, second) {
		t.Errorf("%T does not stay: %v\n%s\n%s", v, err, first, second)
	}
}
