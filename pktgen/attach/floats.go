package attach

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Layout of a vector of float32 for an endpoint that converts them. It begins with digits of 7 bits, each stored as a
// float32, whose sums are exact in every system's lanes for a thousand workers: a one, the vector's length, its round,
// and its reward in 1/256, offset so that it is positive. The digits have a frame of their own if a frame's scale
// depends on its values.
const (
	digitBits    = 7
	lengthDigits = 4
	roundDigits  = 2
	rewardDigits = 5
	floatDigits  = 1 + lengthDigits + roundDigits + rewardDigits
	rewardOffset = 1 << 31
)

// digitsRoom returns the number of float32 values that precede the vector's values.
func (c *Config) digitsRoom() int {
	if c.Conversion.Block {
		return c.Lanes - Overhead
	}
	return floatDigits
}

// FloatsJob returns the number of lanes for the longest vector of a worker whose endpoint takes float32 values. It
// includes the numbers before the values.
func (c *Config) FloatsJob() int {
	if !c.Waits {
		return updateHead + c.Largest
	}
	return c.digitsRoom() + c.Largest
}

// appendFloats appends a client's vector with its digits, padded to a whole frame, and to the full length if the round
// needs it. It counts the values that the conversion changes.
func (c *Config) appendFloats(lanes []uint32, h *handed, n *Numbers) []uint32 {
	digits := func(v uint64, count int) {
		for range count {
			lanes = append(lanes, math.Float32bits(float32(v&(1<<digitBits-1))))
			v >>= digitBits
		}
	}
	digits(1, 1)
	digits(uint64(len(h.values)/4), lengthDigits)
	digits(uint64(h.round), roundDigits)
	digits(uint64(int64(rewardOf(h.reward))+rewardOffset), rewardDigits)
	for len(lanes) < c.digitsRoom() {
		lanes = append(lanes, 0)
	}
	for i := 0; i < len(h.values); i += 4 {
		lanes = append(lanes, binary.LittleEndian.Uint32(h.values[i:]))
	}
	for least := PaddedLength(h.round, c.Lanes-Overhead, c.FloatsJob()); len(lanes) < least; {
		lanes = append(lanes, 0)
	}
	if c.Conversion.IsExact() || c.Conversion.Block { // the endpoint counts, because it knows the scales
		return lanes
	}
	perFrame := c.Lanes - Overhead
	for at := 0; at < len(lanes); at += perFrame {
		clipped, vanished := c.Conversion.CountChanged(0, [][]uint32{lanes[at:min(at+perFrame, len(lanes))]})
		n.Clipped, n.Vanished = n.Clipped+uint32(clipped), n.Vanished+uint32(vanished)
	}
	return lanes
}

// PaddedLength returns the length to which a shorter vector is padded in a round: a frame, or sometimes the full
// length, because programs compare rounds modulo 2^16 and a segment that was not used for 2^15 rounds would seem to be
// ahead.
func PaddedLength(round uint32, perFrame, longest int) int {
	if round%fullEvery == fullEvery-1 {
		return longest
	}
	return min(perFrame, longest)
}

// readDigits returns the sum of the numbers that all workers wrote in count digits at the beginning of their vectors.
func readDigits(sum []uint32, count int) (v int64) {
	for i := count - 1; i >= 0; i-- {
		v = v<<digitBits + int64(math.RoundToEven(float64(math.Float32frombits(sum[i]))))
	}
	return v
}

// CheckFirst implements process.FirstChecker. It ends the job if the first packet of a sum shows that the workers
// disagree.
func (r *Rounds) CheckFirst(values []uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(values) >= floatDigits && readDigits(values, 1) == int64(r.config.Workers) {
		r.checkDigits(values)
	}
}

// checkDigits ends the job and returns false if the workers disagree about the round or the length. The caller must
// hold r.mu.
func (r *Rounds) checkDigits(values []uint32) bool {
	length, n := int64(len(r.flying.values)/4), int64(r.config.Workers)
	lengths := readDigits(values[1:], lengthDigits)
	rounds := readDigits(values[1+lengthDigits:], roundDigits)
	switch round := int64(r.flying.round & (1<<(digitBits*roundDigits) - 1)); {
	case rounds != n*round:
		r.end(fmt.Errorf("%w: this worker is in round %d and another is not; restart all workers, and the server and "+
			"the switch", ErrDisagree, r.flying.round))
	case lengths != n*length:
		r.end(fmt.Errorf("%w: this worker's vector has %d values, and the %d workers' vectors have %d in all; all must "+
			"be of one length in a round", ErrDisagree, length, n, lengths))
	default:
		return true
	}
	return false
}

// applyFloats passes a sum of float32 values to the client, or ends the job if the workers disagree. The caller must
// hold r.mu.
func (r *Rounds) applyFloats(a *endpoint.Aggregate) {
	length, n := len(r.flying.values)/4, int64(r.config.Workers)
	if a.Unequal {
		r.end(fmt.Errorf("%w: this worker's vector has %d values in round %d, and another's has another length; all must "+
			"be of one length in a round", ErrDisagree, length, r.flying.round))
		return
	}
	if len(a.Values) < r.config.digitsRoom()+length {
		r.end(fmt.Errorf("%w: the answer to this worker's vector is shorter than the vector; start the server with the same "+
			"--mode and --values as the workers", ErrDisagree))
		return
	}
	inside := readDigits(a.Values, 1)
	reward := readDigits(a.Values[1+lengthDigits+roundDigits:], rewardDigits) - inside*rewardOffset
	switch {
	case inside != n && r.config.Inexact:
	case inside != n:
		r.end(fmt.Errorf("%w: a sum of round %d has %d vectors of %d workers; restart all workers, and the server and the "+
			"switch", ErrDisagree, r.flying.round, inside, n))
		return
	case !r.checkDigits(a.Values):
		return
	}
	r.waits = false
	sum := Sum{Round: r.flying.round, Workers: uint32(max(inside, 0)), Reward: float32(reward) / 256, Numbers: r.numbers}
	sum.Vanished += uint32(a.Vanished)
	values := a.Values[r.config.digitsRoom():][:length]
	sum.Saturated = uint32(r.config.Conversion.CountSaturated(values))
	if inside != n {
		sum.Torn = 1
	}
	r.message = begin(r.message[:0], KindSum, sum)
	for _, v := range values {
		r.message = binary.LittleEndian.AppendUint32(r.message, v)
	}
	r.flying.answer <- seal(r.message, 0) // does not block: the channel has room for one answer
}
