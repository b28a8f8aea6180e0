// Package results turns what a parameter server observed into numbers, and numbers over runs into documents.
//
// A Collector streams one run's observations into a Run; Summarise makes a Row of statistics from the runs of one
// configuration; CompareRuns makes the Age-of-Model reductions of two such configurations; a Bench holds all of it as the
// document olafctl.bench/v3. docs/reference/metrics.md defines every number with its formula and the paper's section.
//
// The package is pure: no clock, no file, no randomness that is not seeded by the caller. Sums have a fixed order, so the
// same runs give the same bytes. The store, the workbook, the report and the published numbers live below it.
package results
