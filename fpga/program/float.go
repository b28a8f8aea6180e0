package program

import "unsafe"

// Floats views lanes as float32 in place. Lanes are words because most programs add integers; converting each float on its
// way to the adder and back costs as much as the addition, which a sum of 366 lanes a packet cannot afford. Both types are
// 32 bits wide and equally aligned, and neither holds pointers.
func Floats(lanes []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(lanes))), len(lanes))
}
