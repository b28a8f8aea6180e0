package engine

import (
	"fmt"
	"math/big"

	"github.com/olafctl/olaf"
)

// Increment is an output rate as the hardware holds it: bytes per 250 MHz cycle in unsigned 8.24 fixed point
// (regmap, output limiter).
type Increment uint32

const (
	incrementBits = 24
	// Line is the rate of the data path itself, 64 bytes a cycle, 128 Gbps.
	Line Increment = 64 << incrementBits

	cyclesPerSecond = int64(olaf.Second / olaf.Cycle)
)

// FromRate is the increment nearest to r. The rate must be positive, at most the line's 128 Gbps, and not so low that
// nothing of it remains (below 60 bps). 20 Gbps is exactly 10 bytes a cycle; Exactly tells when rounding was needed. The
// error matches ErrConfig.
func FromRate(r olaf.Rate) (Increment, error) {
	if r <= 0 || r > Line.Rate() {
		return 0, fmt.Errorf("%w: the output rate is %v; it must be more than 0bps and at most the line's %v", ErrConfig, r, Line.Rate())
	}
	const unit = 8 * cyclesPerSecond // bits per second of one byte a cycle
	i := Increment((int64(r)<<incrementBits + unit/2) / unit)
	if i == 0 {
		return 0, fmt.Errorf("%w: the output rate %v is below the limiter's resolution of 120bps", ErrConfig, r)
	}
	return i, nil
}

// Rate is i in bits per second, rounded to a whole one.
func (i Increment) Rate() olaf.Rate {
	const half = 1 << (incrementBits - 1)
	return olaf.Rate((uint64(i)*uint64(8*cyclesPerSecond) + half) >> incrementBits)
}

// Exactly says whether i is r without rounding.
func (i Increment) Exactly(r olaf.Rate) bool {
	have := new(big.Int).Mul(big.NewInt(int64(i)), big.NewInt(8*cyclesPerSecond))
	want := new(big.Int).Lsh(big.NewInt(int64(r)), incrementBits)
	return have.Cmp(want) == 0
}

// Output shapes the serialiser behind an engine. The zero value is the line itself without any cost.
type Output struct {
	Rate          Increment // 0 is unlimited: Line
	OverheadBytes int       // counted on top of the L2 frame, 0 … MaxOverheadBytes; 24 is FCS, preamble and gap
	DequeueCycles int       // engine cycles after every departure, 0 … MaxCostCycles
	MergeCycles   int       // engine cycles for every merge or replacement, 0 … MaxCostCycles
}

// Limits of Output.
const (
	MaxOverheadBytes = 255
	MaxCostCycles    = 255
)

// Validate says what is out of range. The error matches ErrConfig.
func (o *Output) Validate() error {
	if o.Rate > Line {
		return fmt.Errorf("%w: the output rate is %v; the line's is %v", ErrConfig, o.Rate.Rate(), Line.Rate())
	}
	if err := within("overhead bytes", o.OverheadBytes, 0, MaxOverheadBytes); err != nil {
		return err
	}
	if err := within("dequeue cycles", o.DequeueCycles, 0, MaxCostCycles); err != nil {
		return err
	}
	return within("merge cycles", o.MergeCycles, 0, MaxCostCycles)
}

// Profile names a set of engine cycles.
type Profile string

const (
	// Calibrated is what reproduces the paper's Table 1: 2 cycles a departure and 1 a merge for olaf, none for fifo.
	Calibrated Profile = "calibrated"
	// Ideal costs nothing.
	Ideal Profile = "ideal"
)

// costs holds the engines that cost something; all others are free.
var costs = map[Profile]map[string]Output{
	Calibrated: {"olaf": {DequeueCycles: 2, MergeCycles: 1}},
	Ideal:      {},
}

// Costs is an Output with only the engine cycles that the profile gives the named engine. The error matches ErrConfig.
func (p Profile) Costs(engine string) (Output, error) {
	byEngine, ok := costs[p]
	if !ok {
		return Output{}, fmt.Errorf("%w: unknown cycle profile %q; there are %s, %s", ErrConfig, string(p), Calibrated, Ideal)
	}
	return byEngine[engine], nil
}
