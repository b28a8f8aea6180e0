package program

import "unsafe"

// Floats views lanes as float32 in place. Lanes are words because most programs add integers; converting each float on its
// way to the adder and back costs as much as the addition, which a sum of 366 lanes a packet cannot afford. Both types are
// 32 bits wide and equally aligned, and neither holds pointers.
func Floats(lanes []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(lanes))), len(lanes))
}

// Add adds src to dst, each lane on its own: integers modulo 2^32, floats rounded as IEEE 754 says. Eight lanes at a time
// spare the bounds checks of the others.
func Add[T uint32 | float32](dst, src []T) {
	src = src[:min(len(src), len(dst))]
	dst = dst[:len(src)]
	for len(dst) >= 8 {
		d, s := (*[8]T)(dst), (*[8]T)(src)
		d[0] += s[0]
		d[1] += s[1]
		d[2] += s[2]
		d[3] += s[3]
		d[4] += s[4]
		d[5] += s[5]
		d[6] += s[6]
		d[7] += s[7]
		dst, src = dst[8:], src[8:]
	}
	for i, v := range src {
		dst[i] += v
	}
}
