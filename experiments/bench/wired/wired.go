// Package wired is hosts that wait for answers around a switch whose wires are real: workers and servers in namespaces of their own,
// which play the state machines of pktgen/endpoint in real time, with a system's own frames between them and the program of a device.
// It takes what package closed takes, and gives what that gives, as far as clocks and wires of this machine can tell it.
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

// ErrNetwork is the kind of networks that can be simulated and not laid here.
var ErrNetwork = olaf.NewError(olaf.Device, "such a network is not laid here")

// Played is what came of a run.
type Played struct {
	*closedloop.Result
	Pacing *fpga.Pacing
	Faults []string // other reasons why the run must not be used
}

// values are what workers send, and what they must get. They are integers so small that sums of them are exact in any arithmetic and in any
// order.
type values struct {
	seed    uint64
	workers int // of a job
	most    int // gradients inside of a sum
	count   int // of a vector
	encode  func(int32) uint32

	mu   sync.Mutex
	sums map[sumOf][]uint32 // of the rounds at hand
}

// sumOf names a sum.
type sumOf struct {
	job   int
	round uint32
}

// exactBits is how many bits of an integer a float32 holds.
const exactBits = 24

// newValues are those of a run, as a program's words; most is how many gradients a sum may hold.
func newValues(seed uint64, workers, most, count int, a program.Arithmetic) *values {
	encode := func(v int32) uint32 { return uint32(v) }
	if a == program.Float32 {
		encode = func(v int32) uint32 { return math.Float32bits(float32(v)) }
	}
	return &values{seed: splitmix.Mix(seed), workers: workers, most: most, count: count, encode: encode, sums: map[sumOf][]uint32{}}
}

// at is value i of a worker's vector.
func (s *values) at(host int, vector uint32, i int) int32 {
	return int32(splitmix.Mix(s.seed^uint64(host)<<48^uint64(vector)<<24^uint64(i))) >> (32 - exactBits + bits.Len(uint(s.most)))
}

// fill makes a worker's vector.
func (s *values) fill(into []uint32, host int, vector uint32) {
	for i := range into {
		into[i] = s.encode(s.at(host, vector, i))
	}
}

// sum is what all workers of a job add up to. No worker is more than a round behind another.
func (s *values) sum(job int, round uint32) []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sum := s.sums[sumOf{job, round}]; sum != nil {
		return sum
	}
	sum := make([]uint32, s.count)
	for i := range sum {
		var n int32
		for w := range s.workers {
			n += s.at(job*s.workers+w, round, i)
		}
		sum[i] = s.encode(n)
	}
	s.sums[sumOf{job, round}] = sum
	if round >= 2 {
		delete(s.sums, sumOf{job, round - 2})
	}
	return sum
}

// wrong is how many packets of a sum hold something else than one contribution of every worker.
func (s *values) wrong(sum []uint32, job int, round uint32, perPacket int) (packets int) {
	want := s.sum(job, round)
	for first := 0; first < len(want); first += perPacket {
		end := min(first+perPacket, len(want))
		if len(sum) < end || !slices.Equal(sum[first:end], want[first:end]) {
			packets++
		}
	}
	return packets
}
