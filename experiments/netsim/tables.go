package netsim

import (
	"slices"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// tables is what the tables of all switches that add up held within a window.
type tables struct {
	area, bytes float64 // slots × ps, and B × ps
	peak        int     // sum of each switch's
	span        int64   // of the window, ps
}

// tables looks at them at an instant, and changes nothing.
func (s *sim) tables(now int64) (all tables) {
	all.span = max(now-s.meter.from, 0)
	for i := range s.stations {
		st := &s.stations[i]
		if st.front == nil {
			continue
		}
		held := st.At(now)
		all.area += held.Area
		all.bytes += held.Area * float64(st.Memory()) / float64(st.Slots())
		all.peak += held.Peak
	}
	return all
}

// over is an area's mean over the window; missing where that is empty.
func (t *tables) over(area float64) results.Float {
	if t.span == 0 {
		return results.Missing()
	}
	return results.Float(area / float64(t.span))
}

// tableStatistics is what runs are measured by besides where switches add up, in the order of documents.
var tableStatistics = []struct {
	metric.Metric
	of func(*tables) results.Float
}{
	{ofTables(metric.OfHosts("slots_held"), "SLOTS/HELD"), func(t *tables) results.Float { return t.over(t.area) }},
	{ofTables(metric.OfHosts("slots_held_peak"), "SLOTS/MOST"), func(t *tables) results.Float { return results.Float(t.peak) }},
	{ofTables(metric.OfHosts("held_bytes"), "BYTES/HELD"), func(t *tables) results.Float { return t.over(t.bytes) }},
}

// ofTables is a number of hosts that wait for answers as well.
func ofTables(h metric.Host, column string) metric.Metric {
	return metric.Metric{Name: h.Name, Title: h.Title, Unit: h.Unit, Doc: h.Doc, Column: column}
}

// StatisticsOf lists what whole runs of t are measured by.
func StatisticsOf(t *Topology) []*metric.Metric {
	if t.Program == "" {
		return runStatistics
	}
	return summingStatistics
}

// TableStatistics lists what whole runs are measured by besides RunStatistics where switches add up.
func TableStatistics() (rows []*metric.Metric) {
	for i := range tableStatistics {
		rows = append(rows, &tableStatistics[i].Metric)
	}
	return rows
}

// summingStatistics are those of runs whose switches add up.
var summingStatistics = slices.Concat(runStatistics, TableStatistics())

// runValues are the numbers of the whole run up to an instant.
func (s *sim) runValues(all *measured, now int64) metric.Values {
	plain := all.values(runStatistics)
	if s.stations == nil {
		return plain
	}
	held := s.tables(now)
	return metric.NewValues(summingStatistics, func(i int) results.Float {
		if i < len(runStatistics) {
			return plain.Of(summingStatistics[i].Name)
		}
		return tableStatistics[i-len(runStatistics)].of(&held)
	})
}
