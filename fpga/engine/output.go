package engine

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

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
		return 0, fmt.Errorf("%w: the output rate is %v; it must be more than 0bps and at most the line's %v",
			ErrConfig, r, Line.Rate())
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

// Output shapes the serialiser behind a discipline. The zero value is the line itself without any cost.
type Output struct {
	Rate          Increment // 0 is unlimited: Line
	OverheadBytes int       // counted on top of the L2 frame, 0 … MaxOverheadBytes; 24 is FCS, preamble and gap
	DequeueCycles int       // engine cycles after every departure, 0 … MaxCostCycles
	MergeCycles   int       // engine cycles for every merge or replacement, 0 … MaxCostCycles
	BypassSlots   int       // frames that may wait beside the discipline, 0 … MaxBypassSlots
	// ReadPorts are those of the memory of gradients, 1 or 2, where the output is to take what the logic takes; 0 counts bytes
	// alone (docs/reference/semantics.md, Measured).
	ReadPorts int
}

// Limits of Output.
const (
	MaxOverheadBytes = 255
	MaxCostCycles    = 255
	MaxBypassSlots   = 1 << 20
	MaxReadPorts     = 2
)

// Validate says what is out of range. The error matches ErrConfig.
func (o *Output) Validate() error {
	if o.Rate > Line {
		return fmt.Errorf("%w: the output rate is %v; the line's is %v", ErrConfig, o.Rate.Rate(), Line.Rate())
	}
	if err := within("overhead bytes", o.OverheadBytes, 0, MaxOverheadBytes); err != nil {
		return olaf.InField("overhead", err)
	}
	if err := within("dequeue cycles", o.DequeueCycles, 0, MaxCostCycles); err != nil {
		return olaf.InField("dequeue_cycles", err)
	}
	if err := within("merge cycles", o.MergeCycles, 0, MaxCostCycles); err != nil {
		return olaf.InField("merge_cycles", err)
	}
	if err := within("read ports", o.ReadPorts, 0, MaxReadPorts); err != nil {
		return olaf.InField("ports", err)
	}
	return within("bypass slots", o.BypassSlots, 0, MaxBypassSlots)
}

// Profile names a set of engine cycles.
type Profile string

const (
	// Calibrated is what reproduces the paper's Table 1 (docs/reference/semantics.md, Engine cycles).
	Calibrated Profile = "calibrated"
	// Ideal costs nothing.
	Ideal Profile = "ideal"
	// Measured is what our logic takes that reads each beat of gradients for merges and for the output at the same time, and
	// MeasuredShared the same with one read port for both.
	Measured       Profile = "measured"
	MeasuredShared Profile = "measured-shared"
)

var profiles = []Profile{Calibrated, Ideal, Measured, MeasuredShared}

// readPorts are those of the profiles whose cycles are the logic's own.
var readPorts = map[Profile]int{Measured: 2, MeasuredShared: 1}

// Profiles lists the names of all profiles, the default first.
func Profiles() []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = string(p)
	}
	return names
}

// Validate says whether there is such a profile. The error matches ErrConfig.
func (p Profile) Validate() error {
	if !slices.Contains(profiles, p) {
		return fmt.Errorf("%w: unknown cycle profile %q; there are %s", ErrConfig, string(p),
			strings.Join(Profiles(), ", "))
	}
	return nil
}

// ReadPorts is how many read ports of the memory of gradients the profile asks for, 0 where it does not keep the logic's time.
func (p Profile) ReadPorts() int { return readPorts[p] }

// WithPorts is the profile for a number of read ports, where it has any. The error matches ErrConfig.
func (p Profile) WithPorts(ports int) (Profile, error) {
	for other, n := range readPorts {
		if n == ports && p.ReadPorts() != 0 {
			return other, nil
		}
	}
	if p.ReadPorts() == 0 {
		return p, fmt.Errorf("%w: read ports are for the profile %s; %s counts no cycles of a memory", ErrConfig,
			Measured, p)
	}
	return p, fmt.Errorf("%w: %d read ports; the logic is built with 1 or 2", ErrConfig, ports)
}

// Costs is an Output with only the engine cycles that the profile gives the named discipline. The error matches ErrConfig.
func (p Profile) Costs(discipline string) (Output, error) {
	if err := p.Validate(); err != nil {
		return Output{}, err
	}
	k, _ := Describe(discipline) // New refuses a name that is not known
	out := k.costs[p]
	out.ReadPorts = readPorts[p]
	return out, nil
}

// Output is the serialiser of the named discipline at the increment nearest to rate, with the profile's engine cycles. The
// error matches ErrConfig.
func (p Profile) Output(discipline string, rate olaf.Rate) (Output, error) {
	out, err := p.Costs(discipline)
	if err != nil {
		return out, err
	}
	out.Rate, err = FromRate(rate)
	return out, err
}
