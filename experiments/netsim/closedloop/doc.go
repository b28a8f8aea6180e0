// Package closedloop simulates jobs whose hosts wait for answers: workers and servers of pktgen/endpoint around switches that run
// a program of fpga/program, packet by packet in both directions. Several jobs share the switches, each with hosts of its own.
//
// It stands beside package netsim, which plays open-loop traffic through queue disciplines and agrees with ns-3 in every packet. Here
// links are FIFO, so that a frame's departure is known when it is handed over. They are without a limit, but where a tree's hops have
// places for so many bytes and drop what finds none. Hosts cost time by message and by byte; links lose frames, each drawn by its
// number on the link. Time is in picoseconds, everything is a function of the configuration, and no gradient is stored unless its values
// are asked for.
package closedloop
