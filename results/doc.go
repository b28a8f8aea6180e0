// Package results turns the observations of a parameter server into numbers, and numbers over runs into documents.
//
// A Collector turns the observations of one run into a Run; Summarise turns the runs of one configuration into a Row
// of statistics; CompareRuns computes the Age-of-Model reductions between two configurations; a Bench contains all
// of it as the document olafctl.bench/v3. docs/reference/metrics.md defines every number with its formula and the
// paper's section.
//
// The package is pure: no clock, no files, no randomness without a seed from the caller. Sums have a fixed order, so
// the same runs give the same bytes. Store, workbook, report and published numbers are in subpackages.
package results
