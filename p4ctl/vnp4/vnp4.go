// Package vnp4 implements the table backend for a real card. It writes entries through AMD's vitisnetp4 driver, which a
// child process loads (package driver), and multicast groups through the replication block. The driver keeps its
// entries in memory and cannot read them back from the card. The backend therefore keeps a copy of every entry. If the
// child dies, the backend starts another child, resets the tables and writes all entries again.
package vnp4

import (
	"cmp"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
	"github.com/olafctl/olaf/p4ctl/vnp4/driver"
)

// ErrDriver is returned if the vendor's driver could not be started or died.
var ErrDriver = errors.New("vitisnetp4 driver")

// Registers accesses the registers that the driver may use. Addresses are offsets in BAR2.
type Registers interface {
	Read32(address uint32) (uint32, error)
	Write32(address uint32, value uint32) error
}

// Replication stores the multicast groups, which VNP4 does not support.
type Replication interface {
	SetGroup(id uint32, members []agent.Member) error
	DeleteGroup(id uint32) error
}

// Instance is a VNP4 block on the card.
type Instance struct {
	Block   string // vnp4_1 or vnp4_2, as in the names of tables
	Library string // shared object that the operator built together with the bitstream
	Config  string // data symbol in the library, XilVitisNetP4TargetConfig_…
	Base    uint32 // offset of its registers in BAR2
	Size    uint32 // size in bytes; the driver may not access registers outside
}

// Options configures a backend.
type Options struct {
	Instances   []Instance
	Registers   Registers
	Replication Replication
	// Command creates the child process, which must run driver.Main.
	Command func() *exec.Cmd
	// Patience is the longest silence of the driver before it counts as dead; default 10 s.
	Patience time.Duration
}

// Backend writes tables to a card. Like every agent.Backend, it must be used by only one goroutine at a time.
type Backend struct {
	options Options
	profile *configv1.P4Info
	blocks  map[string]int // indexes of the blocks by name
	names   map[uint32]string
	child   *child

	entries map[entryKey]*agent.Entry // entries on the card
	groups  map[uint32]bool
}

type entryKey struct{ table, key uint32 }

// New starts the driver. It does not change the card before the first Commit.
func New(o Options) (*Backend, error) {
	o.Patience = cmp.Or(o.Patience, 10*time.Second)
	b := &Backend{options: o, blocks: make(map[string]int), names: make(map[uint32]string),
		entries: make(map[entryKey]*agent.Entry), groups: make(map[uint32]bool)}
	b.profile = p4.Lab().Info() // profiles differ only in sizes
	for i, instance := range o.Instances {
		b.blocks[instance.Block] = i
	}
	for _, t := range b.profile.Tables {
		b.names[t.Preamble.Id] = t.Preamble.Name
		if _, ok := b.blocks[blockOf(t.Preamble.Name)]; !ok {
			return nil, fmt.Errorf("%w: no instance is configured for block %s", ErrDriver, blockOf(t.Preamble.Name))
		}
	}
	for _, a := range b.profile.Actions {
		b.names[a.Preamble.Id] = a.Preamble.Name
	}
	return b, b.start()
}

func blockOf(name string) string {
	block, _, _ := strings.Cut(name, ".")
	return block
}

// trimControl returns a name without the name of its control, as the driver uses it.
func trimControl(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// Close stops the driver. The tables on the card are not changed.
func (b *Backend) Close() error {
	if b.child == nil {
		return nil
	}
	return b.child.close()
}

// Verify accepts every pipeline, because the agent checks its shape and the bitstream determines its sizes.
func (b *Backend) Verify(*configv1.P4Info, []byte) error { return nil }

// AtomicBatches returns false, because a card accepts only one entry at a time.
func (b *Backend) AtomicBatches() bool { return false }

// Publish does nothing, because every change is already on the card.
func (b *Backend) Publish(*agent.State) {}

// Commit empties all tables and groups and writes the state to the card.
func (b *Backend) Commit(s *agent.State) error {
	if err := b.reset(); err != nil {
		return err
	}
	var err error
	s.Changes(func(c agent.Change) bool {
		err = b.Do(c)
		return err == nil
	})
	return err
}

func (b *Backend) reset() error {
	if err := b.ensureRunning(); err != nil {
		return err
	}
	for _, t := range b.profile.Tables {
		if err := b.resetTable(t.Preamble.Name); err != nil {
			return err
		}
	}
	clear(b.entries)
	for id := range b.groups {
		if err := b.options.Replication.DeleteGroup(id); err != nil {
			return err
		}
		delete(b.groups, id)
	}
	return nil
}

func (b *Backend) resetTable(name string) error {
	_, err := b.call(driver.Call{Op: driver.Reset, Block: b.blocks[blockOf(name)], Table: trimControl(name)})
	return err
}

// Do applies one change. If the driver dies during the change, Do writes the previous entries to the card again.
func (b *Backend) Do(c agent.Change) error {
	if c.Group != nil {
		return b.doGroup(c)
	}
	if err := b.ensureRunning(); err != nil {
		return err
	}
	err := b.writeEntry(c.Op, c.Entry)
	if errors.Is(err, ErrDriver) {
		if again := b.revive(); again != nil {
			return status.Errorf(codes.Unavailable, "%v; it could not be restarted: %v", err, again)
		}
		return status.Errorf(codes.Aborted, "%v; it was restarted and the tables written again, without this update", err)
	}
	if err != nil {
		return err
	}
	key := entryKey{c.Entry.Table, c.Entry.Key}
	if c.Op == v1.Update_DELETE {
		delete(b.entries, key)
	} else {
		b.entries[key] = c.Entry
	}
	return nil
}

func (b *Backend) doGroup(c agent.Change) error {
	if c.Op == v1.Update_DELETE {
		if err := b.options.Replication.DeleteGroup(c.Group.ID); err != nil {
			return err
		}
		delete(b.groups, c.Group.ID)
		return nil
	}
	if err := b.options.Replication.SetGroup(c.Group.ID, c.Group.Members); err != nil {
		return err
	}
	b.groups[c.Group.ID] = true
	return nil
}

var operations = map[agent.Op]driver.Op{v1.Update_INSERT: driver.Insert, v1.Update_MODIFY: driver.Update,
	v1.Update_DELETE: driver.Delete}

// writeEntry sends an entry to the driver. Key and parameters are big-endian numbers in the order of the P4 program.
func (b *Backend) writeEntry(op agent.Op, e *agent.Entry) error {
	name := b.names[e.Table]
	call := driver.Call{Op: operations[op], Block: b.blocks[blockOf(name)], Table: trimControl(name),
		Action: trimControl(b.names[e.Action])}
	for _, t := range b.profile.Tables {
		if t.Preamble.Id == e.Table {
			call.Key = appendBits(nil, e.Key, t.MatchFields[0].Bitwidth)
		}
	}
	for _, a := range b.profile.Actions {
		if a.Preamble.Id != e.Action {
			continue
		}
		for i, p := range a.Params {
			call.Params = appendBits(call.Params, e.Params[i], p.Bitwidth)
		}
	}
	_, err := b.call(call)
	return err
}

// appendBits appends a number of 16 or 32 bits to b. No other widths are in use.
func appendBits(b []byte, n uint32, bits int32) []byte {
	if bits <= 16 {
		return binary.BigEndian.AppendUint16(b, uint16(n))
	}
	return binary.BigEndian.AppendUint32(b, n)
}

// ensureRunning restarts the driver if it has died.
func (b *Backend) ensureRunning() error {
	if b.child != nil {
		return nil
	}
	if err := b.revive(); err != nil {
		return status.Errorf(codes.Unavailable, "%v", err)
	}
	return nil
}

// revive starts a new driver and writes all entries again, because the new driver has none.
func (b *Backend) revive() error {
	if err := b.start(); err != nil {
		return err
	}
	for _, t := range b.profile.Tables {
		if err := b.resetTable(t.Preamble.Name); err != nil {
			return err
		}
	}
	for _, e := range b.entries {
		if err := b.writeEntry(v1.Update_INSERT, e); err != nil {
			return err
		}
	}
	return nil
}

// child is a driver process that is running.
type child struct {
	command *exec.Cmd
	input   *os.File
	calls   *gob.Encoder
	answers chan driver.Answer // closed when the child has ended
}

func (b *Backend) start() error {
	c, err := startChild(b.options.Command())
	if err != nil {
		return fmt.Errorf("%w: %v", ErrDriver, err)
	}
	b.child = c
	for _, instance := range b.options.Instances {
		if _, err := b.call(driver.Call{Op: driver.Open, Library: instance.Library, Config: instance.Config}); err != nil {
			err = fmt.Errorf("%w: open %s: %s", ErrDriver, instance.Library, status.Convert(err).Message())
			if b.child != nil {
				err = errors.Join(err, b.child.close())
				b.child = nil
			}
			return err
		}
	}
	return nil
}

func startChild(command *exec.Cmd) (*child, error) {
	callsOut, callsIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answersOut, answersIn, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, callsOut.Close(), callsIn.Close())
	}
	command.ExtraFiles = []*os.File{callsOut, answersIn} // descriptors 3 and 4
	err = command.Start()
	callsOut.Close()
	answersIn.Close()
	if err != nil {
		return nil, errors.Join(err, callsIn.Close(), answersOut.Close())
	}
	c := &child{command: command, input: callsIn, calls: gob.NewEncoder(callsIn), answers: make(chan driver.Answer)}
	go c.receive(answersOut)
	return c, nil
}

func (c *child) receive(from io.ReadCloser) {
	defer close(c.answers)
	defer from.Close()
	answers := gob.NewDecoder(from)
	for {
		var a driver.Answer
		if answers.Decode(&a) != nil {
			return
		}
		c.answers <- a
	}
}

// close kills the child and waits until it has ended.
func (c *child) close() error {
	c.input.Close()
	if err := c.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	for range c.answers { // wait until receive ends
	}
	c.command.Wait() // the child was killed, so its exit status is known
	return nil
}

// call sends one call to the child and serves the child's register accesses until the call is done.
func (b *Backend) call(call driver.Call) (driver.Answer, error) {
	if err := b.child.calls.Encode(call); err != nil {
		return driver.Answer{}, b.killChild("it does not listen")
	}
	timer := time.NewTimer(b.options.Patience)
	defer timer.Stop()
	var card error // reason why a register access failed
	for {
		select {
		case a, ok := <-b.child.answers:
			switch {
			case !ok:
				return a, b.killChild("it died")
			case a.Kind == driver.Done && a.Fault != "":
				if card == nil {
					return a, refusalError(call, a.Fault)
				}
				return a, errors.Join(refusalError(call, a.Fault), card)
			case a.Kind == driver.Done:
				return a, nil
			}
			reply, err := b.accessRegister(a)
			card = cmp.Or(card, err)
			if err := b.child.calls.Encode(reply); err != nil {
				return a, b.killChild("it does not listen")
			}
		case <-timer.C:
			return driver.Answer{}, b.killChild(fmt.Sprintf("it was silent for %v", b.options.Patience))
		}
	}
}

// killChild kills a child that no longer works and returns an error that matches ErrDriver and contains the reason.
func (b *Backend) killChild(why string) error {
	err := b.child.close()
	b.child = nil
	return errors.Join(fmt.Errorf("%w: %s", ErrDriver, why), err)
}

// accessRegister accesses a register for the driver. The register must belong to the driver's instance.
func (b *Backend) accessRegister(a driver.Answer) (reply driver.Call, err error) {
	reply.Op = driver.Proceed
	at := a.Block
	if at < 0 || at >= len(b.options.Instances) || a.Address%4 != 0 || a.Address >= b.options.Instances[at].Size {
		reply.Fault = "outside"
		return reply, fmt.Errorf("the driver wants register 0x%x, outside of its instance", a.Address)
	}
	address := b.options.Instances[at].Base + a.Address
	if a.Kind == driver.Write {
		err = b.options.Registers.Write32(address, a.Value)
	} else {
		reply.Value, err = b.options.Registers.Read32(address)
	}
	if err != nil {
		reply.Fault = err.Error()
	}
	return reply, err
}

// refusals maps parts of the names of the driver's error codes to gRPC codes.
var refusals = []struct {
	part string
	code codes.Code
}{
	{"DUPLICATE_FOUND", codes.AlreadyExists},
	{"KEY_NOT_FOUND", codes.NotFound},
	{"FULL", codes.ResourceExhausted},
	{"INCOMPATIBLE", codes.FailedPrecondition},
}

func refusalError(call driver.Call, fault string) error {
	code := codes.Internal
	for _, r := range refusals {
		if strings.Contains(fault, r.part) {
			code = r.code
			break
		}
	}
	if call.Table != "" {
		fault += " (" + call.Table + ")"
	}
	return status.Errorf(code, "driver: %s", fault)
}
