package rl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/trace"
)

// record runs c into a file and returns its bytes.
func record(t *testing.T, c Config, ctx context.Context, then Observer) ([]byte, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.trace")
	h, err := TraceHeader(&c, trace.Virtual, true)
	if err != nil {
		t.Fatal(err)
	}
	f, err := trace.CreateFile(path, h)
	if err != nil {
		t.Fatal(err)
	}
	_, trained := Train(ctx, c, &Recorder{File: f, Then: then})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, closer, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	grad, err := os.Open(path + trace.PayloadSuffix)
	if err != nil {
		t.Fatal(err)
	}
	defer grad.Close()
	p := trace.NewPayload(grad, r.Header())
	var u trace.Update
	for r.Next(&u) == nil {
		if _, err := p.Next(&u); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.End(); err != nil {
		t.Error(err)
	}
	return data, trained
}

func TestSameSeedSameFile(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	a, err := record(t, small(), context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := record(t, small(), context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(a) != string(b) {
		t.Error("the same training gave two different files")
	}
}

func TestInterruptedRecordingIsAWholeFile(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := record(t, small(), ctx, &stopper{after: 5, stop: cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestEmbeddedRecordingIsReproducible checks that a build of the same kind makes the embedded recording again, bit for
// bit.
func TestEmbeddedRecordingIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	r, closer, err := trace.Open("builtin:lander8")
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	c := Defaults()
	now, err := TraceHeader(&c, trace.Virtual, false)
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Header(); h.GOARCH != now.GOARCH || now.GOAMD64 != "" && h.GOAMD64 != now.GOAMD64 {
		t.Skipf("recorded on %s %s, this is %s %s", h.GOARCH, h.GOAMD64, now.GOARCH, now.GOAMD64)
	} else if h.Initial != now.Initial {
		t.Fatal("the initial weights differ")
	}
	c.Until = olaf.Duration(200 * olaf.Millisecond)
	_, all := run(t, c)
	if len(all) < 20 {
		t.Fatalf("only %d updates in 200 ms", len(all))
	}
	for i := range all {
		var want trace.Update
		if err := r.Next(&want); err != nil {
			t.Fatal(err)
		}
		if all[i] != want {
			t.Fatalf("update %d is %+v, was recorded as %+v", i, all[i], want)
		}
	}
}
