package paper

import "slices"

// iswitchPaper is "Accelerating Distributed Reinforcement Learning with In-Switch Computing" (ISCA'19).
func iswitchPaper() Paper {
	models := []string{"dqn", "a2c", "ppo", "ddpg"}
	const sizes, speedups, property = "iSwitch (ISCA'19)", "iSwitch (ISCA'19), Table 3", "a property of its models"
	return Paper{Name: "iswitch", was: system("iswitch"), rows: []row{
		{artefact: "table3", row: "sync speedup over ps", source: speedups, cells: elsewhere("x", needsCluster, models, "3.66", "2.55", "1.72", "1.83")},
		{artefact: "table3", row: "allreduce speedup over ps", source: speedups, cells: elsewhere("x", needsCluster, models, "1.97", "1.62", "0.91", "0.90")},
		{artefact: "table3", row: "async speedup over ps", source: speedups, cells: elsewhere("x", needsCluster, models, "3.71", "3.14", "1.92", "1.56")},
		{artefact: "table1", row: "model size", source: sizes, cells: slices.Concat(elsewhere("MB", property, models[:2], "6.41", "3.31"), elsewhere("kB", property, models[2:], "40.02", "157.52"))},
	}}
}
