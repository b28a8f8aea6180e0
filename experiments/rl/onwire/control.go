package onwire

import (
	"cmp"
	"net/netip"
	"strconv"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/fpga/program"
)

// controlArgs returns the arguments with which 'olafctl testbed worker' applies the transmission control of a training
// run.
func controlArgs(c *rl.Config) []string {
	if c.Control == nil {
		return nil
	}
	return []string{"--tc", time.Duration(c.Control.Threshold / olaf.Nanosecond).String(), "--slope",
		string(cmp.Or(c.Control.Slope, tc.Urgency)), "--tc-law", string(cmp.Or(c.Control.Law, tc.PaperLaw)), "--tc-ack", string(cmp.Or(c.Control.Ack, tc.NumberAck)), "--seed",
		strconv.FormatUint(c.Seed, 10)}
}

// PlaceAddresses returns a function that returns the source address of a packet. Each place in a vector has its own
// address. The addresses are consecutive and begin with first.
func PlaceAddresses(first netip.Addr, packets int) func(*program.Packet) netip.Addr {
	all := make([]netip.Addr, packets)
	for i := range all {
		all[i] = placeAddress(first, i)
	}
	return func(p *program.Packet) netip.Addr { return all[p.Seg] }
}
