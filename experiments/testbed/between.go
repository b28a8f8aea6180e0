package testbed

import (
	"context"
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
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
		return b, fmt.Errorf("%w for %q: write %s with two interfaces of its host, and ,generic where a driver has no XDP hook",
			ErrBackend, "xdp:"+name, betweenForm)
	}
	return b, nil
}

// betweenDevice returns the row of the device table for a kernel queue between two interfaces. It returns nil if the
// text after xdp: names another device.
func betweenDevice(name string) *Device {
	if !strings.Contains(name, ",") {
		return nil
	}
	return &Device{
		Prefix: "xdp:", Name: "IN,OUT", Abilities: HasTables | TakesGenerator, Guarded: true,
		Named: func(name string) error { _, err := parseBetween(name); return err },
		Uses: func(name string) []string {
			b, err := parseBetween(name)
			if err != nil {
				return nil
			}
			return []string{InterfaceResource(b.in), InterfaceResource(b.out)}
		},
		Registers: func(_ context.Context, name string, _ DeviceOptions) (fpga.Device, error) { return openBetween(name) },
		Testbed:   openBetweenTestbed, Lend: lendBetween, Describe: describeBetween,
	}
}

// NICDevice returns the row of the device table for a network interface of this host. Its generator sends the updates
// of all workers.
func NICDevice() Device {
	return Device{
		Prefix: "nic:", Name: "enp1s0f0", NotCard: "it sends updates and receives none", Guarded: true, Part: true,
		Uses:      func(name string) []string { return []string{InterfaceResource(name)} },
		Registers: func(_ context.Context, name string, _ DeviceOptions) (fpga.Device, error) { return openNIC(name) },
		Lend: func(_ context.Context, s *Service, name string, _ ServeOptions) error {
			card, err := openNIC(name)
			if err != nil {
				return err
			}
			s.close = append(s.close, card.Close)
			s.registerDevice(card, nil)
			return nil
		},
		Describe: func(name string) (string, uint32, error) {
			_, err := findInterface(name, leastBetween)
			return "nic", regmap.CommonRoleGenerator, err
		},
	}
}

// describeBetween identifies the queue and checks its interfaces, without opening them.
func describeBetween(name string) (id string, role uint32, err error) {
	b, err := parseBetween(name)
	if err == nil {
		_, err = findInterface(b.in, leastBetween)
	}
	if err == nil {
		_, err = findInterface(b.out, leastBetween)
	}
	return "xdp " + b.mode, regmap.CommonRoleAccelerator, err
}

// openBetweenTestbed opens a kernel queue between two interfaces, with its generator and capture. This process lends
// them to itself in the same way as a card.
func openBetweenTestbed(ctx context.Context, name string, o OpenOptions) (*Testbed, error) {
	var add []string
	if o.Generator == "" {
		add = append(add, "a generator (--generator nic:INTERFACE)")
	}
	if o.Card.Capture == nil {
		add = append(add, "the parameter server's network interface (--capture INTERFACE)")
	}
	if len(add) > 0 {
		return nil, fmt.Errorf("%w between two interfaces has neither workers nor a server: add %s", ErrBackend, strings.Join(add, ", and "))
	}
	return openLent(ctx, o, func(s *Service, lent ServeOptions) error { return lendBetween(ctx, s, name, lent) })
}

// lendBetween lends the queue with its tables and, if there is a capture, with a tap.
func lendBetween(ctx context.Context, s *Service, name string, o ServeOptions) error {
	card, err := openBetween(name)
	if err != nil {
		return err
	}
	s.close = append(s.close, card.Close)
	const ports = 2
	if _, err := s.registerCard(ctx, card, ports, o); err != nil {
		return err
	}
	backend, profile := tablesBetween(card)
	return s.controlTables(backend, profile, nil, nil, o)
}
