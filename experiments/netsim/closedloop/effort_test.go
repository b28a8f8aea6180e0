package closedloop

import (
	"errors"
	"math"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// TestEffort checks the estimate: the packets of all workers, and the bytes for those in flight, for the slots of every
// table, and for every measured round.
func TestEffort(t *testing.T) {
	const packet, slot, round = 350, 240, 32 // bytes
	table := func(slots int, wrap, whole bool) system.Parts {
		d := program.Description{}
		return system.Parts{Program: &d, Build: program.Config{Slots: slots, Wrap: wrap}, FitsVector: whole, PerPacket: 4}
	}
	bare := system.Parts{PerPacket: 4}
	window := func(n int) system.Parts { return system.Parts{PerPacket: 4, Window: n} }
	for name, c := range map[string]struct {
		parts  system.Parts
		change func(*Network, *Job)
		want   Effort
	}{
		"no table":                  {bare, nil, Effort{5 * 25 * 3, 5*25*packet + 3*round}},
		"a window":                  {window(7), nil, Effort{5 * 25 * 3, 5*7*packet + 3*round}},
		"a window of all":           {window(25), nil, Effort{5 * 25 * 3, 5*25*packet + 3*round}},
		"a window of more":          {window(26), nil, Effort{5 * 25 * 3, 5*25*packet + 3*round}},
		"a window of one":           {window(1), nil, Effort{5 * 25 * 3, 5*1*packet + 3*round}},
		"a value a packet":          {system.Parts{}, nil, Effort{5 * 98 * 3, 5*98*packet + 3*round}},
		"a table":                   {table(10, false, false), nil, Effort{5 * 25 * 3, 5*10*packet + 10*slot + 3*round}},
		"a slot":                    {table(1, false, false), nil, Effort{5 * 25 * 3, 5*1*packet + 1*slot + 3*round}},
		"a table used again":        {table(10, true, false), nil, Effort{5 * 25 * 3, 5*25*packet + 10*slot + 3*round}},
		"more slots than packets":   {table(30, false, false), nil, Effort{5 * 25 * 3, 5*25*packet + 30*slot + 3*round}},
		"a program without a table": {table(0, false, false), nil, Effort{5 * 25 * 3, 5*25*packet + 3*round}},
		"a slot a packet":           {table(10, false, true), nil, Effort{5 * 25 * 3, 5*25*packet + 25*slot + 3*round}},
		"racks": {table(10, false, false), func(n *Network, _ *Job) { n.PerRack = 2 },
			Effort{5 * 25 * 3, 5*10*packet + (1+3)*10*slot + 3*round}},
		"jobs": {table(10, false, false), func(n *Network, _ *Job) { n.Jobs = 2 },
			Effort{2 * 5 * 25 * 3, 2*5*10*packet + 10*slot + 2*3*round}},
		"switches": {table(10, false, false), func(n *Network, _ *Job) {
			n.Hops = &Hops{Switches: []Hop{{}, {Up: n.Link}, {Parent: 1, Up: n.Link}}, Homes: []int{2}}
		}, Effort{5 * 25 * 3, 5*10*packet + 3*10*slot + 3*round}},
		"servers": {table(0, false, true), func(n *Network, _ *Job) { n.Tree = grownTree().Tree },
			Effort{5 * 25 * 3, 5*25*packet + 3*25*slot + 3*round}},
		"the longest": {bare, func(_ *Network, j *Job) { j.Updates = math.MaxUint32 },
			Effort{5 * 25 * math.MaxUint32, 5*25*packet + math.MaxUint32*round}},
	} {
		n, j := Network{Workers: 5, Link: Link{Rate: olaf.Gbps}}, Job{Layout: endpoint.Layout{Values: 98}, Updates: 3}
		if c.change != nil {
			c.change(&n, &j)
		}
		if got, err := EffortOf(n, j, c.parts); err != nil || got != c.want {
			t.Errorf("%s: %+v, want %+v; %v", name, got, c.want, err)
		}
	}
	for name, c := range map[string]struct {
		n Network
		j Job
	}{"a network": {Network{}, Job{}}, "a job": {Network{Workers: 1, Link: Link{Rate: 1}}, Job{Compute: -1}}} {
		if got, err := EffortOf(c.n, c.j, bare); got != (Effort{}) || !errors.Is(err, ErrConfig) {
			t.Errorf("%s that is refused: %+v, %v", name, got, err)
		}
	}
}

// TestRounds checks the range of round numbers.
func TestRounds(t *testing.T) {
	for updates, ok := range map[int]bool{math.MinInt: false, -1: false, 0: false, 1: true, 2: true, math.MaxUint32: true,
		math.MaxUint32 + 1: false, math.MaxInt: false} {
		n, err := CheckRounds(updates)
		if ok != (err == nil) || ok && int(n) != updates || !ok && (n != 0 || !errors.Is(err, ErrConfig)) {
			t.Errorf("%d updates: %d, %v", updates, n, err)
		}
	}
}
