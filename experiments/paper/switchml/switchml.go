// Package switchml determines which resource limits the throughput in "Scaling Distributed Machine Learning with
// In-Network Aggregation" (NSDI 2021): the line, the hosts, or the pool of slots in flight during a round trip.
package switchml

import (
	"context"
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// Experiments returns the experiments on SwitchML. set contains the available systems.
func Experiments(set system.Set) experiments.Set {
	return experiments.Set{{
		Name: "switchml/pool", Artefact: "Pool", Needs: "10 s",
		About: "throughput over the slots of the pool for both packet sizes, beside min(line, slots × payload ÷ round trip)",
		Run:   func(ctx context.Context, o experiments.Options) (result.Report, error) { return runPool(ctx, set, &o) },
	}}
}

// config is the configuration of the experiment on SwitchML.
type config struct {
	Workers  int           `json:"workers"`
	Rate     olaf.Rate     `json:"rate"`
	Delay    olaf.Duration `json:"delay"`
	Overhead olaf.Size     `json:"overhead"`
	Values   int           `json:"values"`
	Slots    []int         `json:"slots"`
	Packets  []olaf.Size   `json:"packets"`
}

func runPool(ctx context.Context, set system.Set, o *experiments.Options) (result.Report, error) {
	c := config{
		Workers: 8, Rate: 100 * olaf.Gbps, Delay: 2500 * olaf.Nanosecond, Overhead: 24, Values: 2_000_000,
		Slots: []int{16, 32, 64, 128, 256, 512}, Packets: []olaf.Size{256, 1024},
	}
	t := experiments.NewResult("switchml/pool", "Pool", o, &c)
	t.Terms = []string{"8 workers on one switch, 100 Gbps, a round trip of 10 us plus the time of frames; hosts " +
		"keep up; one gradient of 8 MB."}
	done, total := 0, len(c.Slots)*len(c.Packets)
	worst := 0.0
	for _, payload := range c.Packets {
		b := result.Block{Name: fmt.Sprintf("gradients summed for a worker, packets of %s", payload), Unit: "Gbit/s",
			Columns: []string{"simulated", "predicted", "off by %"}}
		for _, slots := range c.Slots {
			have, predicted, err := c.run(ctx, set, slots, payload)
			if err != nil {
				return nil, err
			}
			off := 100 * (have/predicted - 1)
			worst = max(worst, math.Abs(off))
			b.Rows = append(b.Rows, result.Line{Name: fmt.Sprintf("%d slots", slots),
				Cells: []results.Statistic{results.Exactly(have), results.Exactly(predicted), results.Exactly(off)}})
			done++
			o.ReportProgress(done, total)
		}
		t.Blocks = append(t.Blocks, b)
	}
	t.Say("predicted before the run: the smaller of line rate × payload ÷ (frame + %d B) and slots × payload ÷ "+
		"round trip; the largest deviation is %.1f %%", int(c.Overhead), worst)
	t.Say("a frame with a payload of 256 B leaves 77 %% of the line to gradients, one with 1,024 B leaves 93 %%; " +
		"both need a pool of line × round trip, in packets")
	return t, nil
}

// run returns the throughput with a pool of the given number of slots in Gbit/s, simulated and predicted.
func (c *config) run(ctx context.Context, set system.Set, slots int, payload olaf.Size) (have, predicted float64, err error) {
	s, mode, err := set.FindMode("switchml", "sync")
	if err != nil {
		return 0, 0, err
	}
	link := closedloop.Link{Rate: c.Rate, Delay: c.Delay, Overhead: c.Overhead}
	spec := &job.Spec{System: s, Mode: mode, Options: system.Options{Slots: slots, Packet: payload},
		Network: closedloop.Network{Workers: c.Workers, Link: link}}
	spec.Job = closedloop.Job{Updates: 1}
	spec.Job.Layout.Values = c.Values
	out, err := job.Run(ctx, spec, []uint64{1}, nil)
	if err != nil {
		return 0, 0, err
	}
	parts, err := mode.Parts(&spec.Options)
	if err != nil {
		return 0, 0, err
	}
	full := &program.Packet{Kind: program.Data, Lanes: uint16(payload / olaf.LaneBytes)}
	frame := c.Rate.TimeToSend(parts.FrameSize(full, false) + c.Overhead)
	roundTrip := 2 * (c.Delay + frame)
	bits := 8 * float64(payload) / 1e9
	predicted = min(bits/seconds(frame), bits*float64(slots)/seconds(roundTrip))
	return float64(out.Number("goodput_bps").Mean) / 1e9, predicted, out.Err()
}

func seconds(d olaf.Duration) float64 { return float64(d) / float64(olaf.Second) }
