// Package papertest lists the numbers of the papers that are not claims, for the tests of the claims.
package papertest

// NotCarried describes numbers that a paper prints and that are not claims here, with the reason.
type NotCarried struct {
	Paper   string
	Numbers []string // numbers with their units, which cells of tables need not have
	Reason  string
}

// Reasons why numbers are not claims.
const (
	isInput    = "a setting of their experiments"
	isDesign   = "a constant of the design, built here as printed, or differently for a reason on the paper's page"
	isTheirs   = "a property of their machines"
	isElse     = "a number from other work, cited as motivation"
	isRounded  = "another printed number, rounded"
	isBaseline = "the baseline that speed-ups are relative to"
)

// ListNotCarried returns the printed numbers, with a unit or in a table, that are not claims here, for each paper.
func ListNotCarried() []NotCarried {
	return []NotCarried{
		{"olaf", []string{"60 Gbps", "5 Gbps", "27 workers", "500 packets", "2048 bits", "8 packets", "200 iterations", "3 workers",
			"10 workers", "5 packets", "400 ms", "100 ms", "300 ms", "20 Gbps", "40 Gbps"}, isInput},
		{"olaf", []string{"512 bits", "64 bytes", "1500 bytes", "9036 bytes", "4 ns"}, isDesign},
		{"olaf", []string{"96 cores"}, isTheirs},
		{"olaf", []string{"304 bits", "96 ns", "1152 ns"}, "contradictions by arithmetic, in docs/notes/reproduction.md"},
		{"olaf", []string{"243 ms", "291 ms", "2900 ms"}, "text that repeats Table 3 and Fig. 10, for which there " +
			"are claims"},
		{"iswitch", []string{"1,522 bytes", "256 bits"}, isDesign},
		{"iswitch", []string{"10 Gbps"}, isInput},
		{"iswitch", []string{"100 Gbps"}, "faster links that they did not use"},
		{"iswitch", []string{"10 %"}, "a comparison of their reference designs with other code, neither of which is " +
			"available"},
		{"iswitch", []string{"6.4 MB", "3.3 MB", "40 KB", "157.5 KB"}, isRounded},
		{"iswitch", []string{"1.00 ×"}, isBaseline},
		{"p4inc", []string{"14 us"}, "not a quantity: lines 7 to 14 use a search"},
		{"p4inc", []string{"99 %"}, isElse},
		{"p4inc", []string{"32 ×"}, isTheirs},
		{"p4inc", []string{"224 ×", "528 MB", "102 MB"}, isInput},
		{"p4inc", []string{"100"}, isInput},
		{"atp", []string{"6.5 Tbps"}, isTheirs},
		{"atp", []string{"1,472", "1,024", "47 min", "67 min"}, isElse},
		{"atp", []string{"00101", "01101", "10001", "0", "2", "3", "5", "900", "1000"}, "an example of a switch's table on a slide"},
		{"atp", []string{"32 bits", "1 bit", "248 bytes"}, isDesign},
		{"xagg", []string{"62 ×", "79 %", "22 MB", "1274 MB", "60 %", "35 %"}, isElse},
		{"xagg", []string{"30 Gbps"}, isRounded},
		{"xagg", []string{"10 Gbps", "100 Gbps", "2.5 Gbps", "7 workers", "40 Gbps", "25 MB", "97 MB", "233 MB", "528 MB", "542 MB", "60 Gbps",
			"20 Gbps", "10 ms", "1280 bytes", "10 cores"}, isInput},
		{"xagg", []string{"1328 bytes", "32 bits", "256 ×", "1024 packets", "10 %", "80 %"}, isDesign},
		{"xagg", []string{"44 cores", "128 GB"}, isTheirs},
		{"xagg", []string{"100 %"}, "the load of a polling core, as in all DPDK programs"},
		{"xagg", []string{"25 %"}, "a share of a training run's time, which needs their cluster"},
	}
}
