// Package realtime implements a card with real cables and this machine's clock. Senders, queue and parameter server
// run in separate namespaces, joined by virtual cables, behind the registers of any card.
//
// A Plane decides on frames: kernel programs, or the engine behind packet sockets. The plane is passive. One thread
// of this package times the output (the pacer), another the workers (the generator). Both report their lateness,
// because a process cannot guarantee timing; ages distorted by it must be withheld.
package realtime
