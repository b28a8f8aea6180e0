// Package node is what the networks of both simulators are made of: switches that own a program of fpga/program, and the
// directions of their links. How a network is laid out, and what hosts do, is for the simulators to say.
//
// Where only the order of coming decides about frames, a Wire says when one leaves as soon as it is handed over; where what waits may
// change meanwhile, as in an OLAF queue, an engine.Port stands in front of a Direction. Nothing allocates per frame.
package node
