package engine

import (
	"fmt"
	"testing"

	"github.com/olafctl/olaf"
)

// mix is the share of arrivals that are followed by a departure: 2 of 3 is 60 Gbps in and 40 Gbps out, 1 of 12 is 60
// Gbps in and 5 Gbps out.
type mix struct {
	name    string
	out, of int
}

var mixes = []mix{{"2of3", 2, 3}, {"1of12", 1, 12}}

// traffic returns a fixed pseudo-random sequence of updates with three workers per cluster.
func traffic(clusters, lanes int) []olaf.Update {
	updates := make([]olaf.Update, 1<<14)
	state := uint64(1)
	for i := range updates {
		state = state*6364136223846793005 + 1442695040888963407
		u := int(state>>33) % clusters
		updates[i] = olaf.Update{
			Cluster: olaf.ClusterID(u), Worker: olaf.WorkerID(int(state>>20) % 3), Seq: uint32(i), GenNS: uint64(i),
			Reward: int32(state>>40) % 1000, Count: 1, Lanes: uint16(lanes),
		}
	}
	return updates
}

func benchmarkMix(b *testing.B, name string, cfg Config, m mix, lanes int) {
	e, err := New(name, cfg)
	if err != nil {
		b.Fatal(err)
	}
	updates := traffic(cfg.Clusters, lanes)
	var payload [64][]int32
	for i := range payload {
		if cfg.LaneMemory > 0 {
			payload[i] = make([]int32, lanes)
			for k := range payload[i] {
				payload[i][k] = int32(i*k - 1000)
			}
		}
	}
	credit := 0
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		e.Offer(olaf.Time(i), &updates[i&(len(updates)-1)], payload[i&63], nil)
		if credit += m.out; credit >= m.of {
			credit -= m.of
			if s, _, ok := e.Lock(); ok {
				e.Release(s)
			}
		}
	}
}

// BenchmarkDecisions measures one arrival and its share of departures, without gradients.
func BenchmarkDecisions(b *testing.B) {
	for _, m := range mixes {
		for _, slots := range []int{8, 64, 512, 4096} {
			b.Run(fmt.Sprintf("%s/slots=%d", m.name, slots), func(b *testing.B) {
				benchmarkMix(b, "olaf", Config{Slots: slots, Clusters: slots + 1}, m, 48)
			})
		}
		for _, clusters := range []int{9, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("%s/clusters=%d", m.name, clusters), func(b *testing.B) {
				benchmarkMix(b, "olaf", Config{Slots: 8, Clusters: clusters}, m, 48)
			})
		}
		b.Run(m.name+"/fifo", func(b *testing.B) {
			benchmarkMix(b, "fifo", Config{Slots: 8, Clusters: 9}, m, 48)
		})
		b.Run(m.name+"/provenance", func(b *testing.B) {
			benchmarkMix(b, "olaf", Config{Slots: 8, Clusters: 9, Provenance: true}, m, 48)
		})
	}
}

// BenchmarkMerge48 measures the same with the 48 lanes of a 2048-bit update, which are copied and merged.
func BenchmarkMerge48(b *testing.B) {
	for _, m := range mixes {
		for _, slots := range []int{8, 64, 512, 4096} {
			b.Run(fmt.Sprintf("%s/slots=%d", m.name, slots), func(b *testing.B) {
				benchmarkMix(b, "olaf", Config{Slots: slots, Clusters: slots + 1, LaneMemory: 48}, m, 48)
			})
		}
	}
}

// BenchmarkPort measures updates at 60 Gbps through a port at 40 and at 5 Gbps, to a sink that reads them.
func BenchmarkPort(b *testing.B) {
	for _, rate := range []olaf.Rate{40 * olaf.Gbps, 5 * olaf.Gbps} {
		b.Run(rate.String(), func(b *testing.B) {
			out, err := Calibrated.Output("olaf", rate)
			if err != nil {
				b.Fatal(err)
			}
			var counted countingSink
			p, err := NewPort("olaf", Config{Slots: 8, Clusters: 9}, out, &counted)
			if err != nil {
				b.Fatal(err)
			}
			updates := traffic(9, 48)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				p.Offer(olaf.Time(i)*34133, &updates[i&(len(updates)-1)], nil)
			}
		})
	}
}

type countingSink struct{ frames, updates uint64 }

func (c *countingSink) Deliver(d *Departure) {
	c.frames++
	c.updates += uint64(d.Frame.Update.Count)
}

// BenchmarkReset measures the reset before each run.
func BenchmarkReset(b *testing.B) {
	e, err := New("olaf", Config{Slots: 8, Clusters: 10000})
	if err != nil {
		b.Fatal(err)
	}
	updates := traffic(10000, 48)
	b.ReportAllocs()
	for i := range b.N {
		for k := range 8 {
			e.Offer(0, &updates[(8*i+k)&(len(updates)-1)], nil, nil)
		}
		e.Reset()
	}
}
