package programtest

import "testing"

// PerDecision reports a benchmark's time per packet, for loops that pass this number of packets to a program per
// iteration. The loop's overhead is included.
func PerDecision(b *testing.B, packets int) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*packets), "ns/decision")
}
