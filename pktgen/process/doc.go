// Package process runs hosts as programs. It runs the state machines of pktgen/endpoint, and switch programs on a
// server, over UDP sockets. The values of a worker can be computed from its number. Every receiver can therefore check
// every lane of a sum.
package process

import (
	"bytes"
	"fmt"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// ErrConfig is matched by errors in a configuration.
var ErrConfig = olaf.NewError(olaf.Usage, "bad worker or server")

// ErrStalled is returned if nothing arrived for longer than the job's patience.
var ErrStalled = olaf.NewError(olaf.Failed, "the job stands still")

// ErrRefused is returned if the aggregator does not allow the job to begin.
var ErrRefused = olaf.NewError(olaf.Device, "the job was refused")

// ErrOffline is returned if the host's interface, cable or address has disappeared.
var ErrOffline = olaf.NewError(olaf.Device, "this host has no network any more")

// Ended returns the error for a program that ended on a host. It includes the program's output, if there is any.
func Ended(reason error, output []byte) error {
	if output = bytes.TrimSpace(output); len(output) == 0 {
		return reason
	}
	return fmt.Errorf("%w: %s", reason, output)
}

// DefaultPatience is the default time without progress after which a job gives up.
const DefaultPatience = 20 * time.Second

// Job contains the settings that workers and server of a job have in common if the workers wait for sums.
type Job struct {
	ID      olaf.ClusterID
	Workers int
	Values  int // number of int32 values in a vector
	Lanes   int // number of lanes in a packet
	Vectors int // number of vectors that every worker sends
}

// MaxVectors is the maximum number of vectors in a job that is not endless.
const MaxVectors = endpoint.MaxEpochs

// Check returns an error that matches ErrConfig if the job is invalid.
func (j *Job) Check() error {
	if j.Workers < 1 || j.Values < 1 || j.Lanes < 1 || j.Lanes > MaxOpenLanes || j.Vectors < 1 || j.Vectors > MaxVectors {
		return fmt.Errorf("%w: %d vectors of %d values, %d in a packet, of %d workers; there are 1 to %d vectors "+
			"and 1 to %d values in a packet", ErrConfig,
			j.Vectors, j.Values, j.Lanes, j.Workers, MaxVectors, MaxOpenLanes)
	}
	return nil
}

// Layout returns how a vector is divided into packets.
func (j *Job) Layout() endpoint.Layout { return endpoint.Layout{Values: j.Values, PerPacket: j.Lanes} }

// Packets returns the number of packets in a vector.
func (j *Job) Packets() int { return j.Layout().Packets() }

// Value returns the value in lane i of a worker's vector.
func Value(worker, vector, i int) int32 { return int32((worker+1)*1000 + vector*7 + i%911) }

// Sum returns the value in lane i of the sum of all workers' vectors.
func (j *Job) Sum(vector, i int) int32 {
	var sum int32
	for w := range j.Workers {
		sum += Value(w, vector, i)
	}
	return sum
}
