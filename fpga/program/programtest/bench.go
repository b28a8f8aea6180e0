package programtest

import "testing"

// PerDecision reports the time per packet in a benchmark that passes the given number of packets to a program in each
// iteration. The time includes the overhead of the loop.
func PerDecision(b *testing.B, packets int) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*packets), "ns/decision")
}
