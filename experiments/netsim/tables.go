package netsim

import (
	"slices"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// tables contains the occupancy of all adding switches' tables within a window.
type tables struct {
	area, bytes float64 // slots × ps, and B × ps
	peak        int     // sum over the switches
	span        int64   // of the window, ps
}

// measureTables measures the tables at an instant, without side effects.
func (s *sim) measureTables(now int64) (all tables) {
	all.span = max(now-s.meter.from, 0)
	for i := range s.stations {
		st := &s.stations[i]
		if st.front == nil {
			continue
		}
		held := st.OccupancyAt(now)
		all.area += held.Area
		all.bytes += held.Area * float64(st.Memory()) / float64(st.Slots())
		all.peak += held.Peak
	}
	return all
}

// meanOver returns an area's mean over the window; missing if the window is empty.
func (t *tables) meanOver(area float64) results.Float {
	if t.span == 0 {
		return results.Missing()
	}
	return results.Float(area / float64(t.span))
}

// tableStatistics lists the additional metrics of runs with adding switches, in the order of documents.
var tableStatistics = []struct {
	metric.Metric
	of func(*tables) results.Float
}{
	{ofTables(metric.OfHosts("slots_held"), "SLOTS/HELD"), func(t *tables) results.Float { return t.meanOver(t.area) }},
	{ofTables(metric.OfHosts("slots_held_peak"), "SLOTS/MOST"),
		func(t *tables) results.Float { return results.Float(t.peak) }},
	{ofTables(metric.OfHosts("held_bytes"), "BYTES/HELD"),
		func(t *tables) results.Float { return t.meanOver(t.bytes) }},
}

// ofTables returns a metric that closed-loop hosts also have.
func ofTables(h metric.Host, column string) metric.Metric {
	return metric.Metric{Name: h.Name, Title: h.Title, Unit: h.Unit, Doc: h.Doc, Column: column}
}

// StatisticsOf returns the metrics of whole runs of t.
func StatisticsOf(t *Topology) []*metric.Metric {
	if t.Program == "" {
		return runStatistics
	}
	return summingStatistics
}

// TableStatistics returns the additional metrics of whole runs with adding switches.
func TableStatistics() (rows []*metric.Metric) {
	for i := range tableStatistics {
		rows = append(rows, &tableStatistics[i].Metric)
	}
	return rows
}

// summingStatistics lists the metrics for runs with adding switches.
var summingStatistics = slices.Concat(runStatistics, TableStatistics())

// runValues returns the values of the whole run up to an instant.
func (s *sim) runValues(all *measured, now int64) metric.Values {
	plain := all.values(runStatistics)
	if s.stations == nil {
		return plain
	}
	held := s.measureTables(now)
	return metric.NewValues(summingStatistics, func(i int) results.Float {
		if i < len(runStatistics) {
			return plain.Of(summingStatistics[i].Name)
		}
		return tableStatistics[i-len(runStatistics)].of(&held)
	})
}
