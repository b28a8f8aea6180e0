//go:build !amd64 || purego

package adder

// Processing eight lanes at a time avoids seven of eight bounds checks.

func addFloats(dst, src []uint32) { add(asFloats(dst), asFloats(src)) }

func addWords(dst, src []uint32) { add(dst, src) }

func add[T uint32 | float32](dst, src []T) {
	for len(dst) >= block {
		d, s := (*[block]T)(dst), (*[block]T)(src)
		d[0] += s[0]
		d[1] += s[1]
		d[2] += s[2]
		d[3] += s[3]
		d[4] += s[4]
		d[5] += s[5]
		d[6] += s[6]
		d[7] += s[7]
		dst, src = dst[block:], src[block:]
	}
}

// addSaturatingBlocks adds complete blocks until a lane would overflow, and returns the number of lanes that it added.
// A lane overflows if its sum's sign differs from the signs of both addends. Each block's sums are computed without
// checks and kept only if the combined overflow bits are clear.
func addSaturatingBlocks(dst, src []uint32) (done int) {
	for ; len(dst)-done >= block; done += block {
		d, s := (*[block]uint32)(dst[done:]), (*[block]uint32)(src[done:])
		r0, r1, r2, r3 := d[0]+s[0], d[1]+s[1], d[2]+s[2], d[3]+s[3]
		r4, r5, r6, r7 := d[4]+s[4], d[5]+s[5], d[6]+s[6], d[7]+s[7]
		over := (d[0]^r0)&(s[0]^r0) | (d[1]^r1)&(s[1]^r1) | (d[2]^r2)&(s[2]^r2) | (d[3]^r3)&(s[3]^r3) |
			(d[4]^r4)&(s[4]^r4) | (d[5]^r5)&(s[5]^r5) | (d[6]^r6)&(s[6]^r6) | (d[7]^r7)&(s[7]^r7)
		if int32(over) < 0 {
			break
		}
		d[0], d[1], d[2], d[3] = r0, r1, r2, r3
		d[4], d[5], d[6], d[7] = r4, r5, r6, r7
	}
	return done
}

// addStickyBlocks adds nothing, so that all lanes are added one by one.
func addStickyBlocks(_, _ []uint32) (done int) { return 0 }
