// Package adder implements the switches' arithmetic on 32-bit lanes. Lanes are float32, or integers that wrap,
// saturate, or saturate and stay at the limit. Lanes are independent, so adding eight at a time gives the same result
// as adding one at a time.
package adder

import (
	"math"
	"unsafe"
)

// word is the type of an integer lane.
type word interface{ ~int32 | ~uint32 }

// block is the number of lanes that are added at a time.
const block = 8

// AddFloats adds src to dst, up to the length of the shorter slice. Both contain float32 bits, and sums are rounded
// according to IEEE 754. The lanes are words because most programs add integers, and converting each value would cost
// as much as the addition itself, which is too much for packets of 366 lanes.
func AddFloats(dst, src []uint32) {
	n := min(len(dst), len(src))
	whole := n &^ (block - 1)
	addFloats(dst[:whole], src[:whole])
	d, s := asFloats(dst[whole:n]), asFloats(src[whole:n])
	for i, v := range s {
		d[i] += v
	}
}

// asFloats returns the words as a slice of float32 that shares their memory. Both types are 32 bits wide, equally
// aligned, and free of pointers.
func asFloats(words []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

// asWords returns the lanes as a slice of unsigned words that shares their memory.
func asWords[T word](lanes []T) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(lanes))), len(lanes))
}

// AddWrapping adds src to dst modulo 2^32, up to the length of the shorter slice.
func AddWrapping[T word](dst, src []T) {
	n := min(len(dst), len(src))
	whole := n &^ (block - 1)
	addWords(asWords(dst[:whole]), asWords(src[:whole]))
	for i, v := range src[whole:n] {
		dst[whole+i] += v
	}
}

// AddSaturating adds src to dst as int32 values, up to the length of the shorter slice. Sums are clamped to the range
// of int32. It returns the number of clamped lanes.
func AddSaturating[T word](dst, src []T) (held uint64) {
	n := min(len(dst), len(src))
	d, s := asWords(dst[:n]), asWords(src[:n])
	for {
		done := addSaturatingBlocks(d, s)
		if d, s = d[done:], s[done:]; len(d) < block {
			return held + addSaturatingLanes(d, s)
		}
		held += addSaturatingLanes(d[:block], s[:block])
		d, s = d[block:], s[block:]
	}
}

// addSaturatingLanes does the same as AddSaturating, lane by lane.
func addSaturatingLanes(dst, src []uint32) (held uint64) {
	for i, v := range src {
		sum := int64(int32(dst[i])) + int64(int32(v))
		kept := ClampInt32(sum)
		if int64(kept) != sum {
			held++
		}
		dst[i] = uint32(kept)
	}
	return held
}

// ClampInt32 returns v clamped to the range of int32.
func ClampInt32(v int64) int32 { return int32(max(math.MinInt32, min(math.MaxInt32, v))) }

// AddSticky adds src to dst as int32 values clamped to ±MaxInt32, up to the length of the shorter slice. A lane that
// has reached a limit stays there, so that a reader recognizes an invalid sum.
func AddSticky(dst, src []uint32) {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	for {
		done := addStickyBlocks(dst, src)
		if dst, src = dst[done:], src[done:]; len(dst) < block {
			addStickyLanes(dst, src)
			return
		}
		addStickyLanes(dst[:block], src[:block])
		dst, src = dst[block:], src[block:]
	}
}

// addStickyLanes does the same as AddSticky, lane by lane.
func addStickyLanes(dst, src []uint32) {
	for i, v := range src {
		if have := int32(dst[i]); have < math.MaxInt32 && have > -math.MaxInt32 {
			dst[i] = uint32(ClampInt32(int64(have) + int64(int32(v))))
		}
	}
}
