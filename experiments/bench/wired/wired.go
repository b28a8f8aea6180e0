// Package wired runs closed-loop hosts around a switch on real wires. Workers and servers in separate namespaces run
// the state machines of pktgen/endpoint in real time. They exchange frames in a system's own format with a device's
// program. The inputs and results are those of package closedloop, as far as this machine's clocks and wires allow.
package wired

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/splitmix"
)

// ErrNetwork is matched by errors about networks that can be simulated but not built on this machine.
var ErrNetwork = olaf.NewError(olaf.Device, "such a network cannot be built here")

// Work computes the workers' vectors. Its methods are called concurrently.
type Work interface {
	// Begin begins a worker's vector. Take returns it once it is ready; its values are valid until the next Begin.
	Begin(worker int, vector uint32)
	Take(worker int) (values []uint32, ready bool)
	// Over reports whether the workers need no more sums.
	Over() bool
}

// Played is the result of a run on wires.
type Played struct {
	*closedloop.Result
	Pacing *fpga.Pacing
	Faults []string // other reasons why the run is invalid
}

// values generates the workers' vectors and the expected sums. The values are integers small enough for sums to be
// exact in any arithmetic and order.
type values struct {
	seed    uint64
	workers int // per job
	most    int // gradients per sum
	count   int // values per vector
	encode  func(int32) uint32

	mu   sync.Mutex
	sums map[sumOf][]uint32 // sums of the current rounds
}

// sumOf identifies the sum of one round in one job.
type sumOf struct {
	job   int
	round uint32
}

// exactBits is the number of bits up to which float32 represents every integer exactly.
const exactBits = 24

// newValues returns the generator of a run's values, which encodes them for the program's arithmetic. most is the
// largest number of gradients in one sum.
func newValues(seed uint64, workers, most, count int, a program.Arithmetic) *values {
	encode := func(v int32) uint32 { return uint32(v) }
	if a == program.Float32 {
		encode = func(v int32) uint32 { return math.Float32bits(float32(v)) }
	}
	return &values{seed: splitmix.MixBits(seed), workers: workers, most: most, count: count, encode: encode,
		sums: map[sumOf][]uint32{}}
}

// valueAt returns the value at index i of a worker's vector.
func (s *values) valueAt(host int, vector uint32, i int) int32 {
	return int32(splitmix.MixBits(s.seed^uint64(host)<<48^uint64(vector)<<24^uint64(i))) >> (32 - exactBits +
		bits.Len(uint(s.most)))
}

// fillVector writes a worker's vector to into.
func (s *values) fillVector(into []uint32, host int, vector uint32) {
	for i := range into {
		into[i] = s.encode(s.valueAt(host, vector, i))
	}
}

// sumOfAll returns the sum of the vectors from all workers of a job in one round. Only recent sums are stored, because
// no worker is more than one round behind another.
func (s *values) sumOfAll(job int, round uint32) []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sum := s.sums[sumOf{job, round}]; sum != nil {
		return sum
	}
	sum := make([]uint32, s.count)
	for i := range sum {
		var n int32
		for w := range s.workers {
			n += s.valueAt(job*s.workers+w, round, i)
		}
		sum[i] = s.encode(n)
	}
	s.sums[sumOf{job, round}] = sum
	if round >= 2 {
		delete(s.sums, sumOf{job, round - 2})
	}
	return sum
}

// countWrong returns the number of packets in which a sum differs from the sum over all workers, with one contribution
// from each.
func (s *values) countWrong(sum []uint32, job int, round uint32, perPacket int) (packets int) {
	want := s.sumOfAll(job, round)
	for first := 0; first < len(want); first += perPacket {
		end := min(first+perPacket, len(want))
		if len(sum) < end || !slices.Equal(sum[first:end], want[first:end]) {
			packets++
		}
	}
	return packets
}
