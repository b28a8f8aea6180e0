package experiments

import "github.com/olafctl/olaf"

// fig6 reproduces the distribution of aggregations per outgoing update (§8.1, Fig. 6).
var fig6 = Experiment{
	Name:     "fig6",
	Artefact: "Fig. 6",
	About:    "aggregations per outgoing update under Olaf at 40, 20 and 5 Gbps",
	Needs:    "1 s",
	OnDevice: true,
	Run:      runPreset("fig6"),
}

// Fig6 is Table1's traffic through Olaf alone, at the three output rates of the figure.
func Fig6() Spec {
	s := Table1()
	s.Experiment, s.Versus = "fig6", ""
	s.OutRates = []olaf.Rate{40 * olaf.Gbps, 20 * olaf.Gbps, 5 * olaf.Gbps}
	return s
}
