// Package netlab manages temporary networks on this machine: namespaces, and virtual cables between them.
//
// Names cannot collide with other processes, and nothing is pinned. A namespace lives as long as the thread that
// created it, and everything in it ends with it. A lab therefore disappears when Close returns or when the process
// is killed. Programs started in a namespace end with their parent.
package netlab
