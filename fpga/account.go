package fpga

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// Account reads a ledger's counters out of a card's, by the registers that the ledger names.
type Account struct {
	ledger *olaf.Ledger
	reads  []read
}

type read struct {
	counter int    // of the ledger
	address uint32 // of its register
}

// NewAccount finds the registers of l. A register that is in no snapshot bank is an error.
func NewAccount(l *olaf.Ledger) (*Account, error) {
	a := &Account{ledger: l}
	for i := range l.Counters {
		name := l.Counters[i].Register
		if name == "" {
			continue
		}
		ref, err := regmap.Lookup(name)
		if err != nil {
			return nil, fmt.Errorf("the counter %s: %w", l.Counters[i].Name, err)
		}
		if new(Counters).at(ref.Address()) == nil {
			return nil, fmt.Errorf("the counter %s: %s is in no snapshot bank", l.Counters[i].Name, name)
		}
		a.reads = append(a.reads, read{i, ref.Address()})
	}
	return a, nil
}

// Of is the account of what a card counted. Counters without a register are 0.
func (a *Account) Of(c *Counters) olaf.Counts {
	counts := olaf.NewCounts(a.ledger)
	for _, r := range a.reads {
		counts.SetAt(r.counter, int64(*c.at(r.address)))
	}
	return counts
}

// at is the counter whose register has an address, nil where no snapshot has it.
func (c *Counters) at(address uint32) *uint64 {
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
