// Package metric defines the names, units, formulas and documentation of all counters and metrics. Documents, tables,
// workbook, report, dashboard and docs/reference/metrics.md list only metrics that are defined here.
package metric
