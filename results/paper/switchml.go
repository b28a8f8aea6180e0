package paper

// switchmlPaper returns the claims from the abstract of "Scaling Distributed Machine Learning with In-Network
// Aggregation" (NSDI'21). The claims of XAgg include its own measurements of SwitchML.
func switchmlPaper() Paper {
	return Paper{Name: "switchml", rows: []row{
		{artefact: "text", row: "training speedup", source: "SwitchML (NSDI'21), abstract",
			cells: untestableClaims("x", needsCluster, []string{"most"}, "5.5")},
	}}
}
