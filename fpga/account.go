package fpga

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Account reads the counters of one ledger from a card's counter registers.
type Account struct {
	ledger *olaf.Ledger
	reads  []read
}

type read struct {
	counter int    // index in the ledger
	address uint32 // address of the counter's register
}

// NewAccount returns an Account for l. It returns an error if the register of a counter does not exist or is in no
// snapshot bank.
func NewAccount(l *olaf.Ledger) (*Account, error) {
	a := &Account{ledger: l}
	for i := range l.Counters {
		name := l.Counters[i].Register
		if name == "" {
			continue
		}
		ref, err := regmap.FindRegister(name)
		if err != nil {
			return nil, fmt.Errorf("the counter %s: %w", l.Counters[i].Name, err)
		}
		if new(Counters).find(ref.Address()) == nil {
			return nil, fmt.Errorf("the counter %s: %s is in no snapshot bank", l.Counters[i].Name, name)
		}
		a.reads = append(a.reads, read{i, ref.Address()})
	}
	return a, nil
}

// Counts returns the counters of the ledger with their values in c. Counters without a register are 0.
func (a *Account) Counts(c *Counters) olaf.Counts {
	counts := olaf.NewCounts(a.ledger)
	for _, r := range a.reads {
		counts.SetAt(r.counter, int64(*c.find(r.address)))
	}
	return counts
}

// find returns a pointer to the counter whose register is at address, or nil if the register is in no snapshot bank.
func (c *Counters) find(address uint32) *uint64 {
	if v := c.Queue.At(address); v != nil {
		return v
	}
	if v := c.Generator.At(address); v != nil {
		return v
	}
	if address == regmap.AggregatorPeakOccupied {
		return &c.MostSegments
	}
	return c.Aggregator.At(address)
}
