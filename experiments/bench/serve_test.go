package bench

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf/backends"
	"github.com/olafctl/olaf/backends/backendstest"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/playback"
	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

func smallSpec() Spec {
	spec := usualSpec()
	spec.Runs = 2
	return spec
}

// TestBenchThroughAnAgent checks that numbers do not depend on the device's owner.
func TestBenchThroughAnAgent(t *testing.T) {
	address := backendstest.ServeTwin(t, testbed.ServeOptions{})
	here, err := MeasureSpec(context.Background(), smallSpec(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second bench finds the first one's remains
		there, err := MeasureSpec(context.Background(), smallSpec(), Options{Device: address, Access: backendstest.TestAccess()})
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

// hosting is a twin whose programs serve closed-loop hosts only.
type hosting struct{ *twin.Twin }

func (hosting) AddsUpdates() bool { return false }

// TestAgentChecksProgramsBeforeWrites checks that an agent's device is asked whether updates pass its programs before
// anything is written.
func TestAgentChecksProgramsBeforeWrites(t *testing.T) {
	built := programs.AllPrograms()
	row := testbed.LocalDevice(testbed.Device{
		Prefix: "waits:", Abilities: testbed.HasTables | testbed.ClosesLoop | testbed.TakesPrograms, Programs: built,
	}, func(context.Context, string, testbed.OpenOptions) (*testbed.Parts, error) {
		backend := new(agent.Embedded)
		card, err := twin.New(twin.Config{Tables: testbed.TablesOf(backend), Programs: built})
		return &testbed.Parts{Cards: []testbed.Card{{Device: hosting{card}, Tap: card}}, Tables: backend, Profile: p4.Twin()}, err
	})
	access := testbed.Access{Devices: testbed.Devices{row, testbed.AgentDevice(built...)}}
	s, err := testbed.ServeDevice(t.Context(), "waits:",
		testbed.ServeOptions{Listen: "127.0.0.1:0", Device: testbed.DeviceOptions{Access: access}})
	if err != nil {
		t.Fatal(err)
	}
	spec := smallSpec()
	spec.Queue, spec.Versus, spec.H = "olaf", "iswitch", new(3)
	_, err = MeasureSpec(t.Context(), spec, Options{Device: "grpc://" + s.Target, Access: access})
	var refused *testbed.Unsupported
	if !errors.As(err, &refused) || refused.Lacks != testbed.NeitherWay || refused.Able.Forms() != "waits:" {
		t.Errorf("refused with %v", err)
	}
	d, err := testbed.OpenDevice(t.Context(), "grpc://"+s.Target, testbed.DeviceOptions{Access: access, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []uint32{regmap.CommonErrors, regmap.AggregatorProgram, regmap.GeneratorFlows, regmap.GeneratorDescriptors} {
		if n, err := d.Read32(at); n != 0 || err != nil {
			t.Errorf("register %#x was touched: %#x, %v", at, n, err)
		}
	}
	spec.Versus, spec.H = "", nil
	_, err = MeasureSpec(t.Context(), spec, Options{Device: "grpc://" + s.Target, Access: access})
	if err := errors.Join(err, d.Close(), s.Close()); err != nil {
		t.Errorf("without a program: %v", err)
	}
}

// TestJournalOutlivesTheAgent checks that a restarted agent has the previous bench's tables.
func TestJournalOutlivesTheAgent(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "tables.journal")
	var hashes []string
	for i := range 2 {
		s, err := testbed.ServeDevice(context.Background(), "",
			testbed.ServeOptions{Listen: "unix:" + filepath.Join(t.TempDir(), "s"), Journal: journal})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := MeasureSpec(context.Background(), smallSpec(),
				Options{Device: "grpc:" + s.Target, Access: backendstest.TestAccess()}); err != nil {
				t.Fatal(err)
			}
		}
		bed, err := testbed.OpenTestbed(context.Background(), "grpc:"+s.Target, testbed.OpenOptions{Access: backendstest.TestAccess()})
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
	var bus pcie.Bus
	access := testbed.Access{Devices: testbed.Devices{backends.CardDevice(&bus), testbed.AgentDevice(), backends.PlaybackDevice()}}
	for address, want := range map[string]struct {
		kind error
		says string
	}{
		"nowhere:":           {testbed.ErrBackend, "grpc://HOST:PORT"},
		"playback:/nowhere":  {playback.ErrSession, "no such file"},
		"grpc:unix:/nowhere": {nil, "olafctl device serve"},
	} {
		_, err := testbed.OpenDevice(context.Background(), address, testbed.DeviceOptions{Access: access})
		if err == nil || want.kind != nil && !errors.Is(err, want.kind) || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, c := range []struct {
		name string
		bus  pcie.Bus
		want error
	}{
		{"a card that is not there", pcie.Bus{Sysfs: t.TempDir()}, pcie.ErrNoCard},
		{"a card without its tables and a capture", *backendstest.NewLab(t).Bus, backends.ErrIncomplete},
	} {
		bus = c.bus
		if _, err := testbed.OpenTestbed(context.Background(), backendstest.CardAddress,
			testbed.OpenOptions{Access: access}); !errors.Is(err,
			c.want) {
			t.Errorf("a bench on %s: %v, want %q", c.name, err, c.want)
		}
	}
}

// BenchmarkBenchThroughAgent measures Table 1's 120 runs, in this process and through an agent.
func BenchmarkBenchThroughAgent(b *testing.B) {
	spec := usualSpec()
	for name, address := range map[string]string{"twin": "twin:", "agent": backendstest.ServeTwin(b, testbed.ServeOptions{})} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := MeasureSpec(context.Background(), spec,
					Options{Device: address, Access: backendstest.TestAccess(), Cards: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
