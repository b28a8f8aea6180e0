// Package example creates a small, deterministic result for tests of the exporters. It consists of a toy queue that
// either drops or merges updates, its runs, and the bench document about them.
package example

import (
	"encoding/json"
	"math/rand/v2"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/internal/test/toy"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/sheets"
)

const (
	Clusters = 9
	Workers  = 27
	updates  = 3000
)

// Collect returns the configuration of the collector for the example's runs.
func Collect(rate int64) results.Config {
	return results.Config{Declared: toy.Declared, Clusters: Clusters, Workers: Workers, OutRate: olaf.Rate(rate), SpeedupUpdates: 5}
}

// Observations runs the toy queue and returns the delivered frames and the counters. Updates arrive at regular times,
// and only one in a few leaves. If merging is set, an update that leaves contains all updates of its cluster since the
// last departure.
func Observations(merging bool, rate int64, seed uint64) ([]olaf.Observation, olaf.Counts) {
	random := rand.New(rand.NewPCG(seed, 1))
	var out []olaf.Observation
	waiting := map[int][]olaf.Contributor{}
	c := toy.Counts(map[string]int64{"sent": updates, "in": updates})
	leaveEvery := max(int(120e9/rate), 1)
	for i := range updates {
		at := int64(i) * 40
		worker := random.IntN(Workers)
		cluster := worker / 3
		inside := waiting[cluster]
		switch {
		case len(inside) == 0:
			c.Add("appended", 1)
		case merging:
			c.Add("aggregated", 1)
		default:
			c.Add("turned_away", 1)
		}
		if merging || len(inside) == 0 {
			waiting[cluster] = append(inside, olaf.Contributor{GenNS: uint64(at), Seq: uint32(i), Worker: olaf.WorkerID(worker)})
		}
		if i%leaveEvery != 0 {
			continue
		}
		for k := range Clusters {
			id := (i/leaveEvery + k*4) % Clusters
			if list := waiting[id]; len(list) > 0 {
				newest := list[len(list)-1]
				out = append(out, olaf.Observation{At: olaf.Time((at + 500 +
					rand.New(rand.NewPCG(seed, uint64(i))).Int64N(30)) * 1000),
					Queued:       olaf.Duration(500+10*k) * olaf.Nanosecond,
					Contributors: list, Update: olaf.Update{GenNS: newest.GenNS, Seq: newest.Seq,
						Worker: newest.Worker, Cluster: olaf.ClusterID(id), Count: uint16(len(list)), Lanes: 48}})
				c.Add("delivered", 1)
				c.Add("received", 1)
				c.Add("count_delivered", int64(len(list)))
				delete(waiting, id)
				break
			}
		}
	}
	for _, list := range waiting {
		c.Add("queued", 1)
		c.Add("count_queued", int64(len(list)))
	}
	return out, c
}

// Result returns a result with four configurations and the given number of runs.
func Result(runs int) *sheets.Result {
	r := &sheets.Result{Bench: &results.Bench{Schema: results.BenchSchema, Experiment: "table1", Window: results.Window{}.String(),
		Provenance: results.Provenance{Tool: "olafctl", Version: "test", Go: "go1.26", Host: "example", System: "linux/amd64", Device: "twin:",
			Command: []string{"olafctl", "bench", "--queue", "olaf"}, Started: "2026-01-02T03:04:05Z", Finished: "2026-01-02T03:04:06Z",
			Digests: []results.Digest{{Name: "spec", SHA256: "00ff"}}},
		Config:     json.RawMessage(`{"queue":"olaf","slots":8,"rates":["40Gbps","20Gbps"],"seed":18446744073709551615}`),
		Statements: []string{"An example, not a measurement."}},
		RawRows: "olafctl export ID --parquet dir/"}
	collector := results.NewCollector(Collect(1))
	all := map[string][]results.Run{}
	for _, rate := range []int64{40e9, 20e9} {
		for _, side := range []struct {
			queue   string
			merging bool
		}{{"fifo", false}, {"olaf", true}} {
			queue := side.queue
			var of []results.Run
			for i := range runs {
				observations, counters := Observations(side.merging, rate, uint64(i))
				collector.Reset(Collect(rate))
				for k := range observations {
					collector.Observe(&observations[k])
				}
				run := collector.Finish(counters)
				run.Queue, run.OutRateBPS, run.Index, run.Seed = queue, rate, i, uint64(i)
				of = append(of, run)
				r.Delivered += int64(len(observations))
				for k := range observations[:min(len(observations), 200)] {
					if i == 0 {
						r.Samples = append(r.Samples, sheets.Sample{Queue: queue, OutRateBPS: rate, Run: i, Observation: observations[k]})
					}
				}
			}
			all[queue] = of
			r.Runs = append(r.Runs, of...)
			r.Bench.Rows = append(r.Bench.Rows, results.Summarise(toy.Declared, of))
		}
		r.Bench.Comparisons = append(r.Bench.Comparisons, results.CompareRuns(all["olaf"], all["fifo"]))
	}
	r.Bench.Paper = paper.Compare(paper.FromBench(r.Bench), "olaf/table1", "olaf/aom", "olaf/fig6")
	return r
}
