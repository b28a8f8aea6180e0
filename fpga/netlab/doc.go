// Package netlab manages temporary networks on this machine, which consist of network namespaces and virtual cables
// between them. Names cannot collide with those of other processes, and nothing is pinned. A namespace exists as long
// as the thread that created it, and is removed with everything in it. A lab therefore disappears when Close returns or
// when the process is killed. Programs started in a namespace are killed with their parent.
package netlab
