package twin

import (
	"fmt"
	"testing"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/results/metric"
)

// Check returns an error that names an accounting identity violated since the counters were cleared.
func (t *Twin) Check() error {
	declared := metric.OfQueue(engine.FlowLedger(), engine.SumsLedger())
	if d := t.cfg.programOf(t.front.config.program); d != nil && t.front.Aggregator != nil {
		declared = metric.OfProgram(d.Name, d.Ledger, d.Classes, engine.FlowLedger(), engine.SumsLedger())
	}
	account, err := fpga.NewAccount(declared.Ledger)
	if err != nil {
		return err
	}
	total, front := t.totalCounters(), t.frontTotal()
	counts := account.Counts(&fpga.Counters{Queue: total, Generator: t.counters.generator, Aggregator: front})
	// Updates that were inside at the last clear had been appended before it.
	counts.Add("queued", -int64(total.CarriedFrames))
	counts.Add("count_queued", -int64(total.CarriedUpdates))
	if t.front.Aggregator != nil {
		counts.Add("vectors_held", -int64(front.CarriedVectors))
	}
	counts.Add("received", counts.Of("delivered"))
	var clusters uint64
	for i := range t.counters.clusters {
		for _, n := range t.counters.clusters[i].class {
			clusters += n
		}
	}
	if total.In != clusters {
		return fmt.Errorf("twin: %d updates reached the queue, %d by cluster", total.In, clusters)
	}
	return counts.Balance()
}

// TestEveryCounterHasItsRegister checks the rows of the engine against the register map.
func TestEveryCounterHasItsRegister(t *testing.T) {
	for _, row := range engine.CounterRows() {
		if row.Register == "" {
			continue
		}
		ref, err := regmap.FindRegister(row.Register)
		if err != nil || !ref.Register.Counter {
			t.Errorf("%s: %v", row.Vector, err)
		}
	}
}
