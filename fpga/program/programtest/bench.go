package programtest

import "testing"

// PerDecision reports what a benchmark cost for each of the packets that one turn of its loop hands to a program. What the loop itself
// costs is in it.
func PerDecision(b *testing.B, packets int) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*packets), "ns/decision")
}
