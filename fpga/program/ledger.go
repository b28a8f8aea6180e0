package program

import "github.com/olafctl/olaf"

// Indexes of the contribution counters, added to the number of classes, in Counts. Every program that adds has them.
const (
	VectorsIn = iota
	VectorsOut
	VectorsHeld
	VectorsCleared
	Sums
)

// NewLedger returns a ledger with a program's classes and the contribution counters that all programs have. Its
// identity is that every added contribution was sent in a sum, is in the table, or was discarded. output lists the
// classes whose packets are sent on. Classes with a Column are drops.
func NewLedger(classes []olaf.Counter, output ...string) *olaf.Ledger {
	l := &olaf.Ledger{Output: output}
	for _, c := range classes {
		c.Unit = "packets"
		l.Counters = append(l.Counters, c)
		if c.Column != "" {
			l.Parts = append(l.Parts, c.Name)
		}
	}
	l.Counters = append(l.Counters,
		olaf.Counter{Name: "vectors_in", Title: "Contributions in", Unit: "vectors",
			Doc: "workers' contributions inside the packets that were added"},
		olaf.Counter{Name: "vectors_out", Title: "Contributions out", Unit: "vectors",
			Doc: "contributions inside the sums that left, each once"},
		olaf.Counter{Name: "vectors_held", Title: "Contributions held", Column: "HELD", Gauge: true, Unit: "vectors",
			Doc: "contributions inside the table"},
		olaf.Counter{Name: "vectors_cleared", Title: "Contributions cleared", Column: "CLEARED", Unit: "vectors",
			Doc: "contributions that were discarded: overwritten, reset, or removed with their job"})
	l.Identities = []olaf.Identity{{Left: []string{"vectors_in"},
		Right: []string{"vectors_out", "vectors_held", "vectors_cleared"}}}
	l.Parts, l.Inside = append(l.Parts, "vectors_held", "vectors_cleared"), []string{"vectors_held"}
	return l
}

// ForwardPacket forwards a packet that the program does not process, from a child to the uplink or from the uplink to
// the children.
func ForwardPacket(from Port, p *Packet, lanes []uint32, out Out) {
	to := Up
	if from == Uplink {
		to = Down
	}
	out.Emit(to, p, lanes)
}
