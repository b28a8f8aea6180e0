// Package testbed opens what a run is carried out on: a card or its twin with a controller's session and a capture, here
// or behind the agent of another process, and lends it to others.
package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// ErrBackend says that this build cannot open a device of that kind.
var ErrBackend = olaf.NewError(olaf.Usage, "no such device backend")

// Testbed is one device to program, tables to fill, generators to fire, captures to read. Whether a card or the twin is
// behind it makes no difference to a run.
type Testbed struct {
	// Cards are equal ones that runs may use side by side. A real testbed has one.
	Cards []Card
	// Tables is the primary controller's session with the device that they all are copies of.
	Tables *p4ctl.Session
	// P4InfoHash is the SHA-256 of the P4Info that the device forwards by.
	P4InfoHash string
	// AgeErrorPct is by how much of a run's mean AoM its ages may be wrong where two clocks measure them; beyond that they
	// are withheld. 0 is 10 %.
	AgeErrorPct float64
	Abilities   Ability // of the device
	Hosts       *Hosts  // that were asked for
	address     string  // as it was opened, in the table of devices
	devices     Devices
	profile     p4.Profile
	close       []func() error
	// version counts the changes of the tables, whoever made them; nil where nobody here sees them.
	version func() uint64
	// programmed is what was last read back.
	programmed struct {
		hash    string // empty before
		version uint64
	}
}

// Card is one device and what captures behind it.
type Card struct {
	Device fpga.Device
	Tap    capture.Tap
}

// EndsRecorder is a device that can be captured at both ends of its cables, from where workers send to where the server is. Devices
// that ShowsEnds are.
type EndsRecorder interface {
	// RecordEnds begins a capture anew, or ends it.
	RecordEnds(on bool) error
	// Ends is the capture that goes on; nil without one.
	Ends() Ends
}

// Ends is a capture at the workers' end and at the server's, in this order.
type Ends interface {
	// Drain hands out what was captured since the last call, by time; bytes are used again.
	Drain(visit func(*capture.Packet) error) error
	// Counts are how many packets were handed out, by end, and Lost how many found no room.
	Counts() []uint64
	Lost() (int64, error)
}

// EndNames are the ends in a capture file.
var EndNames = []string{"workers", "server"}

// AgeError is AgeErrorPct, or what stands for 0.
func (b *Testbed) AgeError() float64 { return cmp.Or(b.AgeErrorPct, 10) }

// OpenOptions say what a testbed is opened for.
type OpenOptions struct {
	Access
	Cards  int    // cards side by side, where the device can be copied; 0 is one
	Listen string // also serve P4Runtime here; empty for a private socket
	Wire   bool   // move gradients and record frames, for captures
	// ReadPorts, 1 or 2, asks for the time of the card's logic with so many read ports of its memory of gradients; 0 is what the
	// device does by itself.
	ReadPorts int
	// Unit is the hardware whose time updates take in front of a switch program; nil takes none.
	Unit *aggregator.Unit
	// Workers asks for as many hosts beside the server's, on which programs run, each with so many addresses; 0 for none.
	Workers, Addresses int
	// Observe gives every card its observer, called with their numbers from 0; nil for none. Of a device that is not Observable
	// nobody is asked.
	Observe func(card int) twin.Observer
}

// Open opens the device at an address with its tables and a capture; an empty address is the default one. The error matches
// ErrBackend where there is no way to it, and is an *Unsupported where it can't do what it is opened for.
func Open(ctx context.Context, address string, o OpenOptions) (*Testbed, error) {
	o.Cards = max(o.Cards, 1)
	devices := o.devices()
	needs := HasTables
	if o.Wire {
		needs |= Records
	}
	if o.ReadPorts != 0 {
		needs |= KeepsLogicTime
	}
	if o.Unit != nil {
		needs |= PacesPrograms
	}
	if o.Workers > 0 {
		needs |= HasHosts
	}
	if o.Generator != "" {
		needs |= TakesGenerator
	}
	if err := devices.Check(address, needs); err != nil {
		return nil, err
	}
	row, name, err := devices.Of(address)
	if err != nil {
		return nil, err
	}
	bed, err := row.Testbed(ctx, name, o)
	if err != nil {
		return nil, err
	}
	bed.Abilities, bed.address, bed.devices = row.Abilities, address, devices
	return bed, nil
}

// Adds refuses a testbed whose programs do not add up what workers send that do not wait, which the row of an agent can't know, and names
// the devices beside which workers can wait. The error is an *Unsupported.
func (b *Testbed) Adds() error {
	if fpga.AddsUpdates(b.Cards[0].Device) {
		return nil
	}
	return &Unsupported{Address: b.address, Lacks: NeitherWay, Able: b.devices.With(ClosesLoop)}
}

// Can says whether the device has all of some abilities.
func (b *Testbed) Can(a Ability) bool { return b.Abilities&a == a }

// closing gives back what was opened before an error.
func closing(err error, b *Testbed) error { return errors.Join(err, b.Close()) }

// Close gives everything back, last opened first.
func (b *Testbed) Close() error {
	var errs []error
	for i := len(b.close) - 1; i >= 0; i-- {
		errs = append(errs, b.close[i]())
	}
	b.close = nil
	return errors.Join(errs...)
}

// Guard ends the context when the tables are lost, with the reason as its cause.
func (b *Testbed) Guard(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopped := make(chan struct{})
	go func() {
		select {
		case <-b.Tables.Preempted():
			cancel(b.Lost())
		case <-stopped:
		}
	}()
	return ctx, func() {
		close(stopped)
		cancel(context.Canceled)
	}
}

// Lost says that the tables were lost; whoever is done asks once more, since the end of a guarded context comes a moment later.
func (b *Testbed) Lost() error {
	select {
	case <-b.Tables.Preempted():
		return fmt.Errorf("the tables: %w", p4ctl.ErrPreempted)
	default:
		return nil
	}
}

// Program makes the tables hold want, reads them back, and returns the hash of their content. Tables of switch programs come
// with a pipeline that has them. Tables that nobody has changed since they were read back are not written again.
func (b *Testbed) Program(ctx context.Context, want p4ctl.Tables) (hash string, err error) {
	hash = want.Hash()
	if b.version != nil && hash == b.programmed.hash && b.version() == b.programmed.version {
		return hash, nil
	}
	if err := b.push(ctx, want.Programs()...); err != nil {
		return "", err
	}
	if _, err := b.Tables.Sync(ctx, want); err != nil {
		return "", fmt.Errorf("write the tables: %w", err)
	}
	version := uint64(0)
	if b.version != nil {
		version = b.version()
	}
	got, err := b.Tables.Read(ctx)
	if err != nil {
		return "", fmt.Errorf("read the tables back: %w", err)
	}
	if got.Hash() != hash {
		return "", fmt.Errorf("%w: the tables read back differ from what was written", fpga.ErrRefused)
	}
	b.programmed.hash, b.programmed.version = hash, version
	return hash, nil
}

// push makes the device forward by our pipeline, with the tables of some switch programs.
func (b *Testbed) push(ctx context.Context, programs ...program.Description) error {
	pipeline := p4ctl.PipelineConfig(b.profile, programs...)
	if _, err := b.Tables.PushPipeline(ctx, pipeline); err != nil {
		return err
	}
	b.P4InfoHash = p4.Hash(pipeline.P4Info)
	return nil
}

// Capture is what the card's tap says of the run that it has just watched; nil for one that sees everything by itself.
func (c *Card) Capture() (*fpga.Capture, error) {
	if tap, ok := c.Tap.(fpga.Capturer); ok {
		return tap.Capture()
	}
	return nil, nil
}

// control starts an agent in front of the tables and makes this process its primary controller.
func (b *Testbed) control(ctx context.Context, parts *Parts, told []program.Description, o OpenOptions) error {
	listen := o.Listen
	if listen == "" {
		address, remove, err := privateAddress()
		if err != nil {
			return err
		}
		b.close = append(b.close, remove)
		listen = address
	}
	if here, ok := parts.Tables.(*agent.Embedded); ok {
		b.version = func() uint64 { return here.Tables().Version() }
	}
	a, err := agent.New(agent.Options{Backend: parts.Tables, Profile: parts.Profile, Programs: told})
	if err != nil {
		return err
	}
	if err := a.Install(p4ctl.PipelineConfig(parts.Profile)); err != nil { // tells whoever connects how large the tables are
		return err
	}
	listener, err := agent.Listen(listen, false)
	if err != nil {
		return err
	}
	server := a.Serve(listener, nil)
	b.close = append(b.close, server.Close)
	return b.connect(ctx, server.Target(), Access{Programs: o.Programs})
}
