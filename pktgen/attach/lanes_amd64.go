//go:build !purego

package attach

import "unsafe"

// laneBlocks and valueBlocks convert values in blocks of four. They stop before the first block with a value or lane
// that must be counted, and return the number of remaining blocks. most is the largest float32 word, without its sign,
// that is not clipped.

//go:noescape
func laneBlocks(dst *uint32, src *byte, blocks int, scale, rounding float64, most uint32) (left int)

//go:noescape
func valueBlocks(dst *byte, src *uint32, blocks int, scale float64) (left int)

// convertLanes converts complete blocks of values to lanes, and convertValues converts lanes to values. They stop
// before the first block that contains something to count, and return the number of converted values.
func convertLanes(into []uint32, values []byte, scale float64, most uint32) (done int) {
	n := len(into) / block
	return (n - laneBlocks(unsafe.SliceData(into), unsafe.SliceData(values), n, scale, rounding, most)) * block
}

func convertValues(into []byte, lanes []uint32, scale float64) (done int) {
	n := len(lanes) / block
	return (n - valueBlocks(unsafe.SliceData(into), unsafe.SliceData(lanes), n, scale)) * block
}
