package monitor

import "github.com/olafctl/olaf/experiments/sweep"

// AddSweep adds progress metrics for a sweep. look must be safe for concurrent use.
func (m *Monitor) AddSweep(look func() sweep.Progress) {
	m.AddWork("sweep", func() (int, int) { p := look(); return p.LotsDone, p.Lots })
	for _, of := range []struct {
		name, help string
		value      func(*sweep.Progress) int
	}{
		{"sweep_cells", "cells of the sweep", func(p *sweep.Progress) int { return p.Cells }},
		{"sweep_cells_done", "cells that are complete", func(p *sweep.Progress) int { return p.Done }},
		{"sweep_cells_failed", "cells that failed", func(p *sweep.Progress) int { return p.Failed }},
		{"sweep_workers", "workers that have a job now", func(p *sweep.Progress) int { return len(p.Working) }},
	} {
		m.AddValue(of.name, of.help, func() float64 { p := look(); return float64(of.value(&p)) })
	}
}
