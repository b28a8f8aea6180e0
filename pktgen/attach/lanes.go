package attach

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
)

// checkValues returns an error if there are too many values or a value is incomplete. If the values must be converted
// to integer lanes, it also rejects NaN and infinities.
func (c *Config) checkValues(values []byte, largest int) error {
	switch {
	case len(values)%4 != 0:
		return fmt.Errorf("%d bytes are no whole number of float32 values", len(values))
	case len(values) > 4*largest:
		return fmt.Errorf("the vector has %d values, and the largest is %d; start worker and server with more --values",
			len(values)/4, largest)
	}
	if c.Floats && !c.RefusesNaN || allFinite(values) {
		return nil
	}
	for i := 0; i < len(values); i += 4 {
		word := binary.LittleEndian.Uint32(values[i:])
		if word&exponent == exponent {
			return fmt.Errorf("value %d is %v, which has no integer lane; only finite values can be sent", i/4,
				math.Float32frombits(word))
		}
	}
	return nil
}

// exponent is the mask for the exponent bits of a float32, which are all ones for NaN and infinities.
const exponent = 0xff << 23

// allFinite reports whether none of the float32 values is NaN or an infinity. It checks two values at a time: if an
// exponent is all ones, adding one overflows into the sign bit.
func allFinite(values []byte) bool {
	const both, one, signs = exponent<<32 | exponent, 1<<55 | 1<<23, 1<<63 | 1<<31
	found := uint64(0)
	for ; len(values) >= 8; values = values[8:] {
		found |= binary.LittleEndian.Uint64(values)&both + one
	}
	for ; len(values) >= 4; values = values[4:] {
		found |= uint64(binary.LittleEndian.Uint32(values)&exponent) + 1<<23
	}
	return found&signs == 0
}

// toLane returns the lane for a float32 value, rounded to the nearest integer with ties to even. It counts values that
// are clipped or become 0.
//
//go:noinline
func (n *Numbers) toLane(word uint32, scale float64) uint32 {
	v := math.RoundToEven(float64(math.Float32frombits(word)) * scale)
	switch {
	case v > math.MaxInt32:
		n.Clipped++
		return math.MaxInt32
	case v < -math.MaxInt32:
		n.Clipped++
		return 1<<32 - math.MaxInt32
	case v == 0 && word<<1 != 0:
		n.Vanished++
	}
	return uint32(int32(v))
}

// rounding is a float64 whose lowest bit has the value 1. Adding it to a number in the range of int32 rounds the number
// to the nearest integer, with ties to even. The result can then be read from the low bits.
const rounding = 3 << 51

// inHalves calls convert for all values at once or, if there are many, for each half on a separate processor. A second
// processor is free, because the program that needs the values is waiting.
func (n *Numbers) inHalves(values int, convert func(n *Numbers, from, to int)) {
	const many = 1 << 15
	if values < many {
		convert(n, 0, values)
		return
	}
	var other Numbers
	var wait sync.WaitGroup
	wait.Go(func() { convert(&other, values/2, values) })
	convert(n, 0, values/2)
	wait.Wait()
	n.Clipped, n.Vanished, n.Saturated = n.Clipped+other.Clipped, n.Vanished+other.Vanished, n.Saturated+other.Saturated
}

// appendLanes converts little-endian float32 values to lanes and appends them.
func (n *Numbers) appendLanes(lanes []uint32, values []byte, scale float64) []uint32 {
	at := len(lanes)
	lanes = slices.Grow(lanes, len(values)/4)[:at+len(values)/4]
	n.inHalves(len(values)/4, func(n *Numbers, from, to int) {
		n.toLanes(lanes[at+from:at+to], values[4*from:], scale)
	})
	return lanes
}

// block is the number of values that are converted in one step.
const block = 4

// toLanes converts little-endian float32 values to lanes until into is full.
func (n *Numbers) toLanes(into []uint32, values []byte, scale float64) {
	large := math.Float32bits(float32(math.MaxInt32 / scale / 2)) // no smaller value is clipped
	for len(into) > 0 {
		if done := convertLanes(into, values, scale, large-1); done > 0 {
			into, values = into[done:], values[4*done:]
			continue
		}
		one := min(block, len(into))
		for i := range into[:one] {
			word := binary.LittleEndian.Uint32(values[4*i:])
			lane := uint32(math.Float64bits(float64(float64(math.Float32frombits(word))*scale) + rounding))
			if lane == 0 || word&^(1<<31) >= large {
				lane = n.toLane(word, scale)
			}
			into[i] = lane
		}
		into, values = into[one:], values[4*one:]
	}
}

// appendValues converts lanes to little-endian float32 values and appends them. It counts lanes with the minimum or
// maximum value.
func (n *Numbers) appendValues(values []byte, lanes []uint32, scale float64) []byte {
	at := len(values)
	values = slices.Grow(values, 4*len(lanes))[:at+4*len(lanes)]
	n.inHalves(len(lanes), func(n *Numbers, from, to int) {
		n.toValues(values[at+4*from:], lanes[from:to], scale)
	})
	return values
}

// toValues converts lanes to little-endian float32 values.
func (n *Numbers) toValues(into []byte, lanes []uint32, scale float64) {
	for len(lanes) > 0 {
		if done := convertValues(into, lanes, scale); done > 0 {
			lanes, into = lanes[done:], into[4*done:]
			continue
		}
		one := min(block, len(lanes))
		for i, lane := range lanes[:one] {
			v := int32(lane)
			if v == math.MaxInt32 || v <= -math.MaxInt32 {
				n.Saturated++
			}
			binary.LittleEndian.PutUint32(into[4*i:], math.Float32bits(float32(float64(v)/scale)))
		}
		lanes, into = lanes[one:], into[4*one:]
	}
}
