package atp

import (
	"context"
	"testing"

	"github.com/olafctl/olaf/experiments/system"
)

// BenchmarkSharing measures a data packet of three jobs of VGG16 with two workers each that share the aggregators
// needed for their peaks.
func BenchmarkSharing(b *testing.B) {
	m, err := FindModel("vgg16")
	if err != nil {
		b.Fatal(err)
	}
	packets := 0
	for b.Loop() {
		c := Setting{System: "atp", Sharing: system.Dynamic, Model: m, Jobs: LabJobs, Workers: LabWorkers, Aggregators: 3 * pta(), Fraction: 0.02, Updates: 1}
		o, err := c.Run(context.Background(), system.All(), []uint64{1}, nil)
		if err != nil || o.Err() != nil {
			b.Fatal(err, o.Err())
		}
		packets += LabJobs * LabWorkers * o.Spec.Job.Packets()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(packets), "ns/packet")
}
