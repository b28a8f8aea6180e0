// Package metric holds the rows of what is counted and measured: names, units, formulas, and what the documentation says of
// each, once. Documents, tables, workbook, report, dashboard and docs/reference/metrics.md list these rows and no others.
package metric
