package paper

const needsCluster = "needs that system's cluster and switch"

// untestableClaims returns numbers from another system that this project cannot measure yet, for comparison.
func untestableClaims(unit, why string, columns []string, values ...string) []Claim {
	cells := make([]Claim, len(values))
	for i, v := range values {
		cells[i] = Claim{Column: columns[i], Printed: v, Unit: unit, Kind: Value, Basis: Timed, Expect: NotTestable,
			Untestable: why}
	}
	return cells
}

// theirMachineClaims returns numbers specific to the authors' machine, models or training runs, which no measurement
// here can confirm.
func theirMachineClaims(unit, why string, columns []string, values ...string) []Claim {
	cells := untestableClaims(unit, why, columns, values...)
	for i := range cells {
		cells[i].Expect = TheirMachine
	}
	return cells
}

// oldSystemID returns how claims of a system with a single artefact used to be named.
func oldSystemID(name string) func(*row, string) string {
	return func(r *row, column string) string { return name + "." + slug(r.row) + "." + column }
}
