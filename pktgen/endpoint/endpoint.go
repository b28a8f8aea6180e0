// Package endpoint implements the worker's and the server's side of aggregation protocols as pure state machines. They
// decide which packets to send, what to wait for, and when to send a request again. The same code runs in simulated
// hosts, in training and in real processes. The caller passes time, packets and results of computations to an endpoint
// by calling its methods. The endpoint requests everything else through Host.
package endpoint

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// ErrConfig is matched by errors in a configuration.
var ErrConfig = olaf.NewError(olaf.Usage, "bad endpoint configuration")

// Never is the time of an endpoint's next action if there is none.
const Never olaf.Time = math.MaxInt64

// Peer is the destination of a packet: a worker's number in the job, or one of the constants below.
type Peer int32

const (
	Network Peer = -1 - iota // the aggregation program of the first switch on the path
	Server                   // the job's parameter server
)

// Host is the environment of an endpoint. It delivers results by calling the endpoint's methods later, never during a
// call from the endpoint.
type Host interface {
	// Compute starts a gradient; Computed follows. vector counts a worker's gradients from 0.
	Compute(vector uint32)
	// Message begins a message: the packets until the next call belong to it. Hosts charge their cost by message.
	Message()
	// Send sends a packet and returns when it will have left the host, if known. p and lanes are valid during the call;
	// lanes is nil, or p.Lanes long.
	Send(to Peer, p *program.Packet, lanes []uint32) (left olaf.Time)
	// Apply starts an update of the weights with a sum; Applied follows. a is valid during the call, and for a server
	// until Applied.
	Apply(a *Aggregate)
}

// Endpoint is one side of a protocol. It is deterministic and not safe for concurrent use.
type Endpoint interface {
	// Start begins the job.
	Start(now olaf.Time)
	// OnComputed reports that the requested gradient is ready, with its values, or nil if none are carried.
	OnComputed(now olaf.Time, values []uint32)
	// OnApplied reports that the requested update is done.
	OnApplied(now olaf.Time)
	// Receive handles an arriving packet. It does not retain its arguments.
	Receive(now olaf.Time, p *program.Packet, lanes []uint32)
	// Next returns when to call Timer, or Never.
	Next() olaf.Time
	Timer(now olaf.Time)
	// Done reports whether the job is over on this side.
	Done() bool
	// Counts returns the values of the ledger that Describe declares, in its order.
	Counts() []uint64
}

// Leaver is an endpoint whose peers wait for it and must be notified when it gives up.
type Leaver interface {
	Endpoint
	// Leave notifies them with packets that are sent at once.
	Leave()
	// Superseded reports whether a peer began another job, so that this one cannot finish.
	Superseded() bool
	// Refused returns why the job cannot begin, or "" if it can.
	Refused() string
}

// Aggregate is a sum of gradients that is to be applied.
type Aggregate struct {
	Number  uint32 // of the update, from 0
	Vectors uint32 // contributions in its first packet
	Torn    bool   // its packets contain different sets of contributions
	// For packets applied one by one: the index of the first value in the vector and, at a server, the job, the newest
	// update inside, and the sum of their rewards in 1/256.
	First  int
	Job    olaf.ClusterID
	Worker olaf.WorkerID
	Vector uint32
	Reward int32
	Trace  program.Trace // of its first packet
	Values []uint32      // nil if none are carried
	// Vanished is the number of the worker's own nonzero values that a scale derived from them made 0.
	Vanished int
	// At a server that applies packets one by one: the number of packets waiting behind this one, and of those dropped
	// for lack of room.
	Waiting, Dropped int
}

// Layout defines how a vector is divided into packets.
type Layout struct {
	Values    int // 32-bit words of a vector
	PerPacket int // of them in one packet
	Messages  int // messages per vector; default one
}

// Packets returns the number of packets in a vector.
func (l Layout) Packets() int { return (l.Values + l.PerPacket - 1) / l.PerPacket }

// Lanes returns the number of values in packet i.
func (l Layout) Lanes(i int) int { return min(l.PerPacket, l.Values-i*l.PerPacket) }

// fit adapts the layout to the length of a vector, if there are values. The vectors in a job may have different
// lengths.
func (l *Layout) fit(values []uint32) {
	if values != nil {
		l.Values = len(values)
	}
}

// opens reports whether packet i is the first packet of a message.
func (l Layout) opens(i int) bool {
	n := max(1, l.Messages)
	per := (l.Packets() + n - 1) / n
	return i%per == 0
}

// cut returns the values in packet i, or nil for a vector without values.
func (l Layout) cut(values []uint32, i int) []uint32 {
	if values == nil {
		return nil
	}
	return values[i*l.PerPacket:][:l.Lanes(i)]
}

// Config contains the settings that all endpoints have in common.
type Config struct {
	Job     olaf.ClusterID
	Worker  olaf.WorkerID // also its number in the job
	Workers int
	Layout
	Updates uint32    // of the weights; the job ends after these
	Line    olaf.Rate // of the host's link, for protocols that divide rates; 0 if unknown
}

// badTimeout rejects negative timeouts.
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

// packet returns the index of p in its vector. Numbers that are too large result in an index beyond every vector.
func packet(p *program.Packet) int { return int(min(p.Seg, math.MaxInt32)) }

func nanoseconds(t olaf.Time) uint64 { return uint64(t) / uint64(olaf.Nanosecond) }
