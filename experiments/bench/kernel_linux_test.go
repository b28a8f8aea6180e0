package bench

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/results"
)

// TestRealPackets measures both queues on real packets, beside the twin. It holds what must be at any load: identities, decisions,
// what the twin makes of the plan and of the logged arrivals; ages may be withheld.
func TestRealPackets(t *testing.T) {
	spec := DefaultSpec()
	w := &spec.Workload
	w.MeanRate, w.LineRate, w.BurstPackets, w.UpdatesPerWorker = 4*olaf.Mbps, 4*olaf.Mbps, 1, 20
	spec.OutRates, spec.Runs = []olaf.Rate{2 * olaf.Mbps}, 1
	for _, device := range []testbed.Device{testbed.Kernel(), testbed.Host()} {
		t.Run(device.Prefix, func(t *testing.T) {
			m, err := Measure(t.Context(), spec, Options{Device: device.Prefix, Access: testbed.Access{Devices: testbed.Devices{device}}, Twin: true})
			if errors.Is(err, netlab.ErrRights) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Err(); err != nil {
				t.Fatal(err)
			}
			for i := range m.Bench.Rows {
				holdsReal(t, &m.Bench.Rows[i])
			}
		})
	}
}

func holdsReal(t *testing.T, r *results.Row) {
	t.Helper()
	d := r.Decisions
	if d == nil || d.Void != "" || d.Equal != d.Checked || d.Checked < 540 {
		t.Errorf("%s: decisions %+v", r.Queue, d)
	}
	b := r.Stats.Of("aom_cluster_ns").Beside
	switch {
	case b == nil || !b.Plan.Known() || !b.Twin.Known() || b.Measured.Known() == (r.Withheld != nil):
		t.Errorf("%s: %+v, withheld %+v", r.Queue, b, r.Withheld)
	case r.LatenessNS == nil || r.LatenessNS.Max == 0:
		t.Errorf("%s: lateness %+v", r.Queue, r.LatenessNS)
	}
}
