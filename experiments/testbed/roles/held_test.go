package roles

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// abortCounter counts the commands that stop the generator.
type abortCounter struct {
	fpga.Device
	aborts *int
}

func (d abortCounter) Write32(addr, value uint32) error {
	if addr == regmap.GeneratorCommand && value == regmap.GeneratorCommandAbort {
		*d.aborts++
	}
	return d.Device.Write32(addr, value)
}

// TestHoldersStopGenerators checks that a holder stops the generator of a card before it lends the card and after the
// last command.
func TestHoldersStopGenerators(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	aborts, row := 0, testbed.TwinDevice()
	open := row.Registers
	row.Uses = func(string) []string { return []string{"a card"} } // a card exists before it is opened
	row.Registers = func(ctx context.Context, name string, o testbed.DeviceOptions) (fpga.Device, error) {
		d, err := open(ctx, name, o)
		return abortCounter{d, &aborts}, err
	}
	access := testbed.Access{Devices: testbed.Devices{row}, Owner: "alice@desk", Reservations: &testbed.Reservations{Dir: t.TempDir()}}
	d := LentDevice{Role: lab.QueueName, Address: "twin:"}
	s, end, err := d.serve(t.Context(), "paper", access)
	if err != nil {
		t.Fatal(err)
	}
	if aborts != 1 {
		t.Errorf("%d commands stopped the generator before the card was lent, want 1", aborts)
	}
	lent, err := testbed.AgentDevice().Registers(t.Context(), s.Target, testbed.DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lent.Read32(regmap.CommonRole); err != nil {
		t.Error(err)
	}
	if err := lent.Close(); err != nil {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if aborts != 2 {
		t.Errorf("%d commands stopped the generator in all, want another after the last command", aborts)
	}
}

// TestKilledHoldersLeaveNoSockets checks that a request to end a holder that was killed removes the socket of the device
// that it lent.
func TestKilledHoldersLeaveNoSockets(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	path, err := makeSocket("paper", lab.QueueName)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := letGoHere("paper"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder with the socket still exists: %v", err)
	}
}

// TestDevicesOfHosts checks which devices the holder on each host opens. One that feeds the queue on the same host
// belongs to the queue, and so does a capture by the same clock.
func TestDevicesOfHosts(t *testing.T) {
	for name, c := range map[string]struct {
		generator, server, mirror string // hosts; empty for none
		q, other                  string // lines of the holders
	}{
		"apart":                {"b", "b", "", "queue, xdp:in,out", "generator, nic:eth0"},
		"one host":             {"a", "a", "", "queue, xdp:in,out, fed by nic:eth0, captured at eth1 behind port 1 with auto stamps", ""},
		"generator apart":      {"b", "a", "", "queue, xdp:in,out", "generator, nic:eth0"},
		"server apart":         {"a", "b", "", "queue, xdp:in,out; generator, nic:eth0", ""},
		"one host by a mirror": {"a", "a", "a", "queue, xdp:in,out; generator, nic:eth0", ""},
		"the queue's own":      {"", "a", "", "queue, xdp:in,out, captured at eth1 behind port 1 with auto stamps", ""},
	} {
		p := &Plan{Name: "paper", Queue: &Role{Host: "a", Device: "xdp:in,out", Port: 1}, Server: &Role{Host: c.server, Interface: "eth1", Stamps: "auto"}}
		if c.generator != "" {
			p.Generator = &Role{Host: c.generator, Interface: "eth0"}
		}
		if c.mirror != "" {
			p.Mirror = &Role{Host: c.mirror, Interface: "eth2"}
		}
		for host, want := range map[string]string{"a": c.q, "b": c.other} {
			var lines []string
			for _, d := range p.devicesOn(host) {
				lines = append(lines, d.line())
			}
			if got := strings.Join(lines, "; "); got != want {
				t.Errorf("%s: host %s holds %q, want %q", name, host, got, want)
			}
		}
	}
}

// TestRequestsFindLentDevices checks that a host is asked for the device that its holder lends. A generator on the
// queue's host is part of the queue's device.
func TestRequestsFindLentDevices(t *testing.T) {
	for host, want := range map[string][]string{
		"q":   {"held:paper/queue", "held:paper/queue", ""},
		"gen": {"held:paper/generator"},
	} {
		p := &Plan{Name: "paper", Generator: &Role{Host: host, Device: "pci:0000:5e:00.0"}, Queue: &Role{Host: "q", Device: "pci:0000:3b:00.0"},
			Server: &Role{Host: "q", Interface: "eth1"}}
		var got []string
		for _, what := range p.requests(host, 0) {
			got = append(got, what.Lent)
		}
		if !slices.Equal(got, want) {
			t.Errorf("generator on host %s: lent devices %q, want %q", host, got, want)
		}
	}
}
