// Package netsim simulates networks of OLAF switches event by event: workers that send updates, switches with one
// fpga/engine per output port, links, parameter servers, ACKs that carry queue status back, and the workers'
// transmission control (package tc).
//
// Time is an integer count of picoseconds, and randomness is a function of seed, worker and update number, so that the
// same topology and seed give the same packets on any machine. With FIFO queues and the ns3 timing it agrees with ns-3
// packet for packet (docs/notes/ns3.md). The package does not depend on a wall clock or a runner.
package netsim
