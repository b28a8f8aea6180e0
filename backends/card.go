package backends

import (
	"context"
	"fmt"
	"strings"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// ErrIncomplete reports that a card alone is not a testbed. The message lists the missing parts. The error matches
// testbed.ErrBackend.
var ErrIncomplete error = incomplete{}

type incomplete struct{}

func (incomplete) Error() string { return "a card alone is not a testbed" }
func (incomplete) Unwrap() error { return testbed.ErrBackend }

// missingParts returns a text with the parts that a card lacks to be a testbed.
func missingParts(a *testbed.CardAccess) string {
	var add []string
	if a.Tables == nil {
		add = append(add, "the tables' driver (--vnp4-1 and --vnp4-2, in an olafctl built with -tags vnp4)")
	}
	if a.Capture == nil {
		add = append(add, "the parameter server's network interface (--capture INTERFACE)")
	}
	return strings.Join(add, ", and ")
}

// CardDevice returns the row of the device table for the cards on a bus. The bus may still change after the call.
func CardDevice(bus *pcie.Bus) testbed.Device {
	return testbed.SharedDevice(testbed.Device{
		Prefix: "pci:", Name: "0000:3b:00.0", Abilities: testbed.HasTables | testbed.TakesGenerator, Guarded: true, OwnDryRun: true,
		Uses:    func(bdf string) []string { return []string{"pci:" + pcie.Slot(bdf)} },
		Examine: func(bdf string) ([]fpga.Check, bool, error) { return examineCard(*bus, bdf) },
	}, func(_ context.Context, bdf string, o testbed.ShareOptions) (*testbed.Shared, error) {
		return openCard(*bus, bdf, o)
	},
		func(bdf string, o *testbed.OpenOptions) error {
			if _, err := bus.Find(bdf); err != nil { // before asking for its accessories
				return err
			}
			if lacks := missingParts(&o.Card); lacks != "" {
				return fmt.Errorf("%w: add %s; 'olafctl bench', 'tui' and 'serve' take these flags, and -d grpc:… "+
					"uses a card that serve shares", ErrIncomplete, lacks)
			}
			return nil
		})
}

// openCard opens a card. The tables are included if there is a driver for them.
func openCard(bus pcie.Bus, bdf string, o testbed.ShareOptions) (*testbed.Shared, error) {
	card, err := pcie.Open(bus, bdf, pcie.Options{ReadOnly: o.ReadOnly, DryRun: o.DryRun, Force: o.Force, Lost: o.Lost})
	if err != nil {
		return nil, err
	}
	shared := &testbed.Shared{Device: card, Ports: card.Ports()}
	if o.Card.Tables != nil {
		shared.Tables = func(do func(func())) (*testbed.SharedTables, error) {
			tables := &cardTables{do, card}
			backend, stop, err := o.Card.Tables(tables)
			if err != nil {
				return nil, fmt.Errorf("the tables' driver: %w", err)
			}
			return &testbed.SharedTables{Backend: backend, Profile: p4.Lab(), Check: tables.Check, Stop: stop}, nil
		}
	}
	return shared, nil
}

// examineCard checks a card before it is used, and the links of its MACs. A link that is down is only noted, because
// the registers still work. The error is that of closing the card.
func examineCard(bus pcie.Bus, bdf string) (checks []fpga.Check, opened bool, err error) {
	d, checks, err := pcie.Examine(bus, bdf, pcie.Options{})
	if err != nil {
		return checks, false, nil // the last check contains the error
	}
	for i := range d.Ports() {
		c := fpga.Check{Name: fmt.Sprintf("port %d", i)}
		link, err := d.Link(i)
		switch {
		case err != nil:
			c.Outcome, c.Seen = fpga.Failed, err.Error()
		case link.Up:
			c.Outcome, c.Seen = fpga.Passed, fmt.Sprintf("up, RS-FEC %t", link.FEC)
		default:
			c.Outcome, c.Seen = fpga.Noted, link.Reason
			c.Next = fmt.Sprintf("RS-FEC is %t here and must be the same at the far end; check cable and optic", link.FEC)
		}
		checks = append(checks, c)
	}
	return checks, true, d.Close()
}
