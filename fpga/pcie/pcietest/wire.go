package pcietest

import (
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// Frame is a frame that was sent by the card.
type Frame struct {
	At   time.Time // time when the last bit left, on the card's clock
	Data []byte    // without FCS
}

// txPackets and rxPackets are the offsets of a MAC's counters for sent and received frames.
const txPackets, rxPackets = 0x500, 0x608

// Sent returns the frames sent to the parameter server since its previous call, and adds them to the MAC counters of a
// port. The blocks must record complete frames, which requires a twin with Wire or an RTL model with Record.
func (c *Card) Sent(port int) ([]Frame, error) {
	start, err := regmap.Read64(c.Blocks, regmap.GeneratorStartCycle)
	if err != nil {
		return nil, err
	}
	if joined, ok := c.Blocks.(interface{ RunStart() int64 }); ok {
		start = uint64(joined.RunStart())
	}
	c.packets = c.Blocks.DrainPackets(c.packets[:0])
	var frames []Frame
	for i := range c.packets {
		p := &c.packets[i]
		if p.Kind == twin.Ack {
			continue
		}
		data := make([]byte, olaf.MaxFrame)
		a := &p.Addresses
		n, err := olaf.EncodeUpdate(data, &olaf.Addresses{SrcMAC: a.SourceMAC, DstMAC: a.DestMAC, SrcIP: a.SourceIP,
			DstIP: a.DestIP, SrcPort: a.SourcePort}, &p.Update, p.Lanes)
		if err != nil {
			return nil, err
		}
		began := c.booted.Add(time.Duration(int64(start) * int64(olaf.Cycle/olaf.Nanosecond)))
		frames = append(frames, Frame{began.Add(time.Duration(p.At.NS())), data[:n]})
		c.Ports[port].Running[txPackets]++
	}
	return frames, nil
}
