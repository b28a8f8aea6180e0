// Package testbed opens the devices on which experiments run. A device is a card or its twin, with a controller's
// session and a capture. It is in this process, or in another process that has an agent. The package also lends devices
// to other processes, reserves the devices of a host for a user, and compares the clocks of hosts and cards. The rows of
// devices other than the twin come from package backends.
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
	"github.com/olafctl/olaf/results"
)

// ErrBackend reports that this build cannot open a device of the requested kind.
var ErrBackend = olaf.NewError(olaf.Usage, "no such device backend")

// Testbed is a device with tables, generators and captures. Runs use a card and a twin in the same way.
type Testbed struct {
	// Cards are equal cards, for parallel runs. A real testbed has one card.
	Cards []Card
	// Tables is the primary controller's session for all cards.
	Tables *p4ctl.Session
	// P4InfoHash is the SHA-256 of the device's P4Info.
	P4InfoHash string
	// AgeErrorPct is the accepted error of ages relative to a run's mean AoM if two clocks measure them; ages with
	// larger errors are withheld. 0 means 10 %.
	AgeErrorPct float64
	Abilities   Ability // abilities of the device
	Hosts       *Hosts  // as requested
	address     string  // as opened, in the table of devices
	devices     Devices
	profile     p4.Profile
	close       []func() error
	// describeHosts describes the hosts of a testbed with roles; nil for other testbeds.
	describeHosts func(context.Context) []results.Host
	// explain returns why an agent's tables cannot be reached, or the error itself; nil where only the error is known.
	explain func(error) error
	// noteError stores why a run failed, for a testbed that stays up; nil for other testbeds.
	noteError func(error)
	// version returns a counter of changes to the tables by any controller; nil if they cannot be seen here.
	version func() uint64
	// programmed is the content that was last read back.
	programmed struct {
		hash    string // empty at first
		version uint64
	}
}

// Card is one device and the capture behind it.
type Card struct {
	Device fpga.Device
	Tap    capture.Tap
}

// EndsRecorder is implemented by devices that can capture both ends of their cables, at the workers and at the server.
// These devices have the ability ShowsEnds.
type EndsRecorder interface {
	// RecordEnds starts a new capture, or ends it.
	RecordEnds(on bool) error
	// Ends returns the current capture; nil without one.
	Ends() Ends
}

// Gate decides from ACKs which updates of a worker are sent; tc.Gate is one.
type Gate interface {
	RecordStatus(now olaf.Time, s olaf.QueueStatus)
	Sends(now olaf.Time) bool
}

// Control is the transmission control of a run.
type Control struct {
	Gates    []Gate           // by worker
	Clusters []olaf.ClusterID // by worker; a merged update's ACK reaches all workers of its cluster
	// Window and Weights let ACKs count the clusters that sent in this window or the previous one, each with its
	// weight. If Window is 0, ACKs count the clusters with an update inside the queue.
	Window  olaf.Duration
	Weights []uint32 // by cluster
}

// Answerer is a device with AnswersUpdates.
type Answerer interface {
	// StartControl answers delivered updates with ACKs that cross the queue's switch, and lets each worker's gate
	// decide which updates the generator sends, until stop is called. The queue must be configured, and the generator
	// idle.
	StartControl(c *Control) (stop func() (withheld int64, err error), err error)
}

// Ends is a capture at the end of the workers and the end of the server, in this order.
type Ends interface {
	// Drain visits the packets captured since the last call, in time order. Their bytes are reused.
	Drain(visit func(*capture.Packet) error) error
	// Counts returns the number of packets visited, by end, and Lost the number that found no room.
	Counts() []uint64
	Lost() (int64, error)
}

// EndNames contains the names of the two ends in a capture file.
var EndNames = []string{"workers", "server"}

// AgeError returns AgeErrorPct, or the default value if it is 0.
func (b *Testbed) AgeError() float64 { return cmp.Or(b.AgeErrorPct, 10) }

// OpenOptions contains the options for opening a testbed.
type OpenOptions struct {
	Access
	Cards  int       // number of parallel cards, if the device can be copied; 0 means one
	Listen string    // also serve P4Runtime here; empty for a private socket
	Wire   bool      // transfer gradients and record frames, for captures
	Frame  olaf.Size // largest frame that will be sent, which the interfaces of roles must carry; 0 if unknown
	// ReadPorts, 1 or 2, simulates the card's logic with this number of read ports on its gradient memory; 0 for the
	// device's default.
	ReadPorts int
	// Unit is the hardware in front of a switch program whose time is simulated; nil for none.
	Unit *aggregator.Unit
	// Workers is the number of hosts for programs besides the server's, each with Addresses addresses; 0 for none.
	Workers, Addresses int
	// Observe returns the observer of each card, numbered from 0; it may be nil. It is only called for devices that are
	// Observable.
	Observe func(card int) twin.Observer
}

// OpenTestbed opens the device at an address with its tables and a capture. An empty address selects the default
// device. The error matches ErrBackend if the device cannot be reached, and is an *Unsupported if the device lacks an
// ability.
func OpenTestbed(ctx context.Context, address string, o OpenOptions) (*Testbed, error) {
	o.Cards = max(o.Cards, 1)
	devices := o.deviceTable()
	if err := devices.Check(address, o.needs()); err != nil {
		return nil, err
	}
	row, name, err := devices.Lookup(address)
	if err != nil {
		return nil, err
	}
	if err := o.checkReserved(row, name); err != nil {
		return nil, err
	}
	if o.Generator != "" {
		if err := o.checkGenerator(); err != nil {
			return nil, err
		}
	}
	bed, err := row.Testbed(ctx, name, o)
	if err != nil {
		return nil, err
	}
	bed.Abilities, bed.address, bed.devices = row.Abilities, address, devices
	if err := bed.Cards[0].checkFrame(o.Frame); err != nil {
		return nil, closeAfter(err, bed)
	}
	return bed, nil
}

// needs returns the abilities that the options require of a device.
func (o *OpenOptions) needs() Ability {
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
	return needs
}

// CheckAdds returns an error if the testbed's programs do not add updates from open-loop workers. The row of an agent
// does not show this ability. The error is an *Unsupported and lists the devices for closed-loop workers.
func (b *Testbed) CheckAdds() error {
	if fpga.AddsUpdates(b.Cards[0].Device) {
		return nil
	}
	return &Unsupported{Address: b.address, Lacks: NeitherWay, Able: b.devices.With(ClosesLoop)}
}

// JoinHosts adds the hosts of the testbed's roles. describe is called after runs, and end when the testbed is closed.
func (b *Testbed) JoinHosts(describe func(context.Context) []results.Host, end func() error) {
	if describe != nil {
		b.describeHosts = describe
	}
	b.close = append([]func() error{end}, b.close...)
}

// KeepErrors sets the function that NoteError calls with an error.
func (b *Testbed) KeepErrors(note func(error)) { b.noteError = note }

// NoteError records the error of a run, if the testbed stays up after the command. It ignores nil.
func (b *Testbed) NoteError(err error) {
	if b.noteError != nil && err != nil {
		b.noteError(err)
	}
}

// HasHosts reports whether the testbed has roles on hosts, which DescribeHosts describes.
func (b *Testbed) HasHosts() bool { return b.describeHosts != nil }

// DescribeHosts returns descriptions of the hosts of a testbed with roles. It returns nil for other testbeds.
func (b *Testbed) DescribeHosts(ctx context.Context) []results.Host {
	if b.describeHosts == nil {
		return nil
	}
	return b.describeHosts(ctx)
}

// Can reports whether the device has all of the abilities.
func (b *Testbed) Can(a Ability) bool { return b.Abilities&a == a }

// closeAfter closes b and returns err, joined with the error of closing b.
func closeAfter(err error, b *Testbed) error { return errors.Join(err, b.Close()) }

// Close closes all parts of the testbed. The part that was opened last is closed first.
func (b *Testbed) Close() error {
	var errs []error
	for i := len(b.close) - 1; i >= 0; i-- {
		errs = append(errs, b.close[i]())
	}
	b.close = nil
	return errors.Join(errs...)
}

// Guard returns a context that ends when this process loses the tables. The context's cause is the reason.
func (b *Testbed) Guard(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopped := make(chan struct{})
	go func() {
		select {
		case <-b.Tables.Preempted():
			cancel(b.CheckTables())
		case <-stopped:
		}
	}()
	return ctx, func() {
		close(stopped)
		cancel(context.Canceled)
	}
}

// CheckTables returns an error if this process lost the tables. It must be called at the end of a run, because the
// context that Guard returns ends slightly later.
func (b *Testbed) CheckTables() error {
	select {
	case <-b.Tables.Preempted():
		return fmt.Errorf("the tables: %w", p4ctl.ErrPreempted)
	default:
		return nil
	}
}

// Program pushes a pipeline with the tables of the switch programs in want, writes the tables, reads them back, and
// returns the hash of their content. It writes nothing if the tables are unchanged since they were read back.
func (b *Testbed) Program(ctx context.Context, want p4ctl.Tables) (hash string, err error) {
	if b.explain != nil {
		defer func() { err = b.explain(err) }()
	}
	hash = want.Hash()
	if b.version != nil && hash == b.programmed.hash && b.version() == b.programmed.version {
		return hash, nil
	}
	if err := b.pushPipeline(ctx, want.Programs()...); err != nil {
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

// pushPipeline pushes our pipeline with the tables of the given switch programs.
func (b *Testbed) pushPipeline(ctx context.Context, programs ...program.Description) error {
	pipeline := p4ctl.PipelineConfig(b.profile, programs...)
	if _, err := b.Tables.PushPipeline(ctx, pipeline); err != nil {
		return err
	}
	b.P4InfoHash = p4.Hash(pipeline.P4Info)
	return nil
}

// Capture returns the quality of the last run's capture, which the card's tap reports. It returns nil for a capture
// without losses.
func (c *Card) Capture() (*fpga.Capture, error) {
	if tap, ok := c.Tap.(fpga.Capturer); ok {
		return tap.Capture()
	}
	return nil, nil
}

// controlTables starts an agent for the tables and makes this process its primary controller.
func (b *Testbed) controlTables(ctx context.Context, parts *Parts, programs []program.Description, o OpenOptions) error {
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
	a, err := agent.New(agent.Options{Backend: parts.Tables, Profile: parts.Profile, Programs: programs})
	if err != nil {
		return err
	}
	if err := a.Install(p4ctl.PipelineConfig(parts.Profile)); err != nil { // clients learn the sizes of the tables from it
		return err
	}
	listener, err := agent.Listen(listen, false)
	if err != nil {
		return err
	}
	server := a.Serve(listener, nil)
	b.close = append(b.close, server.Close)
	return b.connectTables(ctx, server.Target(), Access{Programs: o.Programs})
}
