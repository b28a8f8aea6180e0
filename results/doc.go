// Package results computes numbers from the observations of a parameter server, and documents from the numbers of
// several runs. A Collector turns the observations of one run into a Run. Summarise turns the runs of one configuration
// into a Row of statistics. CompareRuns computes the Age-of-Model reductions between two configurations. A Bench
// contains all of these as the document olafctl.bench/v3. docs/reference/metrics.md defines every number with its
// formula and the paper's section. The package is pure: it uses no clock, no files, and no randomness without a seed
// from the caller. Sums are computed in a fixed order, so that the same runs always produce the same bytes. The store,
// the workbook, the report and the published numbers are in subpackages.
package results
