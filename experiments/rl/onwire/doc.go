// Package onwire trains with processes and packets: workers and parameter servers are programs on the hosts of a
// testbed, which merges their gradients on the way. Learning itself is in package rl.
package onwire
