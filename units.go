package olaf

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// ErrUnit is matched by errors in parsing a quantity, such as a missing or unknown unit or a value outside the type's
// range.
var ErrUnit = NewError(Usage, "bad quantity")

// Rate is a data rate in bits of L2 frame per second. It is parsed from text such as 60G, 2.5Gbps or 100M; a unit is
// required.
type Rate int64

// Rates that read well in code.
const (
	BitPerSecond Rate = 1
	Kbps              = 1000 * BitPerSecond
	Mbps              = 1000 * Kbps
	Gbps              = 1000 * Mbps
)

// Size is a length in bytes. It is parsed from text such as 256B, 2048b (bits, a multiple of 8) or 9kB; a unit is
// required.
type Size int64

// Time is an instant of virtual time, in picoseconds since the start of the run. Its range is 106 days.
type Time int64

// Duration is a span of virtual time in picoseconds. It is parsed from text such as 4ns, 1.5us or 100ms; a unit is
// required.
type Duration int64

// Durations that read well in code.
const (
	Picosecond  Duration = 1
	Nanosecond           = 1000 * Picosecond
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
	Minute               = 60 * Second
	Hour                 = 60 * Minute
)

// Cycle is the duration of one cycle of the 250 MHz data path, which moves 64 bytes per cycle (paper §7: 512-bit
// AXI4-Stream in hardware).
const Cycle = 4 * Nanosecond

// Add returns the instant d after t.
func (t Time) Add(d Duration) Time { return t + Time(d) }

// Sub returns the span from u to t.
func (t Time) Sub(u Time) Duration { return Duration(t - u) }

// NS returns the number of whole nanoseconds since the origin, rounded down.
func (t Time) NS() int64 { return int64(t) / int64(Nanosecond) }

// NS returns d in nanoseconds.
func (d Duration) NS() float64 { return float64(d) / float64(Nanosecond) }

// Seconds returns d in seconds.
func (d Duration) Seconds() float64 { return float64(d) / float64(Second) }

// Bits returns the size in bits.
func (s Size) Bits() int64 { return int64(s) * 8 }

// TimeToSend returns the time needed to send s at rate r, rounded down to a picosecond. r must be positive.
func (r Rate) TimeToSend(s Size) Duration {
	if bits := s.Bits(); bits <= math.MaxInt64/int64(Second) {
		return Duration(bits * int64(Second) / int64(r))
	}
	v := new(big.Int).Mul(big.NewInt(s.Bits()), big.NewInt(int64(Second)))
	return Duration(v.Quo(v, big.NewInt(int64(r))).Int64())
}

// unit is a unit suffix and the number of base units that it stands for.
type unit struct {
	suffix string
	worth  int64
}

// The first suffix that fits is printed, so each table is ordered from the largest to the smallest.
var (
	rateUnits = []unit{{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}}
	rateAlso  = []unit{
		{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"K", 1e3}, {"Kbps", 1e3},
		{"Tb/s", 1e12}, {"Gb/s", 1e9}, {"Mb/s", 1e6}, {"kb/s", 1e3}, {"b/s", 1},
		{"Tbit/s", 1e12}, {"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1},
		{"Tbit", 1e12}, {"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3},
	}
	sizeUnits = []unit{{"B", 1}}
	sizeAlso  = []unit{{"kB", 1000}, {"KB", 1000}, {"MB", 1e6}, {"GB", 1e9}, {"KiB", 1 << 10}, {"MiB", 1 << 20},
		{"GiB", 1 << 30}}
	sizeBits  = []unit{{"b", 1}}
	timeUnits = []unit{{"s", int64(Second)}, {"ms", int64(Millisecond)}, {"us", int64(Microsecond)},
		{"ns", int64(Nanosecond)}, {"ps", 1}}
	timeAlso = []unit{{"µs", int64(Microsecond)}, {"μs", int64(Microsecond)}, {"m", int64(Minute)},
		{"min", int64(Minute)}, {"h", int64(Hour)}}
)

// quantity describes how values of one type are parsed.
type quantity struct {
	name     string
	units    [2][]unit
	likely   []string // units that a bare number probably lacks
	example  string
	negative bool // negative values are valid
}

var (
	rateQuantity = quantity{"rate", [2][]unit{rateUnits, rateAlso}, []string{"G"},
		"60G, 2.5Gbps or 100M, in bits per second", false}
	sizeQuantity = quantity{"size", [2][]unit{sizeUnits, sizeAlso}, []string{"B", "b"}, "256B, 9kB or 2048b", false}
	bitsQuantity = quantity{"size", [2][]unit{sizeBits, nil}, []string{"B", "b"}, "256B, 9kB or 2048b", false}
	timeQuantity = quantity{"duration", [2][]unit{timeUnits, timeAlso}, []string{"ms"}, "100ms, 1.5us or 60s", true}
)

// ParseRate parses a rate with its unit, such as 60G, 2.5Gbps, 2.5Gbit/s, 100M or 9600bps. It rejects negative rates.
// The error matches ErrUnit; for a number without a unit, it lists the likely meanings.
func ParseRate(s string) (Rate, error) {
	v, err := rateQuantity.parse(s)
	return Rate(v), err
}

// ParseSize parses a size with its unit, such as 256B, 2048b or 9kB. It rejects negative sizes and bits that do not
// make whole bytes. The error matches ErrUnit.
func ParseSize(s string) (Size, error) {
	if !strings.HasSuffix(s, "b") {
		v, err := sizeQuantity.parse(s)
		return Size(v), err
	}
	v, err := bitsQuantity.parse(s)
	if err == nil && v%8 != 0 {
		return 0, fmt.Errorf("%w: size %q is not a whole number of bytes", ErrUnit, s)
	}
	return Size(v / 8), err
}

// ParseDuration parses a duration with its unit, such as 4ns, 1.5us, 100ms, 60s or 2m. The error matches ErrUnit.
func ParseDuration(s string) (Duration, error) {
	v, err := timeQuantity.parse(s)
	return Duration(v), err
}

// listMeanings lists the quantities that a number without a unit may mean, for an error message.
func (q *quantity) listMeanings(number string) string {
	var all []string
	for _, unit := range q.likely {
		all = append(all, number+unit)
	}
	return strings.Join(all, " or ")
}

// maxDigits limits the digits before a unit, so that absurd input is rejected without parsing a huge number.
const maxDigits = 64

func (q *quantity) parse(s string) (int64, error) {
	s = strings.TrimSpace(s)
	cut := 0
	for cut < len(s) && (s[cut] == '.' || s[cut] == '-' || s[cut] == '+' || (s[cut] >= '0' && s[cut] <= '9')) {
		cut++
	}
	number, suffix := s[:cut], strings.TrimSpace(s[cut:])
	if len(number) > maxDigits {
		return 0, fmt.Errorf("%w: %s has a number of %d digits", ErrUnit, q.name, len(number))
	}
	value, ok := new(big.Rat).SetString(number)
	switch {
	case !ok:
		return 0, fmt.Errorf("%w: %s %q does not start with a number; write for example %s", ErrUnit, q.name, s,
			q.example)
	case suffix == "":
		return 0, fmt.Errorf("%w: %s %q has no unit; did you mean %s?", ErrUnit, q.name, s, q.listMeanings(number))
	case value.Sign() < 0 && !q.negative:
		return 0, fmt.Errorf("%w: %s %q is negative", ErrUnit, q.name, s)
	}
	worth, ok := q.worth(suffix)
	if !ok {
		return 0, fmt.Errorf("%w: %s %q has the unknown unit %q; write for example %s", ErrUnit, q.name, s, suffix,
			q.example)
	}
	value.Mul(value, new(big.Rat).SetInt64(worth))
	switch {
	case !value.IsInt():
		return 0, fmt.Errorf("%w: %s %q is finer than 1%s", ErrUnit, q.name, s, q.units[0][len(q.units[0])-1].suffix)
	case !value.Num().IsInt64():
		return 0, fmt.Errorf("%w: %s %q is out of range", ErrUnit, q.name, s)
	}
	return value.Num().Int64(), nil
}

func (q *quantity) worth(suffix string) (int64, bool) {
	for _, units := range q.units {
		for _, u := range units {
			if u.suffix == suffix {
				return u.worth, true
			}
		}
	}
	return 0, false
}

func formatQuantity(v int64, units []unit) string {
	if v == 0 {
		return "0" + units[len(units)-1].suffix
	}
	for _, u := range units {
		if v%u.worth == 0 || (v >= u.worth || v <= -u.worth) && isShort(v, u.worth) {
			return trimZeros(v, u.worth) + u.suffix
		}
	}
	return strconv.FormatInt(v, 10)
}

// isShort reports whether v has at most three decimals in units of worth, so that it can be printed without loss.
func isShort(v, worth int64) bool { return worth >= 1000 && v%(worth/1000) == 0 }

func trimZeros(v, worth int64) string {
	s := new(big.Rat).SetFrac64(v, worth).FloatString(3)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// String returns the shortest exact form, such as 60Gbps or 2.5Gbps.
func (r Rate) String() string { return formatQuantity(int64(r), rateUnits) }

// String returns the size in bytes, such as 256B.
func (s Size) String() string { return formatQuantity(int64(s), sizeUnits) }

// String returns the shortest exact form, such as 100ms or 20.48ns.
func (d Duration) String() string { return formatQuantity(int64(d), timeUnits) }

// String returns the time since the origin as a duration.
func (t Time) String() string { return Duration(t).String() }

// Set, Type and the text methods make the units usable as flags and in YAML and JSON.

func (r *Rate) Set(s string) error     { return set(r, s, ParseRate) }
func (s *Size) Set(v string) error     { return set(s, v, ParseSize) }
func (d *Duration) Set(s string) error { return set(d, s, ParseDuration) }

func (r *Rate) Type() string     { return "rate" }
func (s *Size) Type() string     { return "size" }
func (d *Duration) Type() string { return "duration" }

func (r *Rate) UnmarshalText(b []byte) error     { return r.Set(string(b)) }
func (s *Size) UnmarshalText(b []byte) error     { return s.Set(string(b)) }
func (d *Duration) UnmarshalText(b []byte) error { return d.Set(string(b)) }

func (r Rate) MarshalText() ([]byte, error)     { return []byte(r.String()), nil }
func (s Size) MarshalText() ([]byte, error)     { return []byte(s.String()), nil }
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func set[T any](dst *T, s string, parse func(string) (T, error)) error {
	v, err := parse(s)
	if err == nil {
		*dst = v
	}
	return err
}

// Plural returns a number followed by the noun, with an s unless n is 1, such as "1 run" or "2 runs".
func Plural[N ~int | ~int64 | ~uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
