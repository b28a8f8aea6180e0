package paper

const needsCluster = "needs that system's cluster and switch"

// untestableClaims returns claims for another system's numbers that this project cannot measure yet. They are shown for
// comparison.
func untestableClaims(unit, why string, columns []string, values ...string) []Claim {
	cells := make([]Claim, len(values))
	for i, v := range values {
		cells[i] = Claim{Column: columns[i], Printed: v, Unit: unit, Kind: Value, Basis: Timed, Expect: NotTestable,
			Untestable: why}
	}
	return cells
}

// theirMachineClaims returns claims for numbers that depend on the authors' machine, models or training runs, so that
// no measurement here can confirm them.
func theirMachineClaims(unit, why string, columns []string, values ...string) []Claim {
	cells := untestableClaims(unit, why, columns, values...)
	for i := range cells {
		cells[i].Expect = TheirMachine
	}
	return cells
}

// oldSystemID returns a function that returns the id that a claim had before ids contained the paper's name. It is for
// systems with a single artefact.
func oldSystemID(name string) func(*row, string) string {
	return func(r *row, column string) string { return name + "." + slug(r.row) + "." + column }
}
