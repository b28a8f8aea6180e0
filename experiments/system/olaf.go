package system

// olafSystem returns OLAF, which merges updates waiting in the same cluster's slot, so that the newest model is never
// far behind.
func olafSystem() System {
	return System{
		Name: "olaf", Title: "OLAF", Paper: "olaf", Discipline: "olaf",
		About: "merges updates of a cluster while they wait in the switch's queue",
	}
}

// fifoSystem returns the plain switch, the baseline of all measurements.
func fifoSystem() System {
	return System{Name: "fifo", Title: "FIFO", Discipline: "fifo",
		About: "forwards updates in order and drops what finds the queue full"}
}
