package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
)

// FuzzKept reads arbitrary text as each stored type. It must be rejected with one plain line, or survive a round trip
// and be valid: a result or an error, a job with a place for its outcome, a presence that can be displayed.
func FuzzKept(f *testing.F) {
	key := strings.Repeat("0a", keyLength/2)
	for _, seed := range []string{
		`{"result":{"n":1},"by":{"host":"a","build":"b","finished":"2026-11-22T16:00:00Z","seconds":0.5}}`,
		`{"error":"it failed","by":{}}`, `{"by":{}}`, `{"result":1,"error":"x"}`,
		`{"key":"` + key + `","command":"toy","spec":{"n":"3"},"from":0,"runs":2}`, `{"key":"` + key[1:] + `","spec":null}`,
		`{"key":"` + key[1:] + `."}`,
		`{"role":"works","host":"a","build":"b","named":"b go1.26 amd64","at":"2026-11-22T16:00:00Z"}`,
		`{"role":"hands-out","host":"a\u001b[2J","at":"2026-11-22T16:00:00+01:00"}`,
		`{"role":"x"}`, `null`, `[]`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if a, err := readAnswer(raw); checkTaken(t, err) {
			checkRoundTrip(t, a, readAnswer)
		}
		a := outcomeOf(raw)
		if result, err := a.outcome(); (err == nil) != json.Valid(result) {
			t.Errorf("%q, %v", result, err)
		}
		if j, err := readJob(raw); checkTaken(t, err) {
			checkRoundTrip(t, j, readJob)
		}
		if p, err := readPresence(raw); checkTaken(t, err) {
			checkRoundTrip(t, p, readPresence)
		}
	})
}

// checkTaken checks that a rejected text gives one plain line.
func checkTaken(t *testing.T, err error) bool {
	if err != nil && (!errors.Is(err, ErrKept) || strings.ContainsFunc(err.Error(), unicode.IsControl)) {
		t.Errorf("%q is no ErrKept in one plain line", err)
	}
	return err == nil
}

// checkRoundTrip checks that an accepted value survives a round trip.
func checkRoundTrip[T any](t *testing.T, v T, read func([]byte) (T, error)) {
	t.Helper()
	written, err := json.Marshal(v) // without white space, which a result may contain
	if err != nil {
		t.Fatal(err)
	}
	back, err := read(written)
	if err != nil {
		t.Fatalf("%s: %v", written, err)
	}
	if again, err := json.Marshal(back); err != nil || !bytes.Equal(again, written) {
		t.Errorf("%s comes back as %s, %v", written, again, err)
	}
}
