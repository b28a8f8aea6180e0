package testbed

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// Ability is a set of abilities. Devices differ in their abilities.
type Ability uint32

const (
	HasTables      Ability = 1 << iota // its tables can be written, so that it can be a testbed
	VirtualTime                        // its time can be stopped, stepped and rewound
	Repeats                            // the same plan gives the same frames
	Observable                         // every event in its queue can be observed
	Records                            // it provides the bytes of its frames
	Copies                             // it can be opened any number of times, for parallel runs
	ClosesLoop                         // closed-loop workers can run on it
	LogsArrivals                       // it logs the arrivals at its queue, so that a twin can replay them
	TakesPrograms                      // its tables include those of switch programs
	PacesPrograms                      // updates can take the time of published hardware before its program
	KeepsLogicTime                     // it simulates the cycles of the card's logic, with the requested number of read ports
	HasHosts                           // programs run at the ends of its cables, as workers and parameter server
	AddsModels                         // servers in it add whole models
	ShowsEnds                          // it provides the frames captured at both ends of its cables
	AddsUpdates                        // its programs also precede its queue and add open-loop updates
	TakesLengths                       // closed-loop packets may be lengths without a frame format
	HangsRacks                         // closed-loop hosts may be on racks of switches below it
	Dialled                            // it is reached through an agent that serves it and its tables, with optional TLS
	TakesGenerator                     // another device's generator can send to its queue
	PassesDriver                       // it passes the driver of a card's tables on to the card's host
	BenchesModels                      // a server in it adds whole models in a bench
	AnswersUpdates                     // it answers its generator's updates with ACKs; see Answerer
)

// abilities contains a phrase for each ability that describes what a device without it cannot do. It is in the order of
// the constants.
var abilities = []string{
	"be a testbed, because it has no tables", "stop its time", "repeat a run", "show what happens in its queue",
	"provide its frames",
	"run several copies at once", "run closed-loop workers", "log what reached its queue",
	"take the tables of switch programs",
	"model the time of a program's hardware", "simulate the cycles of the logic (profile measured)",
	"run workers and servers as programs", "add up models on servers",
	"be captured at both ends", "add up open-loop updates",
	"run hosts whose packets have no frame format", "have racks below it", "be reached through an agent",
	"take frames from the generator of another device", "pass on the driver of a card's tables",
	"add up models on servers", "answer its generator's updates with ACKs",
}

// String returns a phrase that describes what a device without the abilities in a cannot do.
func (a Ability) String() string {
	var words []string
	for i, w := range abilities {
		if a>>i&1 != 0 {
			words = append(words, w)
		}
	}
	return strings.Join(words, ", or ")
}

// Device is one row in the table of devices. It describes how to reach a backend, and the backend's abilities. Nothing
// else in the program names a backend. Help texts, completion, error messages, serve, live sessions, captures and the
// run store use the row.
//
// To add a device, create a folder for it below fpga, with a Device that passes fpgatest. Add a function to the package
// backends that returns the device's row; LocalDevice completes the row of a device in this process, and SharedDevice
// the row of hardware that one process lends to itself and to others. Then add the device to the set that cmd builds.
type Device struct {
	// Prefix is the beginning of the device's addresses, up to the name: twin:, grpc://.
	Prefix string
	// Name is an example of a name, for help texts; empty if the device has no name.
	Name      string
	Abilities Ability
	// Programs lists the programs that can be built in front of the device's queue; its registers list the actual ones.
	Programs []program.Description
	// NotCard is the reason why flags for a card and its capture do not apply; empty if they do.
	NotCard string
	// Also is an alternative scheme for addresses that are dialled: unix. It may be empty.
	Also string
	// Guarded is set for hardware: writing can do harm, so by default it is lent to this user only.
	Guarded bool
	// OwnDryRun is set if Registers itself implements DeviceOptions.DryRun, for more than accesses.
	OwnDryRun bool

	// Part is set for a device that is only part of a testbed, such as a generator. Lists of devices leave it out.
	Part bool

	// Variant returns the row for names that mean another kind of device, and nil for other names. Variant itself may
	// be nil.
	Variant func(name string) *Device
	// Describe checks a device that is made when it is opened, without opening it, and returns its identity and its roles
	// (common.role); nil for devices that exist before. Interfaces of the device must have at least the given MTU.
	Describe func(name string, leastMTU int) (id string, role uint32, err error)
	// Named rejects an invalid name before anything is opened; nil leaves that to the open functions.
	Named func(name string) error
	// Uses returns the resources of this host that the device uses exclusively, as names for reservations; nil if none.
	Uses func(name string) []string
	// Registers opens the device for its registers only.
	Registers func(ctx context.Context, name string, o DeviceOptions) (fpga.Device, error)
	// Testbed opens the device with tables and a capture; nil without HasTables.
	Testbed func(ctx context.Context, name string, o OpenOptions) (*Testbed, error)
	// Lend registers the device with a service; nil if another process lends it.
	Lend func(ctx context.Context, s *Service, name string, o ServeOptions) error
	// Reach starts an agent for the device on another host until done is called; nil for devices on this host and
	// behind agents.
	Reach func(ctx context.Context, name string, a Access) (target string, done func() error, err error)
	// Examine opens the device and closes it again; it may be nil. It returns the checks that were made, and whether the
	// device could be opened. The error is that of closing it.
	Examine func(name string) (checks []fpga.Check, opened bool, err error)
}

// Scheme returns the part of the device's addresses before the first colon.
func (d *Device) Scheme() string {
	scheme, _, _ := strings.Cut(d.Prefix, ":")
	return scheme
}

// Form returns an example of the device's address.
func (d *Device) Form() string { return d.Prefix + d.Name }

// Can reports whether the device has all of the abilities.
func (d *Device) Can(a Ability) bool { return d.Abilities&a == a }

// Builds reports whether the device can be built with a switch program.
func (d *Device) Builds(p *program.Description) bool {
	return slices.ContainsFunc(d.Programs, func(built program.Description) bool { return built.Name == p.Name })
}

// NotBuilt returns an error if the device at an address cannot be built with the program p. The error lists the devices
// that can.
func (d Devices) NotBuilt(address string, p *program.Description) error {
	row, _, err := d.Lookup(address)
	if err != nil || row.Builds(p) {
		return err
	}
	able := slices.DeleteFunc(slices.Clone(d), func(row Device) bool { return !row.Builds(p) })
	return fmt.Errorf("%w: %w; it can be built for %s", ErrUnsupported, &fpga.NotBuilt{Address: address,
		Program: p.Name},
		able.Forms())
}

// Devices is the table of devices that a program can open. The first row is the default.
type Devices []Device

// Lookup returns the row for an address, and the name of the device within that row. The error matches ErrBackend.
func (d Devices) Lookup(address string) (row *Device, name string, err error) {
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
			return nil, "", fmt.Errorf("%w for %q; %s takes no name, so write only its scheme", ErrBackend, address,
				d[i].Prefix)
		default:
			if d[i].Variant != nil {
				if other := d[i].Variant(name); other != nil {
					return other, name, nil
				}
			}
			return &d[i], name, nil
		}
	}
	return nil, "", fmt.Errorf("%w for %q; this build opens %s", ErrBackend, address, d.Forms())
}

// Default returns the address of the default device.
func (d Devices) Default() string { return d[0].Prefix }

// With returns the devices with all of the abilities.
func (d Devices) With(a Ability) Devices {
	return slices.DeleteFunc(slices.Clone(d), func(row Device) bool { return !row.Can(a) })
}

// LendableOnes returns the devices that can be lent to other processes.
func (d Devices) LendableOnes() Devices {
	return slices.DeleteFunc(slices.Clone(d), func(row Device) bool { return row.Lend == nil })
}

// Forms returns a text that lists example addresses.
func (d Devices) Forms() string {
	var forms []string
	for i := range d {
		if !d[i].Part {
			forms = append(forms, d[i].Form())
		}
	}
	return strings.Join(forms, ", ")
}

// Prefixes returns the first parts of the devices' addresses, for completion.
func (d Devices) Prefixes() []string {
	var prefixes []string
	for i := range d {
		if !d[i].Part {
			prefixes = append(prefixes, d[i].Prefix)
		}
	}
	return prefixes
}

// Check checks that the device at an address has the ability a. The error is an *Unsupported or matches ErrBackend.
func (d Devices) Check(address string, a Ability) error {
	row, _, err := d.Lookup(address)
	if err != nil || row.Can(a) {
		return err
	}
	return &Unsupported{Address: address, Lacks: a &^ row.Abilities, Able: d.With(a)}
}

// NeitherWay contains the abilities that a device behind an agent lacks for closed-loop workers. Such workers cannot
// run behind an agent, and its programs do not add updates of open-loop workers.
const NeitherWay = ClosesLoop | AddsUpdates

// ErrUnsupported is matched by every error of type *Unsupported.
var ErrUnsupported = olaf.NewError(olaf.Device, "not supported by this device")

// Unsupported is the error for a device that lacks an ability. It lists the devices that have the ability.
type Unsupported struct {
	Address string
	Lacks   Ability
	Able    Devices
}

func (e *Unsupported) Error() string {
	able := "no device in this build can"
	if len(e.Able) > 0 {
		able = e.Able.Forms() + " can"
	}
	return fmt.Sprintf("%s can't %v; %s", e.Address, e.Lacks, able)
}

// Unwrap returns ErrUnsupported.
func (e *Unsupported) Unwrap() error { return ErrUnsupported }

// Parts contains the parts of a device in this process: one card or several equal cards, each with its capture, and the
// backend of the tables that they share.
type Parts struct {
	Cards   []Card
	Tables  agent.Backend
	Profile p4.Profile
	Hosts   *Hosts // as requested
}

// tablePrograms returns the programs whose tables the device's agent supports.
func (d *Device) tablePrograms(a *Access) []program.Description {
	if !d.Can(TakesPrograms) {
		return nil
	}
	return a.Programs
}

// LocalDevice completes the row of a device in this process. Its open function is used both to open the device as a
// testbed behind a private agent and to lend it. Unless the row defines how to open registers, they are those of the
// first card. If open returns parts together with an error, the parts are closed.
func LocalDevice(row Device, open func(ctx context.Context, name string, o OpenOptions) (*Parts, error)) Device {
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
			err = bed.controlTables(ctx, parts, row.tablePrograms(&o.Access), o)
		}
		if err != nil {
			return nil, closeAfter(err, bed)
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
		s.registerDevice(parts.Cards[0].Device, parts.Cards[0].Tap)
		return s.controlTables(parts.Tables, parts.Profile, row.tablePrograms(&o.Device.Access), nil, o)
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
