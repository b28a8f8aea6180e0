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
	// Compute starts computing a gradient; OnComputed is called when it is ready. vector is the number of the worker's
	// gradient, from 0.
	Compute(vector uint32)
	// Message begins a message, which consists of the packets until the next call. Hosts charge their cost per message.
	Message()
	// Send sends a packet and returns when it will have left the host, if known. p and lanes are valid during the call;
	// lanes is nil or has length p.Lanes.
	Send(to Peer, p *program.Packet, lanes []uint32) (left olaf.Time)
	// Apply starts an update of the weights with a sum; OnApplied is called when it is done. a is valid during the
	// call, and at a server until OnApplied.
	Apply(a *Aggregate)
}

// Endpoint is one side of a protocol. It is deterministic and not safe for concurrent use.
type Endpoint interface {
	// Start begins the job.
	Start(now olaf.Time)
	// OnComputed reports that the requested gradient is ready. values is nil if no values are carried.
	OnComputed(now olaf.Time, values []uint32)
	// OnApplied reports that the requested update is done.
	OnApplied(now olaf.Time)
	// Receive handles an arriving packet. It does not retain its arguments.
	Receive(now olaf.Time, p *program.Packet, lanes []uint32)
	// Next returns the time at which Timer must be called, or Never.
	Next() olaf.Time
	Timer(now olaf.Time)
	// Done reports whether this endpoint's part of the job is over.
	Done() bool
	// Counts returns the counters in the order in which Describe declares them.
	Counts() []uint64
}

// Checker is a Host that checks the first packet of a sum: if the workers' vectors differ in length, the rest may never
// arrive.
type Checker interface {
	Host
	CheckFirst(values []uint32)
}

// Waiter is a server that can list the workers whose vectors it lacks.
type Waiter interface {
	Endpoint
	// Waiting returns the workers that wait for a sum, and those whose vectors it lacks.
	Waiting() (waiting, missing []int)
}

// Leaver is an endpoint whose peers wait for it and must be notified when it gives up.
type Leaver interface {
	Endpoint
	// Leave notifies the peers with packets that are sent at once.
	Leave()
	// Superseded reports whether a peer began another job, which means that this one cannot finish.
	Superseded() bool
	// Refused returns why the job cannot begin, or "" if it can.
	Refused() string
}

// Aggregate is a sum of gradients that is to be applied.
type Aggregate struct {
	Number  uint32 // number of the update, from 0
	Vectors uint32 // number of contributions in its first packet
	Torn    bool   // its packets contain different sets of contributions
	Unequal bool   // the vectors differ in length, and there is no sum; only if Layout.Varies
	// The next fields are for packets that are applied one by one: the index of the first value in the vector and, at a
	// server, the job, the newest update in the packet, and the sum of the rewards in 1/256.
	First  int
	Job    olaf.ClusterID
	Worker olaf.WorkerID
	Vector uint32
	Reward int32
	Trace  program.Trace // trace of its first packet
	Values []uint32      // nil if none are carried
	// Vanished is the number of the worker's own nonzero values that became 0 because of a scale that depends on the
	// values.
	Vanished int
	// Waiting and Dropped are set at a server that applies packets one by one: the number of packets waiting behind
	// this one, and the number dropped for lack of room.
	Waiting, Dropped int
}

// Layout defines how a vector is divided into packets.
type Layout struct {
	Values    int // number of 32-bit words in a vector
	PerPacket int // number of these words in one packet
	Messages  int // messages per vector; default one
	// Varies means that a vector may be shorter, if it fills a packet. The workers of a synchronous job must agree on
	// each vector's length; the sum is Unequal if they do not.
	Varies bool `json:"-"`
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

// startLength returns the length of a vector that is about to arrive, or 0 if only its last packet will show the length.
func (l Layout) startLength() int {
	if l.Varies {
		return 0
	}
	return l.Values
}

// lengthAt returns the length of a vector that ends with a packet.
func (l Layout) lengthAt(last *program.Packet) int {
	return min(packet(last)*l.PerPacket+int(last.Lanes), l.Values)
}

// packetOf sets the fields of p for packet i of a vector. If lengths vary, it marks the last packet.
func (l Layout) packetOf(p *program.Packet, i int) {
	p.Seg, p.Lanes = uint64(i), uint16(l.Lanes(i))
	if p.Flags &^= program.Last; l.Varies && i == l.Packets()-1 {
		p.Flags |= program.Last
	}
}

// Config contains the settings that all endpoints have in common.
type Config struct {
	Job     olaf.ClusterID
	Worker  olaf.WorkerID // also the worker's number in the job
	Workers int
	Layout
	Updates uint32    // number of updates of the weights, after which the job ends
	Line    olaf.Rate // rate of the host's link, for protocols that divide rates; 0 if unknown
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
