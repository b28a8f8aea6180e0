// Package splitmix draws random numbers by counter. Each number depends on its purpose and not on how many numbers were
// drawn before.
package splitmix

// MixBits performs one step of splitmix64, including the finalizer. It is a bijection of 64-bit numbers that
// decorrelates neighbors.
func MixBits(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
