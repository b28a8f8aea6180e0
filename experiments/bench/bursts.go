package bench

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// inBursts reports whether updates come in bursts. Their rate is planned, but programs on a machine send as fast as
// they can.
func (s *Spec) inBursts() bool {
	return s.Loop == nil && s.Trace == nil && s.Workload.BurstPackets > 1
}

// bookBursts records the rate at which the updates in a run's bursts arrived at the queue, if the device's log is
// complete.
func (b *station) bookBursts(id RunID, run *results.Run) error {
	log, ok := fpga.FindArrivalLog(b.Device)
	if !ok || !b.measured || !b.plan.Spec.inBursts() {
		return nil
	}
	schedule, err := pktgen.NewSchedule(b.plan.Spec.Workload, b.plan.Seeds[id.Index])
	if err != nil {
		return err
	}
	arrivals, err := log.Arrivals()
	if err != nil || len(arrivals) != schedule.Total() {
		return nil // the run itself reports what is missing
	}
	run.BurstRate = burstRate(schedule, arrivals)
	return nil
}

// burstRate returns the rate inside bursts: all bits after the first frame of each, over the time from its first frame
// to its last. 0 if no burst had two frames.
func burstRate(schedule *pktgen.Schedule, arrivals []fpga.Arrival) results.Float {
	w := schedule.Workload()
	inside := uint64(w.LineRate.TimeToSend(w.Size)/olaf.Cycle) + 2 // for a frame at the line rate, rounded up
	var d, last regmap.Descriptor
	bits, span := 0.0, 0.0
	for i := range arrivals {
		if !schedule.Next(&d) {
			break
		}
		if i > 0 && d.Time-last.Time <= inside {
			bits += float64(arrivals[i].Update.Size().Bits())
			span += arrivals[i].At.Sub(arrivals[i-1].At).Seconds()
		}
		last = d
	}
	if span <= 0 {
		return 0
	}
	return results.Float(bits / span)
}

// burstStatement states that bursts are limited by their senders, and the measured rate.
func (o *Outcome) burstStatement() string {
	var rates []results.Float
	for _, runs := range o.Runs {
		for i := range runs {
			if r := &runs[i]; r.Valid() && r.BurstRate > 0 {
				rates = append(rates, r.BurstRate)
			}
		}
	}
	went := "which 'olafctl testbed doctor' measures"
	if s := results.Describe(rates, ""); s.Known() {
		went = fmt.Sprintf("%s inside bursts by the log of the queue's arrivals (burst_rate_bps)", text.Rate(s.Mean))
	}
	return fmt.Sprintf("bursts are planned at %v: each is sent as fast as the senders of the machine go, %s; "+
		"--burst 1 spreads updates evenly instead", o.Plan.Spec.Workload.LineRate, went)
}
