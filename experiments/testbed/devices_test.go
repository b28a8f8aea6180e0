package testbed

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// all contains the twin, agents, and two devices that are never opened.
var all = Devices{
	TwinDevice(),
	SharedDevice(Device{Prefix: "pci:", Name: "0000:3b:00.0", Abilities: HasTables | TakesGenerator, Guarded: true}, nil, nil),
	AgentDevice(),
	SharedDevice(Device{Prefix: "playback:", Name: "FILE", NotCard: "it has registers alone"}, nil, nil),
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct{ address, prefix, name, says string }{
		{"", "twin:", "", ""},
		{"twin:", "twin:", "", ""},
		{"twin", "twin:", "", ""},
		{"pci:0000:3b:00.0", "pci:", "0000:3b:00.0", ""},
		{"grpc://h:1", "grpc://", "//h:1", ""},
		{"grpc:unix:/s", "grpc://", "unix:/s", ""},
		{"unix:/s", "grpc://", "unix:/s", ""},
		{"unix:///s", "grpc://", "unix:///s", ""},
		{"twin:0", "", "", "no such device backend for \"twin:0\"; twin: takes no name, so write only its scheme"},
		{"rtx:", "", "", "no such device backend for \"rtx:\"; this build opens twin:, pci:0000:3b:00.0, grpc://HOST:PORT, playback:FILE"},
	} {
		row, name, err := all.Lookup(c.address)
		switch {
		case c.says != "":
			if !errors.Is(err, ErrBackend) || err.Error() != c.says {
				t.Errorf("%q: %v", c.address, err)
			}
		case err != nil || row.Prefix != c.prefix || name != c.name:
			t.Errorf("%q: %+v, %q, %v", c.address, row, name, err)
		}
	}
	if got := all.LendableOnes().Forms(); got != "twin:, pci:0000:3b:00.0, playback:FILE" {
		t.Errorf("lent: %s", got)
	}
	if got := all.With(HasTables).Prefixes(); !slices.Equal(got, []string{"twin:", "pci:", "grpc://"}) {
		t.Errorf("testbeds: %q", got)
	}
}

// TestRowsAreWhole checks that a row's abilities match its functions.
func TestRowsAreWhole(t *testing.T) {
	for _, d := range all {
		if d.Registers == nil || d.Can(HasTables) != (d.Testbed != nil) || d.Lend == nil && d.NotCard == "" {
			t.Errorf("%s: %+v", d.Prefix, d)
		}
	}
	if AnswersUpdates != 1<<(len(abilities)-1) { // AnswersUpdates is the last constant
		t.Error("every ability needs words for what a device without it cannot do")
	}
}

// TestMissingAbility checks that a missing ability is reported before the device is touched, with the devices that have
// it.
func TestMissingAbility(t *testing.T) {
	_, err := OpenTestbed(t.Context(), "grpc://127.0.0.1:1", OpenOptions{Access: Access{Devices: all}, Wire: true})
	var lacks *Unsupported
	if kind, _ := olaf.KindOf(err); !errors.As(err, &lacks) || !errors.Is(err, ErrUnsupported) || kind != olaf.Device {
		t.Fatalf("%v", err)
	}
	if err.Error() != "grpc://127.0.0.1:1 can't provide its frames; twin: can" {
		t.Errorf("%v", err)
	}
	if err := all.Check("playback:x", HasTables|Copies); err == nil ||
		!strings.HasPrefix(err.Error(), "playback:x can't be a testbed, because it has no tables, or run several copies at once; twin: can") {
		t.Errorf("%v", err)
	}
	if err := all[1:2].Check("pci:x", Records); err == nil ||
		err.Error() != "pci:x can't provide its frames; no device in this build can" {
		t.Errorf("%v", err)
	}
	if err := all.Check("", VirtualTime|Repeats|Observable|Records|Copies|ClosesLoop); err != nil {
		t.Errorf("the twin: %v", err)
	}
}

// TestLocalDeviceIsATestbed checks that one function makes a device of this process a testbed, something to lend, and
// registers.
func TestLocalDeviceIsATestbed(t *testing.T) {
	opened := 0
	row := LocalDevice(Device{Prefix: "mine:", Name: "NUMBER", Abilities: HasTables},
		func(_ context.Context, name string, o OpenOptions) (*Parts, error) {
			opened++
			backend := new(agent.Embedded)
			d, err := twin.New(twin.Config{Tables: TablesOf(backend)})
			if name != "7" || err != nil {
				return nil, errors.Join(err, fpga.ErrGone)
			}
			return &Parts{Cards: []Card{{d, d}}, Tables: backend, Profile: p4.Twin()}, nil
		})
	access := Access{Devices: Devices{row, AgentDevice()}}
	bed, err := OpenTestbed(t.Context(), "mine:7", OpenOptions{Access: access})
	if err != nil {
		t.Fatal(err)
	}
	if bed.Tables == nil || bed.Can(VirtualTime) || !bed.Can(HasTables) {
		t.Errorf("%+v", bed)
	}
	if _, err := OpenTestbed(t.Context(), "mine:8", OpenOptions{Access: access}); !errors.Is(err, fpga.ErrGone) {
		t.Errorf("a device that is not there: %v", err)
	}
	s, err := ServeDevice(t.Context(), "mine:7", ServeOptions{Listen: "127.0.0.1:0", Device: DeviceOptions{Access: access}})
	if err != nil {
		t.Fatal(err)
	}
	far, err := OpenDevice(t.Context(), "grpc://"+s.Target, DeviceOptions{Access: access})
	if err != nil || !s.Tables || !s.Captures {
		t.Fatalf("lent: %+v, %v", s, err)
	}
	near, err := OpenDevice(t.Context(), "mine:7", DeviceOptions{Access: access, DryRun: io.Discard})
	if err := errors.Join(err, near.Close(), far.Close(), s.Close(), bed.Close()); err != nil {
		t.Error(err)
	}
	if opened != 4 {
		t.Errorf("opened %d times", opened)
	}
	if _, err := ServeDevice(t.Context(), "grpc://h:1",
		ServeOptions{Listen: "127.0.0.1:0", Device: DeviceOptions{Access: access}}); !errors.Is(err, ErrBackend) {
		t.Errorf("lending what another process lends: %v", err)
	}
}

// TestTablesAreWrittenOncePerChange checks that tables are written once, and again after another change.
func TestTablesAreWrittenOncePerChange(t *testing.T) {
	bed, err := OpenTestbed(t.Context(), "twin:", OpenOptions{Access: Access{Devices: all}})
	if err != nil {
		t.Fatal(err)
	}
	defer bed.Close()
	worker := func(n byte) p4ctl.Worker {
		return p4ctl.Worker{Address: netip.AddrFrom4([4]byte{10, 1, 0, n}), ID: olaf.WorkerID(n)}
	}
	want := p4ctl.Tables{Workers: []p4ctl.Worker{worker(0), worker(1)}}.WithGroups(0)
	versions := map[uint64]bool{}
	for _, change := range []bool{false, false, true, false} {
		if change {
			if _, err := bed.Tables.Sync(t.Context(), p4ctl.Tables{Workers: []p4ctl.Worker{worker(1)}}.WithGroups(0)); err != nil {
				t.Fatal(err)
			}
		}
		if hash, err := bed.Program(t.Context(), want); err != nil || hash != want.Hash() {
			t.Fatal(hash, err)
		}
		if held, err := bed.Tables.Read(t.Context()); err != nil || held.Hash() != want.Hash() {
			t.Errorf("the tables hold something else: %v", err)
		}
		versions[bed.version()] = true
	}
	if len(versions) != 2 {
		t.Errorf("the tables were written %d times, want twice", len(versions))
	}
}

// TestCountsInDescriptions checks that the description of a device that lasts has its counters, also if another process has
// opened the device and lends it.
func TestCountsInDescriptions(t *testing.T) {
	lasting, made, open := TwinDevice(), TwinDevice(), TwinDevice()
	lasting.Uses = func(string) []string { return []string{"card"} }
	open.Prefix, open.Uses = "pci:", lasting.Uses
	open.Registers = func(context.Context, string, DeviceOptions) (fpga.Device, error) {
		return nil, errors.New("the card is in use")
	}
	const ofQueue = "in delivered dropped malformed lost before the queue"
	for _, c := range []struct {
		rows Devices
		what AboutRequest
		want string
	}{
		{Devices{lasting}, AboutRequest{Device: "twin:"}, ofQueue},
		{Devices{lasting}, AboutRequest{Device: "twin:", Lent: "held:paper/queue"}, ofQueue},
		{Devices{lasting}, AboutRequest{Device: "twin:", Generator: true}, "sent late"},
		{Devices{made}, AboutRequest{Device: "twin:"}, ""},
		{Devices{made, open}, AboutRequest{Device: "pci:", Lent: "twin:"}, ofQueue},
	} {
		about := Access{Devices: c.rows}.About(t.Context(), c.what)
		var names []string
		for _, n := range about.Counts {
			names = append(names, n.Name)
		}
		if got := strings.Join(names, " "); got != c.want || len(about.Faults) > 0 {
			t.Errorf("%+v: counters %q, faults %q; want %q", c.what, got, about.Faults, c.want)
		}
	}
}
