// Package process is hosts as programs of their own: the state machines of pktgen/endpoint, and of switch programs where a server runs one,
// played over UDP sockets. What a worker sends of a vector follows from its number, so that everybody can say what a sum must be, to the
// last lane.
package process

import (
	"bytes"
	"fmt"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// ErrConfig is the kind of every refused configuration.
var ErrConfig = olaf.NewError(olaf.Usage, "bad worker or server")

// ErrStalled says that nothing came for longer than a job may stand still.
var ErrStalled = olaf.NewError(olaf.Failed, "the job stands still")

// ErrRefused: the aggregator does not let the job begin.
var ErrRefused = olaf.NewError(olaf.Device, "the job was refused")

// ErrOffline says that the kernel has no way any more for what a host sends: its interface, cable or address is gone.
var ErrOffline = olaf.NewError(olaf.Device, "this host has no network any more")

// Ended is why a program on a host ended: an error, and what it said, if anything. One that was killed says nothing.
func Ended(why error, said []byte) error {
	if said = bytes.TrimSpace(said); len(said) == 0 {
		return why
	}
	return fmt.Errorf("%w: %s", why, said)
}

// DefaultPatience is how long a job may stand still before it is given up, if nothing is said.
const DefaultPatience = 20 * time.Second

// Job is what workers and server of a job that waits for sums must agree on.
type Job struct {
	ID      olaf.ClusterID
	Workers int
	Values  int // int32 of a vector
	Lanes   int // of them in a packet
	Vectors int // of every worker
}

// MaxVectors is how many vectors a job may have that does not go on without end.
const MaxVectors = endpoint.MaxEpochs

// Check says what is wrong with a job. The error matches ErrConfig.
func (j *Job) Check() error {
	if j.Workers < 1 || j.Values < 1 || j.Lanes < 1 || j.Lanes > MaxOpenLanes || j.Vectors < 1 || j.Vectors > MaxVectors {
		return fmt.Errorf("%w: %d vectors of %d values, %d in a packet, of %d workers; there are 1 to %d vectors and 1 to %d values in a packet", ErrConfig,
			j.Vectors, j.Values, j.Lanes, j.Workers, MaxVectors, MaxOpenLanes)
	}
	return nil
}

// Layout is how a vector is cut.
func (j *Job) Layout() endpoint.Layout { return endpoint.Layout{Values: j.Values, PerPacket: j.Lanes} }

// Packets is how many a vector takes.
func (j *Job) Packets() int { return j.Layout().Packets() }

// Value is lane i of a worker's vector.
func Value(worker, vector, i int) int32 { return int32((worker+1)*1000 + vector*7 + i%911) }

// Sum is what lane i of all workers' vectors adds up to.
func (j *Job) Sum(vector, i int) int32 {
	var sum int32
	for w := range j.Workers {
		sum += Value(w, vector, i)
	}
	return sum
}
