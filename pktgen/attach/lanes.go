package attach

import (
	"encoding/binary"
	"fmt"
	"math"
)

// checkValues returns an error if values are too many, not float32 throughout, or contain NaN or an infinity.
func checkValues(values []byte, largest int) error {
	switch {
	case len(values)%4 != 0:
		return fmt.Errorf("%d bytes are no whole number of float32 values", len(values))
	case len(values) > 4*largest:
		return fmt.Errorf("the vector has %d values, and the largest is %d; start worker and server with more --values",
			len(values)/4, largest)
	}
	const exponent = 0xff << 23
	for i := 0; i < len(values); i += 4 {
		word := binary.LittleEndian.Uint32(values[i:])
		if word&exponent == exponent {
			return fmt.Errorf("value %d is %v, which has no integer lane; only finite values can be sent", i/4,
				math.Float32frombits(word))
		}
	}
	return nil
}

// toLane returns the lane for a float32, rounded to the nearest even, and counts one that was clipped or vanished.
func (n *Numbers) toLane(word uint32, scale float64) uint32 {
	v := math.RoundToEven(float64(math.Float32frombits(word)) * scale)
	switch {
	case v >= math.MaxInt32:
		if v > math.MaxInt32 {
			n.Clipped++
		}
		return math.MaxInt32
	case v <= -math.MaxInt32:
		if v < -math.MaxInt32 {
			n.Clipped++
		}
		return 1<<32 - math.MaxInt32
	case v == 0 && word<<1 != 0:
		n.Vanished++
	}
	return uint32(int32(v))
}

// appendLanes appends the lanes of little-endian float32 values.
func (n *Numbers) appendLanes(lanes []uint32, values []byte, scale float64) []uint32 {
	for i := 0; i+4 <= len(values); i += 4 {
		lanes = append(lanes, n.toLane(binary.LittleEndian.Uint32(values[i:]), scale))
	}
	return lanes
}

// appendValues appends the little-endian float32 of lanes, and counts those at the end of the lane's range.
func (n *Numbers) appendValues(values []byte, lanes []uint32, scale float64) []byte {
	for _, lane := range lanes {
		v := int32(lane)
		if v == math.MaxInt32 || v <= -math.MaxInt32 {
			n.Saturated++
		}
		values = binary.LittleEndian.AppendUint32(values, math.Float32bits(float32(float64(v)/scale)))
	}
	return values
}
