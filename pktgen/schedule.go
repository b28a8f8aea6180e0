package pktgen

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/internal/exactmath"
)

// Schedule is the stream of descriptors for a Burst and a seed, in order of time. The same workload and seed always
// produce the same stream.
//
// The flow of a descriptor is the worker. The sequence number counts from 0 for each worker. The reward is standard
// normal in Q24.8, from a separate random stream. If an update takes S frames, they follow each other. The flow is then
// worker · S + segment, and the sequence number counts frames, so that its remainder modulo S is the segment.
//
// A step costs O(log clusters) and causes no allocation. Redrawing the weights every HoldBursts bursts costs
// O(clusters).
type Schedule struct {
	w     Burst
	pcg   *rand.PCG // determines senders and times
	draw  *rand.Rand
	prize *rand.Rand // determines rewards, without affecting the rest
	prng  *rand.PCG

	members []uint16 // workers that have updates left to send, grouped by cluster
	first   []int32  // index of each cluster's first member
	live    []int32  // number of each cluster's members that have updates left
	next    []uint32 // next sequence number, by worker
	open    []int32  // clusters that have updates left; openAt has the position in open, by cluster
	openAt  []int32

	logs    []float64 // log of a cluster's weight …
	drawnIn []uint64  // … and the weight period in which it was drawn
	period  uint64
	active  []int32  // clusters of the current burst
	weights []uint64 // by position in active
	tree    fenwick

	sent   int // number of frames so far
	bursts int
	left   int // updates left in the burst
	last   int // position in active of the previous packet's cluster; negative at the start of a burst
	clock  burstClock

	frames, segments int
	full, rest       int64 // bits of a full frame and of the last frame of an update
	segment          int   // next segment of the current update
	update           regmap.Descriptor
}

// NewSchedule validates w and prepares the stream of its descriptors. The error matches ErrWorkload.
func NewSchedule(w Burst, seed uint64) (*Schedule, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	last := w.Segments() - 1
	s := &Schedule{w: w, frames: w.Frames(), segments: last + 1, full: w.Size.Bits(),
		rest: segmentSize(last, w.Values, w.Size).Bits(), pcg: rand.NewPCG(0, 0), prng: rand.NewPCG(0, 0)}
	s.draw, s.prize = rand.New(s.pcg), rand.New(s.prng)
	s.members, s.next = make([]uint16, w.Workers), make([]uint32, w.Workers)
	for _, p := range []*[]int32{&s.first, &s.live, &s.open, &s.openAt} {
		*p = make([]int32, w.Clusters)
	}
	s.logs, s.drawnIn = make([]float64, w.Clusters), make([]uint64, w.Clusters)
	s.active, s.weights = make([]int32, 0, w.Clusters), make([]uint64, w.Clusters)
	s.Reset(seed)
	return s, nil
}

// Second words of the seeds, which separate the random streams within a run.
const (
	streamTraffic = 0x6f6c61662d747266
	streamRewards = 0x6f6c61662d727764
)

// Reset restarts the stream with another seed. It reuses all memory.
func (s *Schedule) Reset(seed uint64) {
	s.pcg.Seed(seed, streamTraffic)
	s.prng.Seed(seed, streamRewards)
	for i := range s.members {
		s.members[i], s.next[i] = uint16(i), 0
	}
	s.open = s.open[:s.w.Clusters]
	for c := range s.first {
		first, end := s.w.Members(c)
		s.first[c], s.live[c] = int32(first), int32(end-first)
		s.open[c], s.openAt[c] = int32(c), int32(c)
		s.drawnIn[c] = 0
	}
	s.sent, s.bursts, s.left, s.period, s.segment = 0, 0, 0, 0, 0
	s.clock = newBurstClock(&s.w)
}

// Total returns the number of descriptors in the stream.
func (s *Schedule) Total() int { return s.w.Frames() }

// Fill writes the next descriptors to dst and returns their number. The number is less than len(dst) only at the end.
func (s *Schedule) Fill(dst []regmap.Descriptor) int {
	for i := range dst {
		if !s.Next(&dst[i]) {
			return i
		}
	}
	return len(dst)
}

// Next writes the next descriptor to d and reports whether there was one. It does not set the length, which the flow
// defines.
func (s *Schedule) Next(d *regmap.Descriptor) bool {
	if s.sent == s.frames {
		return false
	}
	if s.segment == 0 {
		s.drawUpdate()
	}
	*d = s.update
	d.Flow += uint16(s.segment)
	d.Sequence += uint32(s.segment)
	size := s.full
	if s.segment++; s.segment == s.segments {
		s.segment, size = 0, s.rest
	}
	d.Time = s.clock.nextCycle(size)
	s.sent++
	return true
}

// drawUpdate draws the worker and the reward of the next update.
func (s *Schedule) drawUpdate() {
	if s.left == 0 {
		s.startBurst()
	}
	worker := s.pickWorker()
	s.update = regmap.Descriptor{
		Flow: worker * uint16(s.segments), Sequence: (s.next[worker] - 1) * uint32(s.segments),
		Reward: int32(math.RoundToEven(exactmath.NormFloat64(s.prize) * 256)),
	}
	s.left--
}

func (s *Schedule) startBurst() {
	s.left = s.w.BurstPackets
	if s.w.BurstDist == Geometric {
		s.left = s.w.burstLength(s.draw.Float64())
	}
	gap := 1.0
	if s.w.GapDist == Exponential {
		gap = exactmath.ExpFloat64(s.draw)
	}
	s.clock.startBurst(gap)
	fresh := s.bursts%s.w.HoldBursts == 0
	if fresh {
		s.period++
	}
	s.bursts++
	if fresh || s.w.ActiveClusters > 0 {
		s.activateClusters()
	}
	s.last = -1
}

// activateClusters selects the clusters that take part in a burst and sets their weights in the tree.
func (s *Schedule) activateClusters() {
	n := len(s.open)
	if s.w.ActiveClusters > 0 && s.w.ActiveClusters < n {
		n = s.w.ActiveClusters
		for i := range n { // draws the first n positions of a shuffle
			s.swapOpen(i, i+int(s.uniformBelow(uint64(len(s.open)-i))))
		}
	}
	s.active = append(s.active[:0], s.open[:n]...)
	top := math.Inf(-1)
	for _, c := range s.active {
		if s.drawnIn[c] != s.period {
			s.drawnIn[c], s.logs[c] = s.period, 0
			if s.w.ClusterSigma > 0 {
				s.logs[c] = s.w.ClusterSigma * exactmath.NormFloat64(s.draw)
			}
		}
		top = max(top, s.logs[c])
	}
	// The weights are relative to the largest, so that 30 bits represent every relevant weight. Rounding also hides the
	// last bits, in which math.Exp may differ between processors.
	s.weights = s.weights[:n]
	for i, c := range s.active {
		s.weights[i] = max(1, uint64(math.Round(exactmath.Exp(s.logs[c]-top)*(1<<30))))
	}
	s.tree.build(s.weights)
}

// pickWorker draws the next sender and counts its update.
func (s *Schedule) pickWorker() uint16 {
	if s.tree.total == 0 { // all clusters of the burst have finished
		s.activateClusters()
	}
	at := s.last
	if at < 0 || s.w.ClusterRunProb == 0 || s.draw.Float64() >= s.w.ClusterRunProb {
		at = s.tree.find(s.uniformBelow(s.tree.total))
	}
	s.last = at
	c := s.active[at]
	members := s.members[s.first[c] : s.first[c]+s.live[c]]
	i := s.uniformBelow(uint64(len(members)))
	worker := members[i]
	s.next[worker]++
	if int(s.next[worker]) == s.w.UpdatesPerWorker {
		members[i] = members[len(members)-1]
		s.live[c]--
		if s.live[c] == 0 {
			s.closeCluster(at, c)
		}
	}
	return worker
}

// closeCluster removes a cluster from the draw when all its workers have finished.
func (s *Schedule) closeCluster(at int, c int32) {
	s.tree.remove(at, s.weights[at])
	s.last = -1
	end := len(s.open) - 1
	s.swapOpen(int(s.openAt[c]), end)
	s.open = s.open[:end]
}

func (s *Schedule) swapOpen(i, j int) {
	a, b := s.open[i], s.open[j]
	s.open[i], s.open[j] = b, a
	s.openAt[a], s.openAt[b] = int32(j), int32(i)
}

// uniformBelow returns a uniformly distributed number from 0 to n-1. The bias is less than n/2^64.
func (s *Schedule) uniformBelow(n uint64) uint64 {
	hi, _ := bits.Mul64(s.pcg.Uint64(), n)
	return hi
}

// burstClock computes exact times. A burst of L packets with b bits takes L·b/line. The gap after it takes W/mean −
// W/line with W = mean burst length · b, multiplied by a random factor if gaps are random. b is the size of an update.
// The time of every packet is therefore M/mean + P/line with integer numbers of bits M and P, and its cycle is this
// time rounded down.
type burstClock struct {
	mean, line    uint64
	burst         int64 // number of bits in a mean burst
	m, p          int64 // number of bits counted at the mean rate and at the line rate
	begun         bool
	cycles, parts uint64 // m/mean in cycles, and the remainder in cycles·mean
}

func newBurstClock(w *Burst) burstClock {
	b := w.vectorSize().Bits()
	return burstClock{mean: uint64(w.MeanRate), line: uint64(w.LineRate), burst: b * int64(w.BurstPackets)}
}

// startBurst begins a burst. Unless it is the first burst, a gap precedes it, whose length is given as a multiple of
// the mean gap.
func (c *burstClock) startBurst(gap float64) {
	if c.begun {
		w := c.burst
		if gap != 1 {
			w = int64(math.Round(gap * float64(c.burst)))
		}
		c.m += w
		c.p -= w
	}
	c.begun = true
	hi, lo := bits.Mul64(uint64(c.m), uint64(clockHz))
	c.cycles, c.parts = bits.Div64(hi, lo, c.mean)
}

// nextCycle returns the cycle of the next packet in the burst. size is the length of the packet in bits.
func (c *burstClock) nextCycle(size int64) uint64 {
	p, negative := uint64(c.p), c.p < 0
	if negative {
		p = uint64(-c.p)
	}
	c.p += size
	hi, lo := bits.Mul64(p, uint64(clockHz))
	q, r := bits.Div64(hi, lo, c.line)
	// cycles + parts/mean ± (q + r/line), rounded down: the fractions are compared over their common denominator.
	partsHi, partsLo := bits.Mul64(c.parts, c.line)
	restHi, restLo := bits.Mul64(r, c.mean)
	if negative {
		if partsHi < restHi || partsHi == restHi && partsLo < restLo {
			q++
		}
		return c.cycles - q
	}
	oneHi, oneLo := bits.Mul64(c.mean, c.line)
	sumLo, carry := bits.Add64(partsLo, restLo, 0)
	sumHi, _ := bits.Add64(partsHi, restHi, carry)
	if sumHi > oneHi || sumHi == oneHi && sumLo >= oneLo {
		q++
	}
	return c.cycles + q
}

// BurstRate returns the rate within bursts in bit/s, according to the arrival times. It is the number of bits after the
// first frame of each burst, divided by the time from the first to the last frame of the burst. It is 0 if no burst had
// two frames.
func (s *Schedule) BurstRate(frames int, arrival func(i int) (at olaf.Time, size olaf.Size)) float64 {
	inside := uint64(s.w.LineRate.TimeToSend(s.w.Size)/olaf.Cycle) + 2 // for a frame at the line rate, rounded up
	var d, last regmap.Descriptor
	bits, span, before := 0.0, 0.0, olaf.Time(0)
	for i := 0; i < frames && s.Next(&d); i++ {
		at, size := arrival(i)
		if i > 0 && d.Time-last.Time <= inside {
			bits += float64(size.Bits())
			span += at.Sub(before).Seconds()
		}
		last, before = d, at
	}
	if span <= 0 {
		return 0
	}
	return bits / span
}
