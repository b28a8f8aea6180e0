package metric

import "github.com/olafctl/olaf"

// Sending declares what becomes of updates before they reach a queue or a program.
func Sending() *olaf.Ledger {
	return &olaf.Ledger{
		Counters: []olaf.Counter{
			{Name: "sent", Title: "Sent", Unit: "updates", Doc: "offered by the workers or the generator", Paper: "§8.1", Register: "generator.sent_packets"},
			{Name: "tc_withheld", Title: "Withheld by transmission control", Unit: "updates", Paper: "§5", Sparse: true,
				Doc: "kept from being sent by transmission control, beside `sent` and in no identity; only simulated workers control themselves, and where nothing was withheld it is left out"},
			{Name: "lost_before_engine", Title: "Lost before the queue", Unit: "frames", Doc: "arrived where no queue took them, or were dropped by a network port", Register: "queue.lost_before_engine", Aside: true},
			{Name: "bypassed", Title: "Bypassed", Unit: "frames", Doc: "no engine matter: not of a known worker", Paper: "§3", Register: "queue.bypassed"},
			{Name: "malformed", Title: "Malformed", Unit: "frames", Doc: "no engine matter: broken", Paper: "§3", Register: "queue.malformed"},
			{Name: "misidentified", Title: "Misidentified", Unit: "updates", Doc: "the header named another identity than the tables; not a class of its own", Register: "queue.misidentified", Aside: true},
		},
		Identities: []olaf.Identity{{Left: []string{"sent"}, Right: []string{"in", "bypassed", "malformed", "lost_before_engine"}}},
		Offered:    []string{"sent"},
	}
}

// Captured declares what a capture behind the output saw of it.
func Captured() *olaf.Ledger {
	return &olaf.Ledger{
		Counters: []olaf.Counter{
			{Name: "received", Title: "Received", Unit: "frames", Doc: "handed over by the capture; Table 1's \"received at PS\"", Paper: "Table 1"},
			{Name: "capture_lost", Title: "Lost in the capture", Unit: "frames", Doc: "left the engine, but the capture is known to have lost them", Aside: true},
		},
		Identities: []olaf.Identity{{Left: []string{"delivered"}, Right: []string{"received", "capture_lost"}}},
	}
}

// OfQueue declares the whole account of a run through one queue, in the order of documents: what was sent, what the queue
// declares of arrivals and frames, what was captured, and what the queue declares of the counts inside of frames.
func OfQueue(flow, sums *olaf.Ledger) *olaf.Ledger {
	return olaf.JoinLedgers(Sending(), flow, Captured(), sums)
}
