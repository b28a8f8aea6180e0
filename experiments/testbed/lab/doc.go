// Package lab builds testbeds with real packets from files. A file describes nodes with roles, links between them, and
// programs in the kernel on some nodes, or only a tree for a number of workers. A File is resolved to a Plan, which
// lists every namespace, address and route in advance. Up builds the testbed, and Hold keeps it up for other commands.
// Nothing is pinned and nothing has a name that outlives its process, so that everything that Up built is removed by
// Close or when the process ends.
package lab
