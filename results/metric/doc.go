// Package metric defines all counters and metrics in one place: names, units, formulas and documentation. Documents,
// tables, workbook, report, dashboard and docs/reference/metrics.md list these rows and no others.
package metric
