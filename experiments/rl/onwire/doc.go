// Package onwire trains with processes and packets: workers and parameter server are programs on the hosts of a testbed,
// which merges their gradients on the way. Learning itself is in package rl.
package onwire
