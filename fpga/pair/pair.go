// Package pair combines two cards into one device. A cable connects the second port of the first card to the first port
// of the second. The first card's generator sends to the second card's queue.
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

// ErrRole is the error for a card whose image lacks the required part, generator or queue.
var ErrRole = olaf.NewError(olaf.Device, "the card's image lacks a role")

// Device presents two cards as one device. Its registers are those of the card with the queue, except for the
// generator's block. Accesses that concern all blocks go to both cards. It is not safe for concurrent use.
type Device struct {
	generator, queue fpga.Device
	together         bool
	refused          fpga.Device // card that refused the last access
}

// New combines two cards into a device and stops the generator if it still runs. If together is set, Sleep lets time
// pass on both cards at once, as for real cards; otherwise it passes first on the generator's card. Closing the device
// closes both cards. The error matches ErrRole if an image lacks the required part.
func New(generator, queue fpga.Device, together bool) (*Device, error) {
	d := &Device{generator: generator, queue: queue, together: together, refused: queue}
	if err := errors.Join(checkRole(generator, regmap.CommonRoleGenerator), checkRole(queue, regmap.CommonRoleAccelerator)); err != nil {
		return nil, err
	}
	if err := generator.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandAbort); err != nil {
		return nil, fmt.Errorf("stop the generator: %w", err)
	}
	return d, d.leadOut()
}

// checkRole returns an error that matches ErrRole if the card's image lacks the part for role, a generator or a queue.
func checkRole(d fpga.Device, role uint32) error {
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

// leadOut sets the generator to send its frames out of its card.
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

// cardOf returns the card whose registers include addr.
func (d *Device) cardOf(addr uint32) fpga.Device {
	if addr&^0xfff == regmap.GeneratorBase {
		return d.generator
	}
	if addr == regmap.CommonErrorAddress {
		return d.refused
	}
	return d.queue
}

// note records card as the card that rejected the last access, because common.error_address must then be read from
// there.
func (d *Device) note(card fpga.Device, err error) error {
	if err != nil {
		d.refused = card
	}
	return err
}

// Identity returns the identity of the card with the queue. Its address names both cards.
func (d *Device) Identity() fpga.Identity {
	id := d.queue.Identity()
	id.Address += " with the generator of " + d.generator.Identity().Address
	return id
}

// Read32 reads a register from the card that has it. For a register that both cards share, it combines their values.
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

// turned returns the bits of a register that must be inverted for the generator's card. Frames that leave this card
// reach the queue, so the bit that selects between wire and queue has the opposite meaning.
func turned(addr uint32) uint32 {
	if addr == regmap.GeneratorControl {
		return regmap.GeneratorControlWire
	}
	return 0
}

// readBoth reads a shared register from both cards and combines the values.
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

// Write32 writes a register of the card that has it. Commands for all blocks, and writes that clear errors, go to both
// cards.
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

// WriteBurst writes all words to one address, on the card that has the register.
func (d *Device) WriteBurst(addr uint32, words []uint32) error {
	card := d.cardOf(addr)
	return d.note(card, card.WriteBurst(addr, words))
}

// Sleep lets time pass on both cards.
func (d *Device) Sleep(ctx context.Context, t olaf.Duration) error {
	first, then := d.generator, d.queue
	rest := t
	if d.together { // time that passes on the queue's card also passes on the other card
		first, then, rest = d.queue, d.generator, 0
	}
	if err := first.Sleep(ctx, t); err != nil {
		return err
	}
	return then.Sleep(ctx, rest)
}

// Part stops the generator, routes its frames to its own card's queue again, as after a reset, and closes that card.
func (d *Device) Part() error {
	err := d.generator.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandAbort)
	if err == nil {
		err = d.generator.Write32(regmap.GeneratorControl, 0)
	}
	return errors.Join(err, d.generator.Close())
}

// Close separates the cards and closes both.
func (d *Device) Close() error { return errors.Join(d.Part(), d.queue.Close()) }

// PortCounts returns the port counts of the queue's card, followed by the counts of the generator's port to it. The
// latter are missing if the generator's card does not count. If the queue's card has no ports, the result is nil.
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

// outPort is the port of the generator's card that is connected to the queue's card.
const outPort = 1

// AddsUpdates reports whether the programs on the queue's card sum the generator's updates.
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

// Capture returns the capture report of the queue's device for a run that was captured outside the card, or nil if it
// has none.
func (d *Device) Capture() (*fpga.Capture, error) {
	if c, ok := d.queue.(fpga.Capturer); ok {
		return c.Capture()
	}
	return nil, nil
}

// Twins combines two twins into one device. It returns sent frames like a single twin.
type Twins struct {
	*Device
	sender, receiver *twin.Twin
}

// JoinTwins connects two twins by a simulated cable and combines them into one device.
func JoinTwins(sender, receiver *twin.Twin) (*Twins, error) {
	if err := twin.Join(sender, receiver); err != nil {
		return nil, err
	}
	d, err := New(sender, receiver, false)
	return &Twins{d, sender, receiver}, err
}

// Drain appends the updates delivered since its previous call to buf. Their times are on the generator's run clock.
func (t *Twins) Drain(buf []olaf.Observation) []olaf.Observation { return t.receiver.Drain(buf) }

// DrainPackets appends the frames that left the queue's card since its previous call to buf.
func (t *Twins) DrainPackets(buf []twin.Packet) []twin.Packet { return t.receiver.DrainPackets(buf) }

// Record enables or disables recording in both twins.
func (t *Twins) Record(on bool) {
	t.sender.Record(on)
	t.receiver.Record(on)
}
