package backends

import (
	"fmt"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// cardTables gives the driver of a card's tables access to the card, which other users share.
type cardTables struct {
	do   func(func()) // runs a function while no other user accesses the card
	card *pcie.Device
}

// Read32 reads a register of the table windows.
func (c *cardTables) Read32(addr uint32) (v uint32, err error) {
	c.do(func() { v, err = c.card.Tables().Read32(addr) })
	return v, err
}

// Write32 writes a register of the table windows.
func (c *cardTables) Write32(addr, value uint32) (err error) {
	c.do(func() { err = c.card.Tables().Write32(addr, value) })
	return err
}

// Check returns an error if the card is not the one that was opened.
func (c *cardTables) Check() (err error) {
	c.do(func() { err = c.card.Check() })
	return err
}

// SetGroup sets the members of a multicast group. If the group could be written only in part, it is removed.
func (c *cardTables) SetGroup(id uint32, members []agent.Member) (err error) {
	c.do(func() { err = setGroup(c.card, id, members) })
	return err
}

// DeleteGroup removes a multicast group.
func (c *cardTables) DeleteGroup(id uint32) (err error) {
	c.do(func() { err = setGroup(c.card, id, nil) })
	return err
}

// setGroup writes a group and reads it back. A missing member would go unnoticed otherwise, because packets still reach
// the other members.
func setGroup(d fpga.Registers, id uint32, members []agent.Member) error {
	if err := writeGroup(d, id, members); err != nil {
		return err
	}
	if len(members) == 0 {
		return nil
	}
	err := checkGroup(d, members)
	if err != nil {
		err = fmt.Errorf("multicast group %d: %w", id, err)
		_ = d.Write32(regmap.ReplicationGroupSize, 0) // the first error is the cause
	}
	return err
}

func checkGroup(d fpga.Registers, members []agent.Member) error {
	if err := d.Write32(regmap.ReplicationMemberIndex, 0); err != nil {
		return err
	}
	for i, m := range members {
		got, err := d.Read32(regmap.ReplicationMemberData)
		if err != nil {
			return err
		}
		if want := memberWord(m); got != want {
			return fmt.Errorf("%w: member %d reads %#x after %#x was written", fpga.ErrDoubtful, i, got, want)
		}
	}
	return nil
}

func memberWord(m agent.Member) uint32 {
	return m.Port<<regmap.ReplicationMemberDataPortShift | m.Instance
}

// maxPort is the largest port number that the field of a group member can represent.
const maxPort = regmap.ReplicationMemberDataPortMask >> regmap.ReplicationMemberDataPortShift

func writeGroup(d fpga.Registers, id uint32, members []agent.Member) error {
	for _, m := range members {
		if m.Port > maxPort || m.Instance > regmap.ReplicationMemberDataWorkerMask {
			return fmt.Errorf("%w: port %d, instance %d of group %d; ports are 0 to %d, instances 0 to %d", fpga.ErrRefused,
				m.Port, m.Instance, id, maxPort, regmap.ReplicationMemberDataWorkerMask)
		}
	}
	if err := d.Write32(regmap.ReplicationGroupIndex, id); err != nil {
		return err
	}
	if err := d.Write32(regmap.ReplicationGroupSize, uint32(len(members))); err != nil {
		return err
	}
	for _, m := range members {
		if err := d.Write32(regmap.ReplicationMemberData, memberWord(m)); err != nil {
			_ = d.Write32(regmap.ReplicationGroupSize, 0) // the first error is the cause
			return err
		}
	}
	return nil
}
