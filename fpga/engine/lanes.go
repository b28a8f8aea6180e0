package engine

import "math"

// addLanes adds src to dst, saturating, and returns how many lanes saturated. dst may be shorter than src.
//
// Eight lanes at a time are added without looking; one test of their collected overflow bits decides whether they are
// kept or done again one by one. Overflow is where the sum's sign differs from both addends' signs.
func addLanes(dst, src []int32) (saturated uint64) {
	src = src[:len(dst)]
	for len(dst) >= 8 {
		d, s := (*[8]int32)(dst), (*[8]int32)(src)
		r0, r1, r2, r3 := d[0]+s[0], d[1]+s[1], d[2]+s[2], d[3]+s[3]
		r4, r5, r6, r7 := d[4]+s[4], d[5]+s[5], d[6]+s[6], d[7]+s[7]
		over := (d[0]^r0)&(s[0]^r0) | (d[1]^r1)&(s[1]^r1) | (d[2]^r2)&(s[2]^r2) | (d[3]^r3)&(s[3]^r3) |
			(d[4]^r4)&(s[4]^r4) | (d[5]^r5)&(s[5]^r5) | (d[6]^r6)&(s[6]^r6) | (d[7]^r7)&(s[7]^r7)
		if over < 0 {
			saturated += addLanesSlowly(d[:], s[:])
		} else {
			d[0], d[1], d[2], d[3] = r0, r1, r2, r3
			d[4], d[5], d[6], d[7] = r4, r5, r6, r7
		}
		dst, src = dst[8:], src[8:]
	}
	return saturated + addLanesSlowly(dst, src)
}

func addLanesSlowly(dst, src []int32) (saturated uint64) {
	for i, s := range src {
		sum := int64(dst[i]) + int64(s)
		dst[i] = saturate(sum)
		if int64(dst[i]) != sum {
			saturated++
		}
	}
	return saturated
}

// saturate is the int32 nearest to v.
func saturate(v int64) int32 {
	return int32(max(math.MinInt32, min(math.MaxInt32, v)))
}
