// Package adder is the arithmetic of switches on lanes, which are 32-bit words: float32, integers that wrap, that saturate,
// and that saturate and stay there. Every lane is added on its own, so that eight at a time give what one at a time does.
package adder

import (
	"math"
	"unsafe"
)

// Word is a lane.
type Word interface{ ~int32 | ~uint32 }

// block is how many lanes are added at a time.
const block = 8

// Floats adds src to dst, both the bits of float32, rounded as IEEE 754 says, as far as both have lanes. Lanes are words
// because most programs add integers; converting each float on its way to the adder and back costs as much as the addition,
// which a sum of 366 lanes a packet cannot afford.
func Floats(dst, src []uint32) {
	n := min(len(dst), len(src))
	whole := n &^ (block - 1)
	addFloats(dst[:whole], src[:whole])
	d, s := floats(dst[whole:n]), floats(src[whole:n])
	for i, v := range s {
		d[i] += v
	}
}

// floats views words as float32 in place: both are 32 bits wide and equally aligned, and neither holds pointers.
func floats(words []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

// words views lanes as unsigned in place.
func words[T Word](lanes []T) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(lanes))), len(lanes))
}

// Wrapping adds src to dst modulo 2^32, as far as both have lanes.
func Wrapping[T Word](dst, src []T) {
	n := min(len(dst), len(src))
	whole := n &^ (block - 1)
	addWords(words(dst[:whole]), words(src[:whole]))
	for i, v := range src[whole:n] {
		dst[whole+i] += v
	}
}

// Saturating adds src to dst as int32 held within its range, as far as both have lanes, and says how many were held.
func Saturating[T Word](dst, src []T) (held uint64) {
	n := min(len(dst), len(src))
	d, s := words(dst[:n]), words(src[:n])
	for {
		done := addSaturating(d, s)
		if d, s = d[done:], s[done:]; len(d) < block {
			return held + addSlowly(d, s)
		}
		held += addSlowly(d[:block], s[:block])
		d, s = d[block:], s[block:]
	}
}

// addSlowly is Saturating lane by lane.
func addSlowly(dst, src []uint32) (held uint64) {
	for i, v := range src {
		sum := int64(int32(dst[i])) + int64(int32(v))
		kept := Saturate(sum)
		if int64(kept) != sum {
			held++
		}
		dst[i] = uint32(kept)
	}
	return held
}

// Saturate is the int32 nearest to v.
func Saturate(v int64) int32 { return int32(max(math.MinInt32, min(math.MaxInt32, v))) }

// Sticky adds src to dst as int32 held within its range, as far as both have lanes. A lane that stands at a rail, which
// below begins one early, at -MaxInt32, stays there: so its reader sees that the sum is none.
func Sticky(dst, src []uint32) {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	for {
		done := addSticky(dst, src)
		if dst, src = dst[done:], src[done:]; len(dst) < block {
			stickSlowly(dst, src)
			return
		}
		stickSlowly(dst[:block], src[:block])
		dst, src = dst[block:], src[block:]
	}
}

// stickSlowly is Sticky lane by lane.
func stickSlowly(dst, src []uint32) {
	for i, v := range src {
		if have := int32(dst[i]); !atRail(have) {
			dst[i] = uint32(Saturate(int64(have) + int64(int32(v))))
		}
	}
}

func atRail(lane int32) bool { return lane == math.MaxInt32 || lane <= -math.MaxInt32 }
