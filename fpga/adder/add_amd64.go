//go:build !purego

package adder

import "unsafe"

// These functions process blocks of eight lanes. The latter two stop before the first block with an overflowing lane or
// a lane at its limit, and return the number of remaining blocks.

//go:noescape
func floatBlocks(dst, src *uint32, blocks int)

//go:noescape
func wordBlocks(dst, src *uint32, blocks int)

//go:noescape
func saturatingBlocks(dst, src *uint32, blocks int) (left int)

//go:noescape
func stickyBlocks(dst, src *uint32, blocks int) (left int)

// addFloats adds complete blocks of float32 lanes. addWords does the same for words that wrap.
func addFloats(dst, src []uint32) {
	floatBlocks(unsafe.SliceData(dst), unsafe.SliceData(src), len(dst)/block)
}

func addWords(dst, src []uint32) {
	wordBlocks(unsafe.SliceData(dst), unsafe.SliceData(src), len(dst)/block)
}

// addSaturatingBlocks adds complete blocks until a lane would overflow. It returns the number of lanes that it added.
// addStickyBlocks does the same, and also stops at lanes that are at a limit.
func addSaturatingBlocks(dst, src []uint32) (done int) {
	n := len(dst) / block
	return (n - saturatingBlocks(unsafe.SliceData(dst), unsafe.SliceData(src), n)) * block
}

func addStickyBlocks(dst, src []uint32) (done int) {
	n := len(dst) / block
	return (n - stickyBlocks(unsafe.SliceData(dst), unsafe.SliceData(src), n)) * block
}
