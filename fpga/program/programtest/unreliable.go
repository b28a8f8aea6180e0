package programtest

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
)

// packets is the number of packets in a test over an unreliable network. `make campaign` sends a million to every
// program.
var packets = flag.Int("packets", 20_000, "packets to send to a program and its reference over an unreliable way")

// Way is an unreliable network between workers and a program. It loses, duplicates and delays packets, each with a
// probability of one in twenty.
type Way[P any] struct {
	r      *rand.Rand
	now    int
	flying []flight[P]

	Sent, Lost, Twice, Late int
}

type flight[P any] struct {
	due    int
	packet P
}

// oneIn returns true at random, once in twenty calls on average.
func (w *Way[P]) oneIn() bool { return w.r.IntN(20) == 0 }

// Send sends a packet, which may be lost, duplicated or delayed.
func (w *Way[P]) Send(p P) {
	w.Sent++
	copies := 1
	switch {
	case w.oneIn():
		w.Lost++
		return
	case w.oneIn():
		w.Twice++
		copies = 2
	}
	for range copies {
		due := w.now
		if w.oneIn() {
			w.Late++
			due += 1 + w.r.IntN(40)
		}
		w.flying = append(w.flying, flight[P]{due, p})
	}
}

// CountInFlight returns the number of packets that were sent but not delivered yet.
func (w *Way[P]) CountInFlight() int { return len(w.flying) }

// DeliverDue advances time by one step and delivers the packets that are due, in random order.
func (w *Way[P]) DeliverDue(arrive func(P)) {
	w.now++
	w.r.Shuffle(len(w.flying), func(i, k int) { w.flying[i], w.flying[k] = w.flying[k], w.flying[i] })
	var here, rest []flight[P]
	for _, f := range w.flying {
		if f.due < w.now {
			here = append(here, f)
		} else {
			rest = append(rest, f)
		}
	}
	w.flying = rest
	for _, f := range here {
		arrive(f.packet)
	}
}

// RunUnreliable sends packets over a Way. It calls send for each packet to send, and arrive for each packet that is
// delivered. It ends after the number of packets given by the flag -packets, and logs how many were lost, repeated or
// late.
func RunUnreliable[P any](t *testing.T, seed uint64, send func(*rand.Rand, *Way[P]), arrive func(P)) {
	t.Helper()
	w := &Way[P]{r: rand.New(rand.NewPCG(seed, 10))}
	for w.Sent < *packets {
		send(w.r, w)
		w.DeliverDue(arrive)
	}
	if w.Lost == 0 || w.Twice == 0 || w.Late == 0 {
		t.Errorf("of %d packets %d were lost, %d repeated and %d late: nothing was shown", w.Sent, w.Lost, w.Twice,
			w.Late)
	}
	t.Logf("%d packets sent, %d lost, %d repeated, %d late", w.Sent, w.Lost, w.Twice, w.Late)
}

// CompareOutputs compares the packets that a program and its reference sent after an arrival, and empties both lists.
func CompareOutputs(t *testing.T, arrival uint64, have, want *[]string) {
	t.Helper()
	if !slices.Equal(*have, *want) {
		t.Fatalf("packet %d lets %q leave, the reference %q", arrival, *have, *want)
	}
	*have, *want = (*have)[:0], (*want)[:0]
}
