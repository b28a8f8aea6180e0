// Package realtime implements a card with real network cables that runs on this machine's clock. Senders, queue and
// parameter server run in separate namespaces, which are connected by virtual cables. The card has the same registers
// as any other card. A Plane decides what happens to each frame. It consists of kernel programs, or of the engine with
// packet sockets. The plane is passive: one thread of this package, the pacer, times the output, and another, the
// generator, times the workers. Both report their lateness, because a process cannot guarantee timing. If lateness
// distorts the ages, they must be withheld.
package realtime
