package paper

// aoiPaper is P4INC-AOI.
func aoiPaper() Paper {
	const source = "P4INC-AOI, Table I and text"
	return Paper{Name: "p4inc-aoi", was: system("p4inc-aoi"), rows: []row{
		{artefact: "text", row: "completion time saved", source: source, cells: elsewhere("%", needsCluster, []string{"resnet50", "vgg16"}, "46.66", "56.34")},
		{artefact: "text", row: "heuristic above optimum", source: source, cells: elsewhere("%", needsCluster, []string{"least", "most"}, "16", "17")},
		{artefact: "text", row: "heuristic time", source: source, cells: elsewhere("s", needsCluster, []string{"about"}, "1")},
	}}
}
