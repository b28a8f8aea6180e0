package endpoint

import (
	"math"
	"slices"
)

// Fixed converts float32 values to int32 values with a scale and back, like the released ATP. Values are rounded to the
// nearest integer, with ties to even. If Truncates is set, the values after the last complete group of eight in a
// packet are truncated instead, as in ATP's scalar code.
type Fixed struct {
	Scale     float64 // 0 for values that are already integers
	Truncates bool
}

// ATPScale is the scale of the released ATP. ATPLargest is the value beyond which it sends floats.
const (
	ATPScale   = 1e6
	ATPLargest = 213
)

const vectorLanes = 8 // lanes in the released client's vector instructions

// on reports whether values are converted at all.
func (f Fixed) on() bool { return f.Scale != 0 }

// integers converts the float32 values in a packet to int32 values.
func (f Fixed) integers(into, floats []uint32) []uint32 {
	whole := len(floats)
	if f.Truncates {
		whole -= whole % vectorLanes
	}
	into = into[:0]
	for i, word := range floats {
		v := float64(math.Float32frombits(word)) * f.Scale
		if i < whole {
			v = math.RoundToEven(v)
		}
		into = append(into, uint32(clampInt32(v)))
	}
	return into
}

// floats converts the int32 values of a sum to float32 values in place.
func (f Fixed) floats(words []uint32) {
	for i, word := range words {
		words[i] = math.Float32bits(float32(float64(int32(word)) / f.Scale))
	}
}

// clampInt32 converts v to an integer in the range of int32. It converts NaN to 0.
func clampInt32(v float64) int32 {
	switch {
	case math.IsNaN(v):
		return 0
	case v >= math.MaxInt32:
		return math.MaxInt32
	case v <= -math.MaxInt32:
		return -math.MaxInt32
	}
	return int32(v)
}

// tooLarge reports whether any value exceeds ATP's integer range.
func tooLarge(floats []uint32) bool {
	return slices.ContainsFunc(floats, func(word uint32) bool {
		v := math.Float32frombits(word)
		return !(v <= ATPLargest && v >= -ATPLargest)
	})
}

// exponent returns a number e with 2^e ≥ |v| for all values in a packet. Like SwitchML's client, it computes e from the
// bits of the largest value. The result is −126 if all values are zero, and at most 127.
func exponent(floats []uint32) int8 {
	most := uint32(0)
	for _, word := range floats {
		most = max(most, word&^(1<<31))
	}
	return int8(min(int(most>>23)-126, 127))
}

// blockScale returns SwitchML's scale for the values in a packet. exponent is the largest exponent of any worker. With
// this scale, the sum over all workers fits into 32 bits.
func blockScale(workers int, exponent int8) float64 {
	return math.MaxInt32 / (float64(workers) * math.Ldexp(1, int(exponent)))
}

// scaleValues converts the float32 values in a packet to int32 values. It rounds halves away from zero.
func scaleValues(into, floats []uint32, scale float64) []uint32 {
	into = into[:0]
	for _, word := range floats {
		into = append(into, uint32(clampInt32(math.Round(float64(math.Float32frombits(word))*scale))))
	}
	return into
}

// unscaleValues converts the int32 values of a sum to float32 values in place.
func unscaleValues(words []uint32, scale float64) {
	for i, word := range words {
		words[i] = math.Float32bits(float32(float64(int32(word)) / scale))
	}
}

// Conversion describes how the hosts of a system convert float32 values to lanes. The zero Conversion sends float32
// values unchanged.
type Conversion struct {
	Fixed         // one scale for all packets
	Block    bool // one scale per packet, as in SwitchML
	Escapes  bool // packets with a value beyond ATPLargest or a sum at the end of int32's range are sent as float32
	Wrapping bool // sums beyond int32 wrap instead of saturating
}

// IsExact reports whether float32 values are sent unchanged.
func (c Conversion) IsExact() bool { return !c.on() && !c.Block }

// CountChanged counts the values in the packet of worker k that are clipped to int32, and the nonzero values that are
// sent as 0. packets contains the packets of all workers at the same place, in float32.
func (c Conversion) CountChanged(k int, packets [][]uint32) (clipped, vanished int) {
	var lanes []uint32
	switch own := packets[k]; {
	case c.Block:
		most := exponent(own)
		for _, p := range packets {
			most = max(most, exponent(p))
		}
		lanes = scaleValues(nil, own, blockScale(len(packets), most))
	case !c.on() || c.Escapes && tooLarge(own):
		return 0, 0
	default:
		lanes = c.integers(nil, own)
	}
	for i, lane := range lanes {
		v := float64(math.Float32frombits(packets[k][i]))
		switch {
		case lane == 0 && v != 0:
			vanished++
		case !c.Block && math.Abs(math.RoundToEven(v*c.Scale)) > math.MaxInt32:
			clipped++
		}
	}
	return clipped, vanished
}

// CountSaturated counts the values of a sum that are equal to the minimum or maximum of int32.
func (c Conversion) CountSaturated(sum []uint32) (saturated int) {
	if !c.on() || c.Wrapping || c.Escapes {
		return 0
	}
	end := float32(math.MaxInt32 / c.Scale)
	for _, word := range sum {
		if v := math.Float32frombits(word); v >= end || v <= -end {
			saturated++
		}
	}
	return saturated
}
