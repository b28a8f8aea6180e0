// Package node contains the common parts of both network simulators: switches with a program of fpga/program, and the
// directions of their links. The simulators define the layout of a network and the hosts.
//
// If only the order of arrival matters, a Wire computes a frame's departure as soon as it is handed over. If waiting
// frames may change, as in an OLAF queue, an engine.Port precedes a Direction. Nothing allocates per frame.
package node
