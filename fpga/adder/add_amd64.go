//go:build !purego

package adder

import "unsafe"

// Blocks of eight lanes. The latter two end before the first block in which a lane would overflow, or stands at a rail, and
// say how many are left.

//go:noescape
func floatBlocks(dst, src *uint32, blocks int)

//go:noescape
func wordBlocks(dst, src *uint32, blocks int)

//go:noescape
func saturatingBlocks(dst, src *uint32, blocks int) (left int)

//go:noescape
func stickyBlocks(dst, src *uint32, blocks int) (left int)

// addFloats and addWords add whole blocks.
func addFloats(dst, src []uint32) {
	floatBlocks(unsafe.SliceData(dst), unsafe.SliceData(src), len(dst)/block)
}

func addWords(dst, src []uint32) {
	wordBlocks(unsafe.SliceData(dst), unsafe.SliceData(src), len(dst)/block)
}

// addSaturating and addSticky add whole blocks up to one that has to be looked at, and say how many lanes they did.
func addSaturating(dst, src []uint32) (done int) {
	n := len(dst) / block
	return (n - saturatingBlocks(unsafe.SliceData(dst), unsafe.SliceData(src), n)) * block
}

func addSticky(dst, src []uint32) (done int) {
	n := len(dst) / block
	return (n - stickyBlocks(unsafe.SliceData(dst), unsafe.SliceData(src), n)) * block
}
