// Package splitmix draws by counter: a draw depends on its purpose, not on the number of draws before it.
package splitmix

// MixBits is one step of splitmix64 with its finalizer: a bijection of 64 bits that decorrelates neighbors.
func MixBits(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
