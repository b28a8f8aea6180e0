// Package netsim simulates networks of OLAF switches event by event. A network consists of workers that send updates,
// switches with one fpga/engine per output port, links, parameter servers, ACKs that carry queue status back, and the
// workers' transmission control (package tc). Time is an integer count of picoseconds. Randomness is a function of
// seed, worker and update number, so that the same topology and seed produce the same packets on any machine. With FIFO
// queues and the ns3 timing, the simulation agrees with ns-3 packet for packet (docs/notes/ns3.md). The package does
// not depend on a wall clock or a runner.
package netsim
