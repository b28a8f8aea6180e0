package onwire

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/fpga/program"
)

// Control is the transmission control of a worker on a host. It works like that of simulated workers but draws its own
// random numbers.
type Control struct {
	law        tc.Law
	ack        tc.AckContent
	controller tc.Controller
	draws      *rand.Rand
}

// NewControl returns the transmission control of a worker. law uses the part ack of each ACK's status. The random
// numbers depend on seed and worker.
func NewControl(law tc.Law, ack tc.AckContent, seed uint64, worker olaf.WorkerID) *Control {
	return &Control{law: law, ack: ack, draws: rand.New(rand.NewPCG(seed, uint64(worker)))}
}

// Heard implements endpoint.Gate.
func (c *Control) Heard(now olaf.Time, s olaf.QueueStatus) {
	status := tc.Status{Active: uint32(s.ActiveClusters), Slots: uint32(s.Slots), Occupancy: s.Occupancy}
	if c.ack == tc.FullAck { // the bit alone, so that a queue need not send its occupancy
		if status.Occupancy = 0; s.Full {
			status.Occupancy = status.Slots
		}
	}
	c.controller.OnAck(now, status)
}

// Sends implements endpoint.Gate.
func (c *Control) Sends(now olaf.Time) bool {
	return c.controller.Decide(c.law, now, c.draws.Float64())
}

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
