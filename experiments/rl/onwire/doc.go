// Package onwire trains with real processes and packets. Workers and parameter servers are programs on the hosts of a
// testbed, which merges gradients on their way. The learning itself is implemented in package rl.
package onwire
