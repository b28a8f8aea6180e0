package realtime

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
)

// Limits beyond which a run's ages are determined by the pacer more than by the queue.
const (
	latePercent  = 25 // of the service time, for the 99th percentile of lateness
	stallPercent = 2  // of the busy time, for the sum of all stalls
)

// histogram counts durations in nanoseconds. The width of each bucket is about 1/16 of the values in it.
type histogram struct {
	buckets [61 << fineBits]uint64
	n       uint64
	max     int64
}

const fineBits = 4

func (h *histogram) add(ns int64) {
	ns = max(ns, 0)
	h.buckets[bucketOf(uint64(ns))]++
	h.n++
	h.max = max(h.max, ns)
}

func bucketOf(v uint64) int {
	if v < 1<<fineBits {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - fineBits
	return (shift+1)<<fineBits + int(v>>shift&(1<<fineBits-1))
}

// bucketMax returns the largest value that belongs to a bucket.
func bucketMax(bucket int) int64 {
	if bucket < 1<<fineBits {
		return int64(bucket)
	}
	shift := bucket>>fineBits - 1
	return int64((1<<fineBits+bucket&(1<<fineBits-1)+1)<<shift) - 1
}

// quantile returns a value that the given share of the durations does not exceed. The value is at most 1/16 too large,
// and is 0 if there are no durations.
func (h *histogram) quantile(share float64) int64 {
	want, seen := uint64(share*float64(h.n)), uint64(0)
	for i, n := range h.buckets {
		if seen += n; n > 0 && seen >= want {
			return min(bucketMax(i), h.max)
		}
	}
	return h.max
}

// pacing contains the timing of departures since it was last cleared.
type pacing struct {
	late     histogram
	busyNS   int64 // sum of service times
	stallNS  int64 // sum of latenesses above latePercent of the service time
	stalls   int64
	area     float64 // half the sum of squares of the latenesses in stallNS
	firstNS  int64   // time at which the first frame was due
	laterNS  float64 // sum over all frames of the time from firstNS to the time at which the frame was due
	unsent   int64   // frames rejected by the interface
	firstErr error   // error of the first rejected frame
}

// recordSent records the departure of a frame that was due at dueNS and left at leftNS. It reports whether the frame
// was so late, compared with its service time, that the output stalled.
func (p *pacing) recordSent(serviceNS, dueNS, leftNS int64) (stall bool) {
	if p.late.n == 0 {
		p.firstNS = dueNS
	}
	p.laterNS += float64(dueNS - p.firstNS)
	lateNS := leftNS - dueNS
	p.late.add(lateNS)
	p.busyNS += serviceNS
	if stall = lateNS*100 > serviceNS*latePercent; stall {
		p.stalls++
		p.stallNS += lateNS
		p.area += float64(float64(lateNS) * float64(lateNS) / 2)
	}
	return stall
}

// report returns a summary of a run that began at zeroNS. It sets Withheld if the lateness is too large to report ages.
func (p *pacing) report(zeroNS int64) *fpga.Pacing {
	t := &fpga.Pacing{Frames: int64(p.late.n), BusyNS: p.busyNS, StallNS: p.stallNS, Stalls: p.stalls,
		StallAreaNS2: p.area,
		LatenessNS:   olaf.Quantiles{P50: p.late.quantile(0.5), P99: p.late.quantile(0.99), Max: p.late.max}}
	if p.late.n == 0 {
		return t
	}
	t.DueNS = float64(p.firstNS-zeroNS) + p.laterNS/float64(p.late.n)
	service := p.busyNS / int64(p.late.n)
	switch {
	case t.LatenessNS.P99*100 > service*latePercent:
		t.Withheld = fmt.Sprintf("the pacer was late: one frame in a hundred by %v, which is more than %d %% of the "+
			"service time of %v",
			time.Duration(t.LatenessNS.P99), latePercent, time.Duration(service))
	case p.stallNS*100 > p.busyNS*stallPercent:
		t.Withheld = fmt.Sprintf("the pacer stalled: for %v in total, which is more than %d %% of the %v that the "+
			"output was busy",
			time.Duration(p.stallNS), stallPercent, time.Duration(p.busyNS))
	}
	return t
}
