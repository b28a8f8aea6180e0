// Package realtime is a card whose wires are real and whose clock is this machine's: senders, queue and parameter server in
// namespaces of their own, joined by virtual cables, behind the same registers as any card.
//
// What decides about a frame is a Plane: programs of the kernel, or the engine behind packet sockets. The plane answers
// when it is asked; a thread of this package keeps time at the output (the pacer), another one at the workers (the generator).
// Both tell how late they were: a process can't promise to be on time, so that ages which it spoiled must be withheld.
package realtime
