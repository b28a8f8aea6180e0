package monitor

import "github.com/olafctl/olaf/experiments/sweep"

// Sweep tells how a sweep goes; look must be safe at any time.
func (m *Monitor) Sweep(look func() sweep.Progress) {
	m.Work("sweep", func() (int, int) { p := look(); return p.LotsDone, p.Lots })
	for _, of := range []struct {
		name, help string
		value      func(*sweep.Progress) int
	}{
		{"sweep_cells", "cells of the sweep", func(p *sweep.Progress) int { return p.Cells }},
		{"sweep_cells_done", "cells of which everything is there", func(p *sweep.Progress) int { return p.Done }},
		{"sweep_cells_failed", "cells that failed", func(p *sweep.Progress) int { return p.Failed }},
		{"sweep_workers", "workers that have a job at the moment", func(p *sweep.Progress) int { return len(p.Working) }},
	} {
		m.Value(of.name, of.help, func() float64 { p := look(); return float64(of.value(&p)) })
	}
}
