// Package closedloop simulates closed-loop jobs packet by packet, in both directions. The workers and servers of
// pktgen/endpoint are connected to switches that run a program of fpga/program. Several jobs share the switches, each
// with separate hosts. Package netsim, in contrast, sends open-loop traffic through queue disciplines and agrees with
// ns-3 in every packet.
//
// Links are FIFO, so a frame's departure is known when the frame is handed over. Queues are unbounded, except in a tree
// of switches, where ports have a limited number of slots and drop frames that find none. Hosts take time per message
// and per byte. Links lose frames; each loss is drawn from the frame's number on the link. Time is in picoseconds, all
// results are a function of the configuration, and gradients are only stored if their values are requested.
//
// Both network simulators use the switches and link directions of this package. If only the order of arrival matters, a
// Wire computes a frame's departure as soon as the frame is handed over. If waiting frames may change, as in an OLAF
// queue, an engine.Port precedes a Direction. No memory is allocated per frame.
package closedloop
