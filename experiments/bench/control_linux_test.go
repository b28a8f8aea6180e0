package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/testbed"
)

// TestControlOnRealPackets checks what must be true of transmission control under any load: each update of the plan is
// sent or withheld, the run is valid, and the paper's law withholds updates exactly if its ACKs can show more active
// clusters than slots. Whether an ACK finds a full queue depends on the load.
func TestControlOnRealPackets(t *testing.T) {
	of := func(law tc.LawName, ack tc.AckContent, count netsim.Count) *Control {
		return &Control{tc.Control{Law: law, Threshold: olaf.Second, Ack: ack}, count}
	}
	for _, c := range []struct {
		name        string
		control     *Control
		least, most int64 // number of withheld updates
	}{
		{"without", nil, 0, 0},
		{"law none", of(tc.NoLaw, "", ""), 0, 0},
		{"paper", of(tc.PaperLaw, "", ""), 1, 1079},
		{"paper, senders", of(tc.PaperLaw, "", netsim.CountSenders), 1, 1079},
		{"paper, inside: never more than slots", of(tc.PaperLaw, "", netsim.CountInside), 0, 0},
		{"full", of(tc.FullLaw, "", netsim.CountSenders), 0, 1079},
		{"full, from the bit", of(tc.FullLaw, tc.FullAck, netsim.CountSenders), 0, 1079},
		{"extrapolate", of(tc.ExtrapolateLaw, "", ""), 0, 1079},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := usualSpec()
			w := &s.Workload
			w.MeanRate, w.LineRate, w.BurstPackets, w.UpdatesPerWorker = 4*olaf.Mbps, 4*olaf.Mbps, 1, 40
			s.OutRates, s.Runs, s.Slots, s.Versus, s.Control = []olaf.Rate{olaf.Mbps}, 1, 2, "", c.control
			m := measureOnWires(t, s, Options{})
			must(t, m.Err())
			said := slices.ContainsFunc(m.Bench.Statements, func(s string) bool { return strings.Contains(s, "workers withheld") })
			if said != (c.control != nil) {
				t.Errorf("the share of withheld updates is stated: %v", said)
			}
			n := m.Outcome.Runs[0][0].Counters
			sent, withheld := n.Of("sent"), n.Of("tc_withheld")
			if planned := int64(w.Workers * w.UpdatesPerWorker); sent+withheld != planned || withheld < c.least || withheld > c.most {
				t.Errorf("%d sent, %d withheld of %d updates", sent, withheld, planned)
			}
		})
	}
}

// TestControlRefusals checks that transmission control is rejected without a law, a threshold or workers that send
// without waiting, and on devices that do not answer updates.
func TestControlRefusals(t *testing.T) {
	loop := wiringSpec("switchml")
	loop.Control = &Control{Control: tc.Control{Law: tc.NoLaw}}
	unknown, low := usualSpec(), usualSpec()
	unknown.Control = &Control{Control: tc.Control{Law: "psychic", Threshold: 1}}
	low.Control = &Control{Control: tc.Control{Law: tc.FullLaw, Threshold: -olaf.Second}}
	for want, s := range map[string]Spec{
		"transmission control is only for open-loop workers":  loop,
		`law "psychic" is not one of`:                         unknown,
		"threshold is -1s; it must be positive, such as 50ms": low,
	} {
		if err := s.Validate(); err == nil || olaf.FieldOf(err) != "control" || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	s := usualSpec()
	s.Control = &Control{Control: tc.Control{Law: tc.PaperLaw, Threshold: olaf.Second}}
	_, err := MeasureSpec(t.Context(), s, Options{Device: "", Access: testbed.Access{}})
	if err == nil || !strings.Contains(err.Error(), "does not answer its generator's updates with ACKs") {
		t.Errorf("on the twin: %v", err)
	}
}
