// Package pair combines two cards into one device. A cable connects the second port of one to the first port of the
// other, and the generator of the first sends to the queue of the second.
package pair

import (
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// ErrRole reports that a card's image lacks the required part.
var ErrRole = olaf.NewError(olaf.Device, "the card's image lacks a role")

// Device is the two cards as one. Its registers are those of the queue's card, except for the generator block. Accesses
// that act on all blocks go to both cards. It closes both cards. It is not safe for concurrent use.
type Device struct {
	generator, queue fpga.Device
	together         bool
	refused          fpga.Device // card that refused the last access
}

// New joins two cards and stops a generator that still runs. If together is set, time passes on both at once, as on
// real cards; otherwise first on the generator's card. The error matches ErrRole if an image lacks the role.
func New(generator, queue fpga.Device, together bool) (*Device, error) {
	d := &Device{generator: generator, queue: queue, together: together, refused: queue}
	if err := errors.Join(CheckRole(generator, regmap.CommonRoleGenerator), CheckRole(queue, regmap.CommonRoleAccelerator)); err != nil {
		return nil, err
	}
	if err := generator.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandAbort); err != nil {
		return nil, fmt.Errorf("stop the generator: %w", err)
	}
	return d, d.leadOut()
}

// CheckRole returns an error that matches ErrRole if the image of a card has no generator, or no queue.
func CheckRole(d fpga.Device, role uint32) error {
	built, err := d.Read32(regmap.CommonRole)
	if err != nil {
		return err
	}
	if built&role == role {
		return nil
	}
	part := map[uint32]string{regmap.CommonRoleGenerator: "generator", regmap.CommonRoleAccelerator: "queue"}[role]
	return fmt.Errorf("%w: %s was built without a %s (common.role is %#x); use a card whose image has one", ErrRole,
		d.Identity().Address, part, built)
}

// leadOut routes the generator's frames out of its card.
func (d *Device) leadOut() error {
	able, err := fpga.HasGeneratorControl(d.generator)
	if err == nil && !able {
		return fmt.Errorf("%w: the generator of %s only feeds its own queue: its register map has no generator.control; "+
			"program a newer image", ErrRole, d.generator.Identity().Address)
	}
	if err == nil {
		err = d.generator.Write32(regmap.GeneratorControl, regmap.GeneratorControlWire)
	}
	if err != nil {
		return fmt.Errorf("send the generator's frames out: %w", err)
	}
	return nil
}

// cardOf returns the card that has a register.
func (d *Device) cardOf(addr uint32) fpga.Device {
	if addr&^0xfff == regmap.GeneratorBase {
		return d.generator
	}
	if addr == regmap.CommonErrorAddress {
		return d.refused
	}
	return d.queue
}

// note records which card refused the last access, because common.error_address is read from that card.
func (d *Device) note(card fpga.Device, err error) error {
	if err != nil {
		d.refused = card
	}
	return err
}

// Identity returns the queue card's identity with both addresses.
func (d *Device) Identity() fpga.Identity {
	id := d.queue.Identity()
	id.Address += " with the generator of " + d.generator.Identity().Address
	return id
}

// Read32 reads a register from the card that has it, or combines both cards' values for a shared register.
func (d *Device) Read32(addr uint32) (uint32, error) {
	switch addr {
	case regmap.CommonRole:
		return regmap.CommonRoleAccelerator | regmap.CommonRoleGenerator, nil
	case regmap.CommonErrors, regmap.CommonCapabilities, regmap.CommonMaxPacketBytes:
		return d.readBoth(addr)
	}
	card := d.cardOf(addr)
	v, err := card.Read32(addr)
	return v ^ turned(addr), d.note(card, err)
}

// turned returns the bits of a register that mean the opposite on the generator's card: frames that leave that card
// reach the queue, and frames that stay do not.
func turned(addr uint32) uint32 {
	if addr == regmap.GeneratorControl {
		return regmap.GeneratorControlWire
	}
	return 0
}

// readBoth combines the answers of both cards.
func (d *Device) readBoth(addr uint32) (uint32, error) {
	g, err1 := d.generator.Read32(addr)
	q, err2 := d.queue.Read32(addr)
	if err := errors.Join(d.note(d.generator, err1), d.note(d.queue, err2)); err != nil {
		return q, err
	}
	switch addr {
	case regmap.CommonErrors:
		return g | q, nil
	case regmap.CommonMaxPacketBytes:
		return min(g, q), nil
	}
	const faults = regmap.CommonCapabilitiesFaultInjection
	return q&^faults | g&faults, nil
}

// Write32 writes a register of the card that has it. Commands to all blocks, and clearing of their errors, go to both.
func (d *Device) Write32(addr, value uint32) error {
	switch addr {
	case regmap.CommonCommand, regmap.CommonErrors:
		err := errors.Join(d.note(d.generator, d.generator.Write32(addr, value)), d.note(d.queue, d.queue.Write32(addr, value)))
		if err == nil && addr == regmap.CommonCommand && value&regmap.CommonCommandReset != 0 {
			err = d.leadOut()
		}
		return err
	}
	card := d.cardOf(addr)
	return d.note(card, card.Write32(addr, value^turned(addr)))
}

// WriteBurst writes all words to one address.
func (d *Device) WriteBurst(addr uint32, words []uint32) error {
	card := d.cardOf(addr)
	return d.note(card, card.WriteBurst(addr, words))
}

// Sleep lets time pass on both cards.
func (d *Device) Sleep(ctx context.Context, t olaf.Duration) error {
	first, then := d.generator, d.queue
	rest := t
	if d.together { // time that passes on the queue's card has passed on the other
		first, then, rest = d.queue, d.generator, 0
	}
	if err := first.Sleep(ctx, t); err != nil {
		return err
	}
	return then.Sleep(ctx, rest)
}

// Part routes the generator to its own queue again, as after a reset, and closes its card.
func (d *Device) Part() error {
	err := d.generator.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandAbort)
	if err == nil {
		err = d.generator.Write32(regmap.GeneratorControl, 0)
	}
	return errors.Join(err, d.generator.Close())
}

// Close separates the cards and closes both.
func (d *Device) Close() error { return errors.Join(d.Part(), d.queue.Close()) }

// PortCounts returns the port counts of the queue's card, and then those of the generator's port to it. If
// one of the cards has no ports, neither does their pair, or only those of the queue's card.
func (d *Device) PortCounts() ([]fpga.Port, error) {
	all, err := fpga.PortCounts(d.queue)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	generator, err := fpga.PortCounts(d.generator)
	if err != nil || len(generator) <= outPort {
		return all, err
	}
	feeds := generator[outPort]
	feeds.Feeds = true
	return append(all, feeds), nil
}

// outPort is the generator card's port at the cable to the queue's card.
const outPort = 1

// AddsUpdates reports whether the programs of the queue's card sum the generator's updates.
func (d *Device) AddsUpdates() bool { return fpga.AddsUpdates(d.queue) }

// LogsArrivals reports whether the queue's card logs the arrivals at its queue.
func (d *Device) LogsArrivals() bool {
	_, ok := fpga.FindArrivalLog(d.queue)
	return ok
}

// Arrivals returns the arrivals logged by the queue's card.
func (d *Device) Arrivals() ([]fpga.Arrival, error) {
	log, ok := fpga.FindArrivalLog(d.queue)
	if !ok {
		return nil, fmt.Errorf("%w: %s logs no arrivals", fpga.ErrRefused, d.queue.Identity().Address)
	}
	return log.Arrivals()
}

// Capture returns the report of the queue's device on a run that is captured elsewhere; nil if it has none.
func (d *Device) Capture() (*fpga.Capture, error) {
	if c, ok := d.queue.(fpga.Capturer); ok {
		return c.Capture()
	}
	return nil, nil
}

// Twins is two twins as one device. It returns frames like a single twin.
type Twins struct {
	*Device
	sender, receiver *twin.Twin
}

// JoinTwins connects two twins with a cable and combines them into one device.
func JoinTwins(sender, receiver *twin.Twin) (*Twins, error) {
	if err := twin.Join(sender, receiver); err != nil {
		return nil, err
	}
	d, err := New(sender, receiver, false)
	return &Twins{d, sender, receiver}, err
}

// Drain returns the updates delivered since the last call, on the generator's run clock.
func (t *Twins) Drain(buf []olaf.Observation) []olaf.Observation { return t.receiver.Drain(buf) }

// DrainPackets returns the frames that left the queue's card since the last call.
func (t *Twins) DrainPackets(buf []twin.Packet) []twin.Packet { return t.receiver.DrainPackets(buf) }

// Record turns recording in both twins on or off.
func (t *Twins) Record(on bool) {
	t.sender.Record(on)
	t.receiver.Record(on)
}
