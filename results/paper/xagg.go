package paper

// xaggPaper is XAgg (IEEE/ACM ToN 2023).
func xaggPaper() Paper {
	const source = "XAgg (ToN'23)"
	return Paper{Name: "xagg", was: system("xagg"), rows: []row{
		{artefact: "text", row: "throughput", source: source, cells: elsewhere("Gbps", needsCluster, []string{"1 core", "10 cores"}, "13", "99.5")},
		{artefact: "text", row: "over tcp", source: source, cells: elsewhere("x", needsCluster, []string{"throughput"}, "3.3")},
		{artefact: "text", row: "communication time saved", source: source, cells: elsewhere("%", needsCluster, []string{"least", "most"}, "49", "82")},
	}}
}
