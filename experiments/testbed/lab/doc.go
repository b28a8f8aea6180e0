// Package lab builds testbeds with real packets from files: nodes with roles, links between them, programs in the
// kernel on
// some nodes, or a tree for a number of workers. A File becomes a Plan, which lists every namespace, address and route
// in advance; Up builds it, and Hold keeps it for other commands.
//
// Nothing is pinned and nothing has a name that outlives its process: everything that Up built ends with Close or with
// the process.
package lab
