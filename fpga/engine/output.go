package engine

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
)

// Increment is an output rate in the hardware's format: bytes per 250 MHz cycle in unsigned 8.24 fixed point
// (regmap, output limiter).
type Increment uint32

const (
	incrementBits = 24
	// Line is the rate of the data path: 64 bytes per cycle, 128 Gbps.
	Line Increment = 64 << incrementBits

	cyclesPerSecond = int64(olaf.Second / olaf.Cycle)
)

// FromRate returns the increment nearest to r. The rate must be positive, at most the line's 128 Gbps, and not
// round to 0 (below 60 bps). 20 Gbps is exactly 10 bytes per cycle; IsExact reports whether r was rounded. The
// error matches ErrConfig.
func FromRate(r olaf.Rate) (Increment, error) {
	if r <= 0 || r > Line.Rate() {
		return 0, fmt.Errorf("%w: the output rate is %v; it must be more than 0bps and at most the line's %v",
			ErrConfig, r, Line.Rate())
	}
	const unit = 8 * cyclesPerSecond // bit/s of one byte per cycle
	i := Increment((int64(r)<<incrementBits + unit/2) / unit)
	if i == 0 {
		return 0, fmt.Errorf("%w: the output rate %v is below the limiter's resolution of 120bps", ErrConfig, r)
	}
	return i, nil
}

// Rate returns i in bits per second, rounded.
func (i Increment) Rate() olaf.Rate {
	const half = 1 << (incrementBits - 1)
	return olaf.Rate((uint64(i)*uint64(8*cyclesPerSecond) + half) >> incrementBits)
}

// IsExact reports whether i equals r without rounding.
func (i Increment) IsExact(r olaf.Rate) bool {
	have := new(big.Int).Mul(big.NewInt(int64(i)), big.NewInt(8*cyclesPerSecond))
	want := new(big.Int).Lsh(big.NewInt(int64(r)), incrementBits)
	return have.Cmp(want) == 0
}

// Output configures the serializer behind a discipline. The zero value is the line rate without engine cycles.
type Output struct {
	Rate          Increment // 0 means unlimited: Line
	OverheadBytes int       // added to each L2 frame, 0 … MaxOverheadBytes; 24 is FCS, preamble and gap
	DequeueCycles int       // engine cycles after every departure, 0 … MaxCostCycles
	MergeCycles   int       // engine cycles for every merge or replacement, 0 … MaxCostCycles
	BypassSlots   int       // capacity for frames that bypass the discipline, 0 … MaxBypassSlots
	// ReadPorts is the number of read ports of the gradient memory, 1 or 2, for the timing of the logic; 0 counts
	// bytes only (docs/reference/semantics.md, Measured).
	ReadPorts int
}

// Limits of Output.
const (
	MaxOverheadBytes = 255
	MaxCostCycles    = 255
	MaxBypassSlots   = 1 << 20
	MaxReadPorts     = 2
)

// Validate returns an error for the first field out of range. The error matches ErrConfig.
func (o *Output) Validate() error {
	if o.Rate > Line {
		return fmt.Errorf("%w: the output rate is %v; the line's is %v", ErrConfig, o.Rate.Rate(), Line.Rate())
	}
	if err := checkRange("overhead bytes", o.OverheadBytes, 0, MaxOverheadBytes); err != nil {
		return olaf.InField("overhead", err)
	}
	if err := checkRange("dequeue cycles", o.DequeueCycles, 0, MaxCostCycles); err != nil {
		return olaf.InField("dequeue_cycles", err)
	}
	if err := checkRange("merge cycles", o.MergeCycles, 0, MaxCostCycles); err != nil {
		return olaf.InField("merge_cycles", err)
	}
	if err := checkRange("read ports", o.ReadPorts, 0, MaxReadPorts); err != nil {
		return olaf.InField("ports", err)
	}
	return checkRange("bypass slots", o.BypassSlots, 0, MaxBypassSlots)
}

// Profile names a set of engine cycles.
type Profile string

const (
	// Calibrated reproduces the paper's Table 1 (docs/reference/semantics.md, Engine cycles).
	Calibrated Profile = "calibrated"
	// Ideal costs nothing.
	Ideal Profile = "ideal"
	// Measured is the timing of our logic with separate read ports of the gradient memory for merges and output.
	// MeasuredShared is the same with one shared read port.
	Measured       Profile = "measured"
	MeasuredShared Profile = "measured-shared"
)

var profiles = []Profile{Calibrated, Ideal, Measured, MeasuredShared}

// readPorts lists the profiles with the timing of the logic.
var readPorts = map[Profile]int{Measured: 2, MeasuredShared: 1}

// ProfileNames lists the names of all profiles, the default first.
func ProfileNames() []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = string(p)
	}
	return names
}

// Validate returns an error if the profile does not exist. The error matches ErrConfig.
func (p Profile) Validate() error {
	if !slices.Contains(profiles, p) {
		return fmt.Errorf("%w: unknown cycle profile %q; there are %s", ErrConfig, string(p),
			strings.Join(ProfileNames(), ", "))
	}
	return nil
}

// ReadPorts returns the number of read ports that the gradient memory has in this profile, or 0 if the profile does not
// model the timing of the logic.
func (p Profile) ReadPorts() int { return readPorts[p] }

// WithPorts returns the variant of the profile with the given number of read ports. The error matches ErrConfig.
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

// Costs returns an Output with only the profile's engine cycles for the named discipline. The error matches
// ErrConfig.
func (p Profile) Costs(discipline string) (Output, error) {
	if err := p.Validate(); err != nil {
		return Output{}, err
	}
	k, _ := FindDiscipline(discipline) // New rejects an unknown name
	out := k.costs[p]
	out.ReadPorts = readPorts[p]
	return out, nil
}

// Output returns the serializer for the named discipline at the increment nearest to rate, with the profile's
// engine cycles. The error matches ErrConfig.
func (p Profile) Output(discipline string, rate olaf.Rate) (Output, error) {
	out, err := p.Costs(discipline)
	if err != nil {
		return out, err
	}
	out.Rate, err = FromRate(rate)
	return out, err
}
