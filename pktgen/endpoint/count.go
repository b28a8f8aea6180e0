package endpoint

import "github.com/olafctl/olaf"

// Indexes of the counters in Counts.
const (
	computed = iota
	sentVectors
	discarded
	sentPackets
	resent
	asked
	answered
	received
	repeated
	zeroed
	inexact
	torn
	updates
	withheld
	crowded
	counters
)

// tally contains the counters of an endpoint.
type tally [counters]uint64

// Counts returns the values of the counters that Describe declares.
func (t *tally) Counts() []uint64 { return t[:] }

// Describe declares the counters that all endpoints have, and the identities between them.
func Describe() *olaf.Ledger {
	return &olaf.Ledger{
		Counters: []olaf.Counter{
			computed:    {Name: "vectors_computed", Title: "Vectors computed", Unit: "vectors", Doc: "gradients that the host computed"},
			sentVectors: {Name: "vectors_sent", Title: "Vectors sent", Unit: "vectors", Doc: "gradients that were sent, or are being sent"},
			discarded:   {Name: "vectors_discarded", Title: "Vectors discarded", Unit: "vectors", Doc: "gradients staler than the bound"},
			sentPackets: {Name: "packets_sent", Title: "Packets sent", Unit: "packets", Doc: "data and results, each for the first time"},
			resent:      {Name: "packets_resent", Title: "Packets resent", Unit: "packets", Doc: "data sent again"},
			asked:       {Name: "control_sent", Title: "Control sent", Unit: "packets", Doc: "requests for help, resets and forced broadcasts"},
			answered:    {Name: "packets_answered", Title: "Answers sent", Unit: "packets", Doc: "results sent to a worker that asked"},
			received: {Name: "packets_received", Title: "Packets received", Unit: "packets",
				Doc: "of sums or of vectors, each for the first time"},
			repeated: {Name: "packets_repeated", Title: "Packets repeated", Unit: "packets", Doc: "of what was here already"},
			zeroed:   {Name: "packets_zeroed", Title: "Packets zeroed", Unit: "packets", Doc: "given up, zeros instead"},
			inexact: {Name: "packets_inexact", Title: "Packets inexact", Unit: "packets",
				Doc: "of a synchronous sum, holding not exactly one contribution of every worker"},
			torn:    {Name: "updates_torn", Title: "Updates torn", Unit: "updates", Doc: "whose packets hold different sets of contributions"},
			updates: {Name: "updates_applied", Title: "Updates applied", Unit: "updates", Doc: "of the weights, on every host that has them"},
			withheld: {Name: "vectors_withheld", Title: "Vectors withheld", Unit: "vectors", Sparse: true,
				Doc: "gradients that transmission control kept from being sent"},
			crowded: {Name: "packets_crowded_out", Title: "Packets crowded out", Unit: "packets", Sparse: true,
				Doc: "dropped by a server whose line was full"},
		},
		Identities: []olaf.Identity{{
			Left: []string{"vectors_computed"}, Right: []string{"vectors_sent", "vectors_discarded", "vectors_withheld"},
		}},
		Output: []string{"updates_applied"},
	}
}
