// Package closedloop simulates closed-loop jobs: workers and servers of pktgen/endpoint around switches that run a
// program of fpga/program, packet by packet in both directions. Several jobs share the switches, each with separate
// hosts.
//
// Package netsim, in contrast, sends open-loop traffic through queue disciplines and agrees with ns-3 in every packet.
// Here links are FIFO, so a frame's departure is known when it is handed over. Queues are unbounded, except in a tree
// of switches, where ports have a limited number of slots and drop frames that find none. Hosts cost time per message
// and per byte; links lose frames, each drawn by its number on the link. Time is in picoseconds, everything is a
// function of the configuration, and gradients are only stored if their values are requested.
//
// Both network simulators use its switches and the directions of links. If only the order of arrival matters, a Wire
// computes a frame's departure as soon as it is handed over. If waiting frames may change, as in an OLAF queue, an
// engine.Port precedes a Direction. Nothing allocates per frame.
package closedloop
