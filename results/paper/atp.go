package paper

// causeCollisions is the heading in docs/notes/reproduction.md under which the times of jobs that share a switch are
// explained.
const causeCollisions = "Collisions between jobs"

// sharingSeeds is the number of runs for each measured time of jobs that share a switch. Only the start times of the
// hosts are random in these runs.
const sharingSeeds = 3

// alikePct is the largest difference, in percent, between two times that the slides call alike. It was chosen before
// the first run.
const alikePct = 10

// atpPaper returns the claims of "ATP: In-network Aggregation for Multi-tenant Learning" (NSDI'21), from its slides,
// which print no measured number, and its abstract.
func atpPaper() Paper {
	const slides, abstract = "ATP (NSDI'21), slides", "ATP (NSDI'21), abstract"
	trend := func(column, unit string, side Side, against float64, why string) []Claim {
		return withBasis(Predicted, sharingSeeds, Claim{Column: column, Unit: unit, Kind: Trend, Side: side,
			Neighbour: &Neighbour{Is: against}, Expect: Holds,
			Explanation: why, Cause: causeCollisions})
	}
	return Paper{Name: "atp", rows: []row{
		{artefact: "sharing", row: "too little", source: slides, cells: trend("static over dynamic", "x", Above, 1,
			"ratio of the times of three VGG16 jobs with two workers each and half the aggregators that one job "+
				"needs at its peak")},
		{artefact: "sharing", row: "enough", source: slides, cells: trend("difference", "%", Below, alikePct,
			"alike is read as less than 10 % apart, with the aggregators that all three jobs need at their peaks")},
		{artefact: "text", row: "training throughput above others", source: abstract, cells: untestableClaims("%",
			needsCluster, []string{"least", "most"}, "38", "66")},
	}}
}
