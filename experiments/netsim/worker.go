package netsim

import (
	"math"
	"math/rand/v2"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/node"
	"github.com/olafctl/olaf/internal/exactmath"
	"github.com/olafctl/olaf/internal/splitmix"
)

// uniformDraw maps a draw to [0, 1). All randomness in a run is splitmix of seed, worker and update number, so that no draw
// depends on the order of events, and ns-3 can reproduce it.
func uniformDraw(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// Salts separate draws for different purposes.
const (
	saltControl = 0x5443
	saltSpread  = 0x5350
	saltGap     = 0x4741
	saltReward  = 0x5257
)

// source is the common state of the workers of one entry of Clusters.
type source struct {
	poisson    bool
	jitter     uint64 // ns; 0 for none
	start, end int64  // ps; no update is generated at or after end
	transmit   int64  // ps on the access link
	delay      int64
	lossy      bool // workers' links are lossy

	// The packets on the workers' links. The links are identical, so one queue per direction is enough.
	sent line[entering]
	acks line[ack]
}

// entering is an update on a worker's link.
type entering struct {
	at      int64 // when it reaches its switch, and
	ord     uint64
	update  olaf.Update
	cluster int32
	port    int32 // out of that switch
}

// worker is one sender, in one cache line. With a hundred thousand workers, an update costs one cache miss.
type worker struct {
	base     uint64
	period   int64
	offset   int64 // start and phase
	gen      int64 // of the scheduled update
	free     int64 // when its access link is idle again
	seq      uint32
	sent     uint32 // within the window
	port     int32  // out of its switch
	listener int32
	cluster  uint16 // index; there are no more clusters than ids
	source   uint16
	id       olaf.ClusterID
	number   olaf.WorkerID
}

// cable is a worker's link; it exists only if some links are lossy.
type cable struct{ up, down node.Direction }

// access is the queue for a worker's link; it exists only if sends have separate events.
type access struct {
	done        uint64 // order of the event at which the link becomes idle
	first, last int32  // 1 + index of the held update
}

// never is a generation time after every end.
const never = math.MaxInt64

// generationTime returns when update w.seq is generated; the previous one was at w.gen.
func (s *source) generationTime(w *worker) int64 {
	if s.poisson {
		gap := -exactmath.Log1p(-uniformDraw(splitmix.MixBits(w.base ^ saltGap + uint64(w.seq))))
		return w.gen + int64(gap*float64(w.period)/1000)*1000
	}
	at := w.offset + int64(w.seq)*w.period
	if s.jitter > 0 {
		at += int64(splitmix.MixBits(w.base+uint64(w.seq))%s.jitter) * 1000
	}
	return at
}

// drawReward returns the reward of update w.seq in Q24.8, standard normal as in a bench.
func (w *worker) drawReward() int32 {
	x := splitmix.MixBits(w.base ^ saltReward + uint64(w.seq))
	r := rand.New(rand.NewPCG(x, splitmix.MixBits(x)))
	return int32(math.RoundToEven(exactmath.NormFloat64(r) * 256))
}

// newWorker returns a worker with its phase and period. index counts over the whole network.
func (k *Clusters) newWorker(seed uint64, index int) worker {
	w := worker{base: splitmix.MixBits(seed*1000003 + uint64(index)), period: int64(k.Period), offset: int64(k.Start)}
	w.gen = w.offset
	if k.Spread > 0 {
		u := float64(2*uniformDraw(splitmix.MixBits(w.base^saltSpread))) - 1
		w.period += int64(math.Round(float64(u*float64(k.Spread)) * float64(k.Period)))
	}
	span := k.Phase
	if span.IsZero() {
		span.To = olaf.Duration(w.period)
	}
	w.offset += int64(span.From)
	if width := uint64(span.To-span.From) / 1000; width > 0 {
		w.offset += int64(w.base%width) * 1000
	}
	return w
}
