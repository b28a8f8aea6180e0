package results

import "math/bits"

// ageBuckets is the number of buckets in an ageHistogram. Buckets are exact below 128 ps. From there on there are 64
// per octave up to 2^63 ps, so that a bucket's width is at most 1/64 of its ages.
const (
	ageBuckets    = 57*64 + 64
	perOctaveBits = 6
)

// ageHistogram contains the time that an age spent in each bucket. Between two deliveries the age rises at constant
// speed through many buckets. Such a rise, a tooth, is added in constant time: buckets crossed completely are counted
// by a difference of counts, and those at both ends by their share.
type ageHistogram struct {
	crossed [ageBuckets + 1]int64 // difference from the previous bucket in the number of teeth that cross the bucket completely
	part    [ageBuckets]int64     // ps
	total   int64                 // ps
}

func ageBucket(ps int64) int {
	if ps < 2<<perOctaveBits {
		return int(ps)
	}
	exp := bits.Len64(uint64(ps)) - 1 - perOctaveBits
	return exp<<perOctaveBits + int(uint64(ps)>>exp)
}

// ageBounds returns the lower bound and the width of bucket i in picoseconds.
func ageBounds(i int) (low, width int64) {
	if i < 2<<perOctaveBits {
		return int64(i), 1
	}
	exp := i>>perOctaveBits - 1
	return int64(i-exp<<perOctaveBits) << exp, 1 << exp
}

// add adds a rise of the age between two deliveries. Ages below 0 count as 0.
func (h *ageHistogram) add(t tooth) {
	if t.length <= 0 {
		return
	}
	h.total += t.length
	low, high := t.age, t.age+t.length
	if low < 0 {
		h.part[0] += min(-low, t.length)
		if low = 0; high <= 0 {
			return
		}
	}
	first, last := ageBucket(low), ageBucket(high)
	if first == last {
		h.part[first] += high - low
		return
	}
	start, width := ageBounds(first)
	h.part[first] += start + width - low
	end, _ := ageBounds(last)
	h.part[last] += high - end
	h.crossed[first+1]++
	h.crossed[last]--
}

// belowNS returns the age, in nanoseconds, below which the given share of the time was spent. Time within a bucket is
// assumed to be spread evenly.
func (h *ageHistogram) belowNS(share float64) Float {
	want := float64(share * float64(h.total))
	var below, crossing int64
	for i := range h.part {
		crossing += h.crossed[i]
		low, width := ageBounds(i)
		inside := h.part[i] + crossing*width
		if inside > 0 && float64(below)+float64(inside) >= want {
			within := (want - float64(below)) / float64(inside)
			return Float((float64(low) + float64(within*float64(width))) / 1000)
		}
		below += inside
	}
	return Missing()
}
