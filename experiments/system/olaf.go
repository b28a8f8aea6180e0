package system

// olafSystem returns OLAF. Its queue merges an update into a waiting update of the same cluster, so that the newest
// model is never far behind.
func olafSystem() System {
	return System{
		Name: "olaf", Title: "OLAF", Paper: "olaf", Discipline: "olaf",
		About: "merges updates of a cluster while they wait in the switch's queue",
	}
}

// fifoSystem returns the ordinary FIFO switch, which is the baseline of all measurements.
func fifoSystem() System {
	return System{Name: "fifo", Title: "FIFO", Discipline: "fifo",
		About: "forwards updates in order and drops what finds the queue full"}
}
