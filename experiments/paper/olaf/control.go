package olaf

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/text"
)

// control is an experiment that compares control laws on the networks of Tables 2 and 3. The paper has only one law and
// prints no numbers for others, so the experiment judges no claim.
var control = experiments.Experiment{
	Name:     "olaf/control",
	Artefact: "Tables 2 and 3",
	About: "the networks of Tables 2 and 3 under each law of transmission control, with numbers and with a " +
		"full bit",
	Needs:     "3 min",
	Simulates: true,
	Long:      true,
	Run:       runControl,
}

// controlExpected states the expected results. It was written before the first run.
const controlExpected = "expected before the first run: SW3 is full in most ACKs, so a full bit does nearly as " +
	"well as the paper's numbers; a full queue no longer grows, so an extrapolated occupancy withholds hardly " +
	"anything and differs from no control by less than a point of loss"

// controlBitExpected states the expected results with a full bit in ACKs. It was written before the first such run.
const controlBitExpected = "expected before the first run with one bit instead of Qn: paper and full do exactly " +
	"the same as with numbers; extrapolate sees a queue jump from empty to full and withholds several times " +
	"more, but its loss is less than a point lower"

// controlVariants returns Olaf without control and under every law. N counts clusters, as in the paper's text, or
// senders. An extrapolation does not use N.
func controlVariants() []variant {
	all := []variant{olafPlain}
	for _, count := range []netsim.Count{netsim.CountClusters, netsim.CountSenders} {
		for _, law := range tc.LawNames() {
			ignoresN := law == tc.ExtrapolateLaw && count == netsim.CountSenders
			if law != tc.NoLaw && !ignoresN {
				all = append(all, variant{fmt.Sprintf("%s (N = %s)", law, count), "olaf", count, law, ""})
			}
		}
	}
	for _, law := range []tc.LawName{tc.PaperLaw, tc.FullLaw, tc.ExtrapolateLaw} {
		all = append(all, variant{fmt.Sprintf("%s from a full bit (N = senders)", law), "olaf", netsim.CountSenders, law, tc.FullAck})
	}
	return all
}

func runControl(ctx context.Context, o experiments.Options) (result.Report, error) {
	r := newMultiHopTable("olaf/control", "Tables 2 and 3", &o)
	var points []point
	for _, table := range []struct {
		name   string
		period olaf.Duration
	}{{"Table 2", 100 * olaf.Millisecond}, {"Table 3", 300 * olaf.Millisecond}} {
		for _, v := range controlVariants() {
			c := r.config
			c.Period2 = table.period
			v.name = table.name + ": " + v.name
			points = append(points, point{v.name, v, c})
		}
	}
	var err error
	r.simulated, r.rows, err = simulateVariants(ctx, r.Experiment, &o, r.config.Seeds, points)
	r.Say("the same laws apply in 'olafctl simulate' and 'olafctl train' in virtual time, and in 'olafctl testbed worker' and " +
		"'olafctl bench -d host:' with real ACKs")
	r.Say("%s", controlExpected)
	r.Say("%s", controlBitExpected)
	for i := range r.rows {
		row := &r.rows[i]
		cells := map[string]string{}
		for _, name := range []string{"withheld_pct", "loss_packets_pct", "jain"} {
			cells[name] = text.FormatRounded(row.Stats.Of(name), 1)
		}
		r.Say("%s: withheld %s %%, lost %s %%, gap between the groups %.1f ms, Jain's index %s", row.Name, cells["withheld_pct"],
			cells["loss_packets_pct"], row.gap(), cells["jain"])
	}
	return r.report(), err
}
