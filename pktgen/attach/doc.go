// Package attach connects a program that computes, such as a training program in Python, to a worker or a server on
// this machine. They communicate over a unix socket with a small binary protocol, in which each request has one answer.
// docs/reference/attach.md describes the protocol for other languages.
//
// A Port listens on the socket and serves one client at a time. Rounds implements a worker that waits for every sum,
// Pushes implements a worker that sends updates without waiting, and Updates implements the server for such workers.
// Client implements the other end in Go.
package attach

import (
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Kinds of errors.
var (
	// ErrProtocol is the error for bytes that are not a valid message, or for a message that is not allowed at this
	// point.
	ErrProtocol = olaf.NewError(olaf.Failed, "the attached client broke the protocol")
	// ErrSocket is the error for a socket that cannot be opened or that another program is using.
	ErrSocket = olaf.NewError(olaf.Usage, "cannot listen for a client")
	// ErrDisagree is returned if the workers of a job, or a worker and the server, use different scales or lengths.
	ErrDisagree = olaf.NewError(olaf.Failed, "the job's programs disagree")
	// ErrEarlyEnd is the error if a job cannot go on although its program does: another host ended, or frames cannot
	// number more packets.
	ErrEarlyEnd = olaf.NewError(olaf.Failed, "the job ended early")
	// ErrConfig is the error for an invalid configuration.
	ErrConfig = olaf.NewError(olaf.Usage, "bad attachment")
)

// DefaultScale is the default factor for converting float32 values to int32 lanes. With it, lanes represent values up
// to ±21.47 in steps of 1e-8.
const DefaultScale = endpoint.XAggScale

// MaxValues is the maximum number of values in a vector, which take up 64 MiB as float32.
const MaxValues = 1 << 24

// Config describes the worker or server to its client.
type Config struct {
	System  string  // at most 16 bytes
	Server  bool    // the parameter server; otherwise a worker
	Waits   bool    // a worker that waits for the sum of every round
	Worker  int     // number, from 0
	Workers int     // number of workers in the job; 0 if unknown
	Largest int     // number of values in the longest vector
	Lanes   int     // int32 lanes per frame, for values and Overhead together
	Scale   float64 // lanes per unit; 0 if Floats
	Floats  bool    // the network has no scale; it carries NaN and infinities unless RefusesNaN is set
	// RefusesNaN means that float32 values are converted to integers with a scale that depends on the values.
	RefusesNaN bool
	// Conversion, if set, describes how the worker's endpoint converts float32 to lanes. Rounds and the endpoint then
	// exchange float32 values, in frames of Lanes less Overhead.
	Conversion *endpoint.Conversion
	// Numbers is the maximum number of packets of Lanes less Overhead in all vectors together; 0 for no limit.
	Numbers int
	// Inexact means that a sum may miss or repeat vectors, as published.
	Inexact bool
	// Awaited returns the workers whose vectors are missing in a round. If it is nil, they are determined from the
	// aggregator's answers.
	Awaited func(round uint32) []int
	// Children means that the aggregator's answers refer to its children, which are not the job's workers.
	Children bool
	// Turns is for workers that do not wait: a network in this process takes their requests one by one with Pushes.Ask,
	// and also answers requests for the model.
	Turns bool
	// Seen, if set, is called with every arriving vector before the client gets an answer.
	Seen func(*Seen)
}

// Seen is a vector that arrived from a client.
type Seen struct {
	Values  []byte // little-endian float32, valid only during the call
	Reward  float32
	Version uint32 // version of the model that the client pulled last
}

// Overhead is the number of lanes before the values in a frame. They contain the code of the scale and the version.
const Overhead = 2

// Check returns an error that matches ErrConfig if the fields are out of range.
func (c *Config) Check() error {
	switch {
	case c.Largest < 1 || c.Largest > MaxValues:
		return fmt.Errorf("%w: vectors of up to %d values; use 1 to %d", ErrConfig, c.Largest, MaxValues)
	case c.Lanes <= Overhead:
		return fmt.Errorf("%w: %d lanes in a frame; use %d or more", ErrConfig, c.Lanes, Overhead+1)
	case !c.Floats && !(c.Scale > 0) || math.IsInf(c.Scale, 0):
		return fmt.Errorf("%w: a scale of %g; use a number above 0", ErrConfig, c.Scale)
	case len(c.System) > len(Greeting{}.System):
		return fmt.Errorf("%w: the name %q is longer than %d bytes", ErrConfig, c.System, len(Greeting{}.System))
	}
	return nil
}

// code returns a number that represents the scale in frames. With it, the sum shows whether a worker has another scale:
// the codes of n workers must add up to n times the code.
func (c *Config) code() int32 {
	h := math.Float64bits(c.Scale) * 0x9e3779b97f4a7c15
	return int32(h>>49) | 1 // 15 bits, so that the sum of 65,535 codes fits in int32
}

// greeting returns the first message sent to a client.
func (c *Config) greeting(round uint32) Greeting {
	g := Greeting{Magic: magic, Version: Version, Worker: uint32(c.Worker), Workers: uint32(c.Workers),
		Largest: uint32(c.Largest),
		Frame:   uint32(c.Lanes - Overhead), Round: round, Scale: c.Scale}
	copy(g.System[:], c.System)
	if c.Server {
		g.Role = RoleServer
	}
	switch {
	case c.Waits:
		g.Flags = FlagWaits
	case !c.Server:
		g.Flags = FlagModelDue
	}
	return g
}
