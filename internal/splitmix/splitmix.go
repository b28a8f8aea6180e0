// Package splitmix draws by counter: a draw is a function of what it is for, not of how many were made before it.
package splitmix

// Mix is one step of splitmix64 with its finaliser: a bijection of 64 bits in which neighbours have nothing in common.
func Mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
