package backends

import (
	"context"
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/regmap"
)

// betweenForm is the syntax of the address for a kernel queue between two interfaces.
const betweenForm = "xdp:IN,OUT"

// leastBetween is the smallest MTU that an interface needs for updates. Frames without values fit into it.
const leastBetween = olaf.HeaderBytes - 14

// between is a kernel queue between two interfaces of its host. The text after "xdp:" in an address specifies it.
type between struct{ in, out, mode string }

// parseBetween parses an address in the form IN,OUT or IN,OUT,MODE.
func parseBetween(name string) (b between, err error) {
	words := strings.Split(name, ",")
	b.mode = kernelModes[""]
	if len(words) == 3 {
		b.mode = kernelModes[words[2]]
		words = words[:2]
	}
	if len(words) == 2 {
		b.in, b.out = words[0], words[1]
	}
	if b.in == "" || b.out == "" || b.in == b.out || b.mode == "" || strings.ContainsAny(name, " /:") {
		return b, fmt.Errorf("%w for %q: write %s with two interfaces of its host, and ,generic if a driver does not "+
			"support XDP",
			testbed.ErrBackend, "xdp:"+name, betweenForm)
	}
	return b, nil
}

// betweenDevice returns the row of the device table for a kernel queue between two interfaces. It returns nil if the
// text after xdp: names another device.
func betweenDevice(name string) *testbed.Device {
	if !strings.Contains(name, ",") {
		return nil
	}
	row := testbed.SharedDevice(testbed.Device{
		Prefix: "xdp:", Name: "IN,OUT", Abilities: testbed.HasTables | testbed.TakesGenerator, Guarded: true,
		Named: func(name string) error { _, err := parseBetween(name); return err },
		Uses: func(name string) []string {
			b, err := parseBetween(name)
			if err != nil {
				return nil
			}
			return []string{testbed.InterfaceResource(b.in), testbed.InterfaceResource(b.out)}
		},
		Describe: describeBetween,
	}, func(_ context.Context, name string, _ testbed.ShareOptions) (*testbed.Shared, error) {
		return openBetween(name)
	},
		checkBetween)
	return &row
}

// NICDevice returns the row of the device table for a network interface of this host. Its generator sends the updates
// of all workers.
func NICDevice() testbed.Device {
	return testbed.SharedDevice(testbed.Device{
		Prefix: "nic:", Name: "enp1s0f0", NotCard: "it only sends updates", Guarded: true, Part: true,
		Uses: func(name string) []string { return []string{testbed.InterfaceResource(name)} },
		Describe: func(name string, leastMTU int) (string, uint32, error) {
			_, err := testbed.FindInterface(name, max(leastBetween, leastMTU))
			return "nic", regmap.CommonRoleGenerator, err
		},
	}, func(_ context.Context, name string, _ testbed.ShareOptions) (*testbed.Shared, error) {
		return openNIC(name)
	}, nil)
}

// describeBetween identifies the queue and checks its interfaces, without opening them.
func describeBetween(name string, leastMTU int) (id string, role uint32, err error) {
	leastMTU = max(leastBetween, leastMTU)
	b, err := parseBetween(name)
	if err == nil {
		_, err = testbed.FindInterface(b.in, leastMTU)
	}
	if err == nil {
		_, err = testbed.FindInterface(b.out, leastMTU)
	}
	return "xdp " + b.mode, regmap.CommonRoleAccelerator, err
}

// checkBetween returns an error if a queue between two interfaces lacks a generator or a capture to be a testbed.
func checkBetween(_ string, o *testbed.OpenOptions) error {
	var add []string
	if o.Generator == "" {
		add = append(add, "a generator (--generator nic:INTERFACE)")
	}
	if o.Card.Capture == nil {
		add = append(add, "the parameter server's network interface (--capture INTERFACE)")
	}
	if len(add) > 0 {
		return fmt.Errorf("%w between two interfaces has neither workers nor a server: add %s", testbed.ErrBackend, strings.Join(add, ", and "))
	}
	return nil
}
