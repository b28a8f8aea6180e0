package paper

// switchmlPaper returns the claims from the abstract of "Scaling Distributed Machine Learning with In-Network
// Aggregation" (NSDI'21). XAgg's measurements of SwitchML are among XAgg's claims.
func switchmlPaper() Paper {
	return Paper{Name: "switchml", rows: []row{
		{artefact: "text", row: "training speedup", source: "SwitchML (NSDI'21), abstract",
			cells: untestableClaims("x", needsCluster, []string{"most"}, "5.5")},
	}}
}
