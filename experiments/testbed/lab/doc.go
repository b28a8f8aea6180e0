// Package lab is testbeds of real packets as people write them down: nodes with roles, links between them, the kernel's
// programs on some, or a tree of a number of workers. A File becomes a Plan, which says every namespace, address and route
// before anything is made; Up makes it, and Hold keeps it for other commands.
//
// Nothing is pinned and nothing has a name that outlives its process: what Up made ends with Close, or with the process in
// whatever way that ends.
package lab
