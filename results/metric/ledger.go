package metric

import (
	"slices"

	"github.com/olafctl/olaf"
)

// sendingTo returns a ledger with the counter of sent updates. Each sent update arrives and has one of the given
// classes, bypasses the queue, is malformed, or is lost.
func sendingTo(arrivals ...string) *olaf.Ledger {
	return &olaf.Ledger{
		Counters: []olaf.Counter{
			{Name: "sent", Title: "Sent", Unit: "updates", Doc: "offered by the workers or the generator", Paper: "§8.1",
				Register: "generator.sent_packets"},
			{Name: "tc_withheld", Title: "Withheld by transmission control", Unit: "updates", Paper: "§5", Sparse: true,
				Doc: "withheld by transmission control, in addition to `sent` and in no identity below; the " +
					"count is left out if nothing was withheld"},
		},
		Identities: []olaf.Identity{{Left: []string{"sent"}, Right: slices.Concat(arrivals,
			[]string{"bypassed", "malformed", "lost_before_engine"})}},
		Offered: []string{"sent"},
	}
}

// astray declares the counters of frames that never reach a queue or a program.
var astray = &olaf.Ledger{
	Counters: []olaf.Counter{
		{Name: "lost_before_engine", Title: "Lost before the queue", Unit: "frames",
			Register: "queue.lost_before_engine", Aside: true,
			Doc: "arrived where no queue accepted them, or were dropped by a network port"},
		{Name: "lost_on_cable", Title: "Lost on the cable to the queue", Unit: "frames", Sparse: true,
			Doc: "left another card's generator by its port and did not reach the queue's; part of `lost_before_engine`"},
		{Name: "bypassed", Title: "Bypassed", Unit: "frames", Doc: "did not reach the engine: not from a known worker",
			Paper: "§3", Register: "queue.bypassed", Column: "BYPASSED"},
		{Name: "malformed", Title: "Malformed", Unit: "frames", Doc: "did not reach the engine: broken", Paper: "§3",
			Register: "queue.malformed", Column: "MALFORMED"},
		{Name: "misidentified", Title: "Misidentified", Unit: "updates", Register: "queue.misidentified", Aside: true,
			Doc: "the header has another identity than the tables; not a separate class"},
	},
	Parts: []string{"bypassed", "malformed", "lost_before_engine"},
}

// captured declares the counters of a capture after the output.
var captured = &olaf.Ledger{
	Counters: []olaf.Counter{
		{Name: "received", Title: "Received", Unit: "frames",
			Doc: "handed over by the capture; Table 1's \"received at PS\"", Paper: "Table 1", Column: "RECEIVED"},
		{Name: "capture_lost", Title: "Lost in the capture", Unit: "frames",
			Doc: "left the engine, but the capture is known to have lost them", Aside: true},
	},
	Identities: []olaf.Identity{{Left: []string{"delivered"}, Right: []string{"received", "capture_lost"}}},
}
