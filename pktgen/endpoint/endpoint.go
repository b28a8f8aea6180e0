// Package endpoint is a worker's or a server's side of an aggregation protocol, as pure state machines: what to send when,
// what to wait for, when to ask again. The same code runs in simulated hosts, in trainings and in real processes; whoever
// drives an endpoint gives it time, packets and the ends of computations through its methods, and is asked for the rest
// through Host.
package endpoint

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// ErrConfig is the kind of every refused configuration.
var ErrConfig = olaf.NewError(olaf.Usage, "bad endpoint configuration")

// Never is when an endpoint that waits for nothing wants to be called.
const Never olaf.Time = math.MaxInt64

// Peer is whom a packet is for: a worker by its number in the job, or one of those below.
type Peer int32

const (
	Network Peer = -1 - iota // the aggregation program of the first switch on the way
	Server                   // the job's parameter server
)

// Host is where an endpoint runs. Its answers come later, through the endpoint's methods, never from within the call.
type Host interface {
	// Compute begins a gradient; Computed follows. vector counts a worker's gradients from 0.
	Compute(vector uint32)
	// Message begins a message: the packets that are sent until the next one belong to it. Hosts charge their cost by it.
	Message()
	// Send passes a packet on and says when it will have left the host, as far as that is known. p and lanes are valid
	// during the call; lanes is nil, or p.Lanes long.
	Send(to Peer, p *program.Packet, lanes []uint32) (left olaf.Time)
	// Apply begins an update of the weights by a sum; Applied follows. a is valid during the call, and for a server until Applied.
	Apply(a *Aggregate)
}

// Endpoint is one side of a protocol. It is not safe for concurrent use, and the same calls always cause the same ones.
type Endpoint interface {
	// Start begins the job.
	Start(now olaf.Time)
	// Computed says that the gradient that Compute asked for is ready: its values, or nil where none are carried.
	Computed(now olaf.Time, values []uint32)
	// Applied says that the update that Apply asked for is done.
	Applied(now olaf.Time)
	// Receive takes a packet that arrived. Nothing is kept of the arguments.
	Receive(now olaf.Time, p *program.Packet, lanes []uint32)
	// Next is when Timer wants to be called, Never when nothing is waited for.
	Next() olaf.Time
	Timer(now olaf.Time)
	// Done says that the job is over on this side.
	Done() bool
	// Counts are the values of the ledger that Describe declares, in its order.
	Counts() []uint64
}

// Leaver is an endpoint for which others wait, and who are to know when it gives up.
type Leaver interface {
	Endpoint
	// Leave says so to them, by packets that are sent at once.
	Leave()
	// Superseded says that one of the others began another job, and left nothing that this one could be ended with.
	Superseded() bool
	// Refused is why the job cannot begin, empty if it can.
	Refused() string
}

// Aggregate is a sum of gradients that is about to be applied.
type Aggregate struct {
	Number  uint32 // of the update, from 0
	Vectors uint32 // contributions inside its first packet
	Torn    bool   // its packets hold different sets of contributions
	// Of packets that are applied by themselves: which of the vector's values Values begins with, and, of a server, whose they are,
	// the newest of those inside, and the sum of their rewards in 1/256.
	First  int
	Job    olaf.ClusterID
	Worker olaf.WorkerID
	Vector uint32
	Reward int32
	Trace  program.Trace // of its first packet
	Values []uint32      // nil where none are carried
	// At a server of packets that are applied one by one: how many wait behind this one, and how many were dropped so far for want of room.
	Waiting, Dropped int
}

// Layout is how a vector is cut into packets.
type Layout struct {
	Values    int // 32-bit words of a vector
	PerPacket int // of them in one packet
	Messages  int // that a host makes of a vector; 0 is one
}

// Packets is how many a vector takes.
func (l Layout) Packets() int { return (l.Values + l.PerPacket - 1) / l.PerPacket }

// Lanes is how many values packet i holds.
func (l Layout) Lanes(i int) int { return min(l.PerPacket, l.Values-i*l.PerPacket) }

// fit makes the layout that of a vector with so many values, if it carries any; vectors of a job may differ in length.
func (l *Layout) fit(values []uint32) {
	if values != nil {
		l.Values = len(values)
	}
}

// opens says that packet i is the first of a message.
func (l Layout) opens(i int) bool {
	n := max(1, l.Messages)
	per := (l.Packets() + n - 1) / n
	return i%per == 0
}

// cut is the values of packet i, nil of a vector that carries none.
func (l Layout) cut(values []uint32, i int) []uint32 {
	if values == nil {
		return nil
	}
	return values[i*l.PerPacket:][:l.Lanes(i)]
}

// Config is what every worker is built with.
type Config struct {
	Job     olaf.ClusterID
	Worker  olaf.WorkerID // also its number in the job
	Workers int
	Layout
	Updates uint32    // of the weights, after which the job ends
	Line    olaf.Rate // of the host's link, where a protocol divides rates; 0 where nobody says
}

// badTimeout refuses a silence below 0.
func badTimeout(t olaf.Duration) error {
	return fmt.Errorf("%w: a timeout of %s; use more than 0, or leave it out", ErrConfig, t)
}

func (c *Config) check() error {
	switch {
	case c.Workers < 1:
		return fmt.Errorf("%w: a job of %d workers", ErrConfig, c.Workers)
	case c.Values < 1 || c.PerPacket < 1:
		return fmt.Errorf("%w: vectors of %d values in packets of %d", ErrConfig, c.Values, c.PerPacket)
	case c.Messages < 0 || c.Messages > c.Packets():
		return fmt.Errorf("%w: %d messages of a vector of %d packets", ErrConfig, c.Messages, c.Packets())
	case c.Updates < 1:
		return fmt.Errorf("%w: a job of %d updates", ErrConfig, c.Updates)
	}
	return nil
}

// packet is which packet of a vector p is of; what no vector is long enough for stays beyond all of them.
func packet(p *program.Packet) int { return int(min(p.Seg, math.MaxInt32)) }

func nanoseconds(t olaf.Time) uint64 { return uint64(t) / uint64(olaf.Nanosecond) }
