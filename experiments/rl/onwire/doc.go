// Package onwire trains with processes and packets: workers and parameter server are programs on the hosts of a testbed, and what is
// between them merges their gradients on the way. Learning is package rl's; here it meets the wire.
package onwire
