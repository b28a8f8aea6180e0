package testbed

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// Ability is something that not every device can do; several are or-ed.
type Ability uint32

const (
	HasTables      Ability = 1 << iota // its tables can be written, so that it makes a testbed
	VirtualTime                        // its time passes only when it is asked to: it can be held, stepped and wound back
	Repeats                            // the same plan gives the same frames again
	Observable                         // everything that happens in its queue can be seen
	Records                            // it hands out the bytes of its frames
	Copies                             // it can be opened any number of times, so that runs go side by side
	ClosesLoop                         // workers beside it hear what comes back, and may wait for it
	LogsArrivals                       // it tells what reached its queue, and when, so that a twin can be given the same
	TakesPrograms                      // its tables are those of switch programs too, and it goes by them
	PacesPrograms                      // updates take the time of published hardware in front of its program, where that is asked for
	KeepsLogicTime                     // it takes the cycles that the card's logic takes, with as many read ports as are asked for
	HasHosts                           // programs run at the ends of its cables, as workers and parameter server
	AddsModels                         // servers in it add whole models up
	ShowsEnds                          // what it hands out are the frames of both ends of its cables, as they were captured there
	AddsUpdates                        // its programs stand in front of its queue as well, and add what workers send that do not wait
	TakesLengths                       // where hosts wait, packets may be those of which nothing but a length is known
	HangsRacks                         // where hosts wait, racks of switches may hang below it
	Dialled                            // it is reached through an agent that serves it and its tables, over TLS where that is asked for
	TakesGenerator                     // the generator of another device can send to its queue
)

// abilities are the words for each, in the order of the constants.
var abilities = []string{
	"be a testbed, as it has no tables", "hold its time", "repeat a run", "show what happens in its queue", "hand out frames",
	"do several things at a time", "close the loop between workers and switch", "tell what reached its queue", "be told of the jobs of switch programs",
	"take the time of a program's hardware", "keep the time of the logic (profile measured)", "run workers and servers as programs", "add models up on servers",
	"be captured at both ends", "add up what workers send without waiting",
	"let hosts wait whose packets have no frames", "have racks below it", "be reached through an agent",
	"take frames from the generator of another device",
}

// String is what a device that lacks a can't do.
func (a Ability) String() string {
	var words []string
	for i, w := range abilities {
		if a>>i&1 != 0 {
			words = append(words, w)
		}
	}
	return strings.Join(words, ", or ")
}

// Device is one row of the table of devices: how a backend is reached, and what it can do. Nothing else in the program
// names a backend.
//
// To add one: its folder below fpga, with a Device that passes fpgatest; a function here that returns its row, for a
// device of this process made by Local; and its name in the set that cmd builds. Help texts, completion, refusals, serve,
// live sessions, captures and the run store read the row.
type Device struct {
	// Prefix begins its addresses, up to what names one device: twin:, grpc://.
	Prefix string
	// Name is an example of what follows it, for help texts; empty of a device that has no name.
	Name      string
	Abilities Ability
	// Programs may be built in front of its queue; its registers say which are.
	Programs []program.Description
	// NotCard says why flags make no sense that are for a card and for what captures behind it; empty where they do.
	NotCard string
	// Also is another scheme that its addresses may have, of those that are what is dialled: unix. Empty for none.
	Also string
	// Guarded says that it is hardware: who writes it can do harm, so that it is lent to this user alone if nothing else is
	// asked for.
	Guarded bool
	// OwnDryRun says that Registers minds DeviceOptions.DryRun, for more than accesses.
	OwnDryRun bool

	// Named refuses a name of it that is none before anything is opened or listened at; nil leaves that to who opens it.
	Named func(name string) error
	// Registers opens it for its registers alone.
	Registers func(ctx context.Context, name string, o DeviceOptions) (fpga.Device, error)
	// Testbed opens it with tables and a capture; nil of a device without HasTables.
	Testbed func(ctx context.Context, name string, o OpenOptions) (*Testbed, error)
	// Lend gives a service what the device has; nil of one that somebody else lends.
	Lend func(ctx context.Context, s *Service, name string, o ServeOptions) error
	// Examine looks at it before it is opened, as far as there is anything to see; nil where there is nothing. The device
	// comes open where it can be used.
	Examine func(name string, a Access) (*pcie.Device, []pcie.Check, error)
}

// Scheme is the part of an address before the first colon.
func (d *Device) Scheme() string {
	scheme, _, _ := strings.Cut(d.Prefix, ":")
	return scheme
}

// Form is what an address looks like.
func (d *Device) Form() string { return d.Prefix + d.Name }

// Can says whether it has all of some abilities.
func (d *Device) Can(a Ability) bool { return d.Abilities&a == a }

// Builds says whether it may be built with a switch program.
func (d *Device) Builds(p *program.Description) bool {
	return slices.ContainsFunc(d.Programs, func(built program.Description) bool { return built.Name == p.Name })
}

// NotBuilt says that a device is not built with a switch program, and which can be; nil of one that may be.
func (d Devices) NotBuilt(address string, p *program.Description) error {
	row, _, err := d.Of(address)
	if err != nil || row.Builds(p) {
		return err
	}
	able := slices.DeleteFunc(slices.Clone(d), func(row Device) bool { return !row.Builds(p) })
	return fmt.Errorf("%w: %w; %s can be", ErrUnsupported, &fpga.NotBuilt{Address: address, Program: p.Name}, able.Forms())
}

// Devices is the table of what a program opens. The first one is opened where no address is given.
type Devices []Device

// Of finds the row of an address, and the name of the device in it. The error matches ErrBackend.
func (d Devices) Of(address string) (row *Device, name string, err error) {
	if address == "" && len(d) > 0 {
		address = d[0].Prefix
	}
	scheme, name, _ := strings.Cut(address, ":")
	for i := range d {
		switch {
		case d[i].Also == scheme && scheme != "":
			return &d[i], address, nil
		case d[i].Scheme() != scheme:
		case d[i].Name == "" && name != "":
			return nil, "", fmt.Errorf("%w for %q; %s has no name, so write just its scheme", ErrBackend, address, d[i].Prefix)
		default:
			return &d[i], name, nil
		}
	}
	return nil, "", fmt.Errorf("%w for %q; this build opens %s", ErrBackend, address, d.Forms())
}

// Default is the address that stands for none.
func (d Devices) Default() string { return d[0].Prefix }

// With are the devices with all of some abilities.
func (d Devices) With(a Ability) Devices {
	return slices.DeleteFunc(slices.Clone(d), func(row Device) bool { return !row.Can(a) })
}

// Lent are the devices that can be lent to other processes.
func (d Devices) Lent() Devices {
	return slices.DeleteFunc(slices.Clone(d), func(row Device) bool { return row.Lend == nil })
}

// Forms lists what addresses look like.
func (d Devices) Forms() string {
	forms := make([]string, len(d))
	for i := range d {
		forms[i] = d[i].Form()
	}
	return strings.Join(forms, ", ")
}

// Prefixes are how addresses begin, for completion.
func (d Devices) Prefixes() []string {
	prefixes := make([]string, len(d))
	for i := range d {
		prefixes[i] = d[i].Prefix
	}
	return prefixes
}

// Check says whether the device at an address can do something. The error is an *Unsupported, or matches ErrBackend.
func (d Devices) Check(address string, a Ability) error {
	row, _, err := d.Of(address)
	if err != nil || row.Can(a) {
		return err
	}
	return &Unsupported{Address: address, Lacks: a &^ row.Abilities, Able: d.With(a)}
}

// NeitherWay is what an agent's device lacks beside which hosts wait: nobody waits behind an agent, and what others send its programs do
// not add up.
const NeitherWay = ClosesLoop | AddsUpdates

// ErrUnsupported is what every *Unsupported matches.
var ErrUnsupported = olaf.NewError(olaf.Device, "not supported by this device")

// Unsupported says that a device can't do what it was asked to, and which ones can.
type Unsupported struct {
	Address string
	Lacks   Ability
	Able    Devices
}

func (e *Unsupported) Error() string {
	able := "nothing that this build opens can"
	if len(e.Able) > 0 {
		able = e.Able.Forms() + " can"
	}
	return fmt.Sprintf("%s can't %v; %s", e.Address, e.Lacks, able)
}

// Unwrap makes it match ErrUnsupported.
func (e *Unsupported) Unwrap() error { return ErrUnsupported }

// Parts are what a device of this process consists of: one card, or equal ones side by side, each with its capture, and
// what keeps the tables that they share.
type Parts struct {
	Cards   []Card
	Tables  agent.Backend
	Profile p4.Profile
	Hosts   *Hosts // that were asked for
}

// told are the programs whose tables the agent of a device takes.
func (d *Device) told(a *Access) []program.Description {
	if !d.Can(TakesPrograms) {
		return nil
	}
	return a.Programs
}

// Local completes the row of a device of this process from the one way to open it: as a testbed behind an agent of its own,
// and to be lent. Registers are those of the first card, unless the row says otherwise. What open returns beside an error
// is closed.
func Local(row Device, open func(ctx context.Context, name string, o OpenOptions) (*Parts, error)) Device {
	row.Testbed = func(ctx context.Context, name string, o OpenOptions) (*Testbed, error) {
		bed := new(Testbed)
		parts, err := open(ctx, name, o)
		if parts != nil {
			bed.Cards, bed.Hosts = parts.Cards, parts.Hosts
		}
		for _, c := range bed.Cards {
			bed.close = append(bed.close, c.Device.Close)
		}
		if err == nil {
			err = bed.control(ctx, parts, row.told(&o.Access), o)
		}
		if err != nil {
			return nil, closing(err, bed)
		}
		return bed, nil
	}
	row.Lend = func(ctx context.Context, s *Service, name string, o ServeOptions) error {
		parts, err := open(ctx, name, OpenOptions{Access: o.Device.Access, Cards: 1})
		if parts != nil {
			for _, c := range parts.Cards {
				s.close = append(s.close, c.Device.Close)
			}
		}
		if err != nil {
			return err
		}
		s.lend(parts.Cards[0].Device, parts.Cards[0].Tap)
		return s.control(parts.Tables, parts.Profile, row.told(&o.Device.Access), nil, o)
	}
	if row.Registers == nil {
		row.Registers = func(ctx context.Context, name string, o DeviceOptions) (fpga.Device, error) {
			parts, err := open(ctx, name, OpenOptions{Access: o.Access, Cards: 1})
			if err != nil {
				return nil, err
			}
			return parts.Cards[0].Device, nil
		}
	}
	return row
}
