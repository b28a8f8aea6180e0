package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
)

// Increment is an output rate in the format of the hardware's output limiter: bytes per 250 MHz cycle as unsigned 8.24
// fixed point.
type Increment uint32

const (
	incrementBits = 24
	// Line is the rate of the data path, 64 bytes per cycle or 128 Gbps.
	Line Increment = 64 << incrementBits

	cyclesPerSecond = int64(olaf.Second / olaf.Cycle)
)

// FromRate returns the increment nearest to r. The rate must be positive, at most 128 Gbps, and not round to 0 (below
// 60 bps). For example, 20 Gbps is exactly 10 bytes per cycle. IsExact reports whether r was rounded. The error matches
// ErrConfig.
func FromRate(r olaf.Rate) (Increment, error) {
	if r <= 0 || r > Line.Rate() {
		return 0, fmt.Errorf("%w: the output rate is %v; it must be more than 0bps and at most the line's %v",
			ErrConfig, r, Line.Rate())
	}
	const unit = 8 * cyclesPerSecond // rate of one byte per cycle, in bit/s
	i := Increment((int64(r)<<incrementBits + unit/2) / unit)
	if i == 0 {
		return 0, fmt.Errorf("%w: the output rate %v is below the limiter's resolution of 120bps", ErrConfig, r)
	}
	return i, nil
}

// Rate returns the rate in bits per second, rounded.
func (i Increment) Rate() olaf.Rate {
	const half = 1 << (incrementBits - 1)
	return olaf.Rate((uint64(i)*uint64(8*cyclesPerSecond) + half) >> incrementBits)
}

// Output configures the serializer after a discipline. The zero value sends at line rate and charges no engine cycles.
type Output struct {
	Rate          Increment // 0 means unlimited, that is, Line
	OverheadBytes int       // added to each L2 frame, 0 … MaxOverheadBytes; 24 is FCS, preamble and gap
	DequeueCycles int       // engine cycles after every departure, 0 … MaxCostCycles
	MergeCycles   int       // engine cycles for every merge or replacement, 0 … MaxCostCycles
	BypassSlots   int       // capacity for frames that bypass the discipline, 0 … MaxBypassSlots
	// ReadPorts is the number of read ports of the gradient memory, 1 or 2, in the timing of the logic. With 0, only
	// bytes take time (docs/reference/semantics.md, Measured).
	ReadPorts int
}

// Limits of Output.
const (
	MaxOverheadBytes = 255
	MaxCostCycles    = 255
	MaxBypassSlots   = 1 << 20
	MaxReadPorts     = 2
)

// Validate returns an error for the first field that is out of range. The error matches ErrConfig.
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

// Profile is the name of a set of engine-cycle costs.
type Profile string

const (
	// Calibrated is the profile that reproduces the paper's Table 1 (docs/reference/semantics.md, Engine cycles).
	Calibrated Profile = "calibrated"
	// Ideal is the profile in which merging takes no engine cycles.
	Ideal Profile = "ideal"
	// Measured is the profile with the timing of our logic, in which merges and output read the gradient memory through
	// separate ports. MeasuredShared is the same with a single read port for both.
	Measured       Profile = "measured"
	MeasuredShared Profile = "measured-shared"
)

var profiles = []Profile{Calibrated, Ideal, Measured, MeasuredShared}

// readPorts contains the number of read ports for profiles that model the timing of our logic.
var readPorts = map[Profile]int{Measured: 2, MeasuredShared: 1}

// ProfileNames returns the names of all profiles, with the default first.
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

// ReadPorts returns the number of read ports on the gradient memory in this profile, or 0 if the profile does not model
// the timing of the logic.
func (p Profile) ReadPorts() int { return readPorts[p] }

// WithPorts returns the variant of the profile with the given number of read ports on the gradient memory. The error
// matches ErrConfig.
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

// Costs returns an Output that contains only the profile's engine cycles for the named discipline. The error matches
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

// Output returns the serializer configuration for the named discipline. Its rate is the increment nearest to rate, and
// its engine cycles are those of the profile. The error matches ErrConfig.
func (p Profile) Output(discipline string, rate olaf.Rate) (Output, error) {
	out, err := p.Costs(discipline)
	if err != nil {
		return out, err
	}
	out.Rate, err = FromRate(rate)
	return out, err
}
