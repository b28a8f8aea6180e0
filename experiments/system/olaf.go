package system

// olafSystem merges updates that wait in the same cluster's slot, so that the newest model is never far behind.
func olafSystem() System {
	return System{
		Name: "olaf", Title: "OLAF", Paper: "olaf", Discipline: "olaf",
		About: "merges updates of a cluster while they wait in the switch's queue",
	}
}

// fifo is the switch that everything is measured against.
func fifo() System {
	return System{Name: "fifo", Title: "FIFO", Discipline: "fifo", About: "forwards updates in order and drops what finds the queue full"}
}
