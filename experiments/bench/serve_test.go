package bench

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga/playback"
)

func smallSpec() Spec {
	spec := DefaultSpec()
	spec.Runs = 2
	return spec
}

// TestBenchThroughAnAgent holds that numbers do not depend on who owns the device.
func TestBenchThroughAnAgent(t *testing.T) {
	address := testbedtest.Serve(t, testbed.ServeOptions{})
	here, err := Measure(context.Background(), smallSpec(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second bench finds what the first left
		there, err := Measure(context.Background(), smallSpec(), Options{Device: address, Access: testbedtest.Access()})
		if err != nil {
			t.Fatal(err)
		}
		want, errHere := json.Marshal(here.Bench.Rows)
		got, errThere := json.Marshal(there.Bench.Rows)
		if err := errors.Join(errHere, errThere); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestJournalOutlivesTheAgent restarts an agent and finds the tables of the bench before.
func TestJournalOutlivesTheAgent(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "tables.journal")
	var hashes []string
	for i := range 2 {
		s, err := testbed.Serve(context.Background(), "", testbed.ServeOptions{Listen: "unix:" + filepath.Join(t.TempDir(), "s"), Journal: journal})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := Measure(context.Background(), smallSpec(), Options{Device: "grpc:" + s.Target, Access: testbedtest.Access()}); err != nil {
				t.Fatal(err)
			}
		}
		bed, err := testbed.Open(context.Background(), "grpc:"+s.Target, testbed.OpenOptions{Access: testbedtest.Access()})
		if err != nil {
			t.Fatal(err)
		}
		tables, err := bed.Tables.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, tables.Hash())
		if len(tables.Workers) != 27 {
			t.Errorf("%d workers", len(tables.Workers))
		}
		if err := errors.Join(bed.Close(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if hashes[0] != hashes[1] {
		t.Error("the tables changed while the agent was away")
	}
}

func TestDevicesThatCannotBeOpened(t *testing.T) {
	access := testbed.Access{Devices: append(testbedtest.Devices(), testbed.Playback())}
	for address, want := range map[string]struct {
		kind error
		says string
	}{
		"nowhere:":           {testbed.ErrBackend, "grpc://HOST:PORT"},
		"playback:/nowhere":  {playback.ErrSession, "no such file"},
		"grpc:unix:/nowhere": {nil, "olafctl serve"},
	} {
		_, err := testbed.OpenDevice(context.Background(), address, testbed.DeviceOptions{Access: access})
		if err == nil || want.kind != nil && !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := testbed.Open(context.Background(), "pci:0000:3b:00.0", testbed.OpenOptions{Access: access}); !errors.Is(err, testbed.ErrBackend) {
		t.Errorf("a bench on a card: %v", err)
	}
}

// BenchmarkBenchThroughAgent is Table 1's four configurations for five seeds, in this process and through an agent.
func BenchmarkBenchThroughAgent(b *testing.B) {
	spec := DefaultSpec()
	spec.Runs = 5
	for name, address := range map[string]string{"twin": "twin:", "agent": testbedtest.Serve(b, testbed.ServeOptions{})} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Measure(context.Background(), spec, Options{Device: address, Access: testbedtest.Access(), Cards: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
