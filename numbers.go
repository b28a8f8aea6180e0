package olaf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrNumber is matched by errors about text that is not a number.
var ErrNumber = NewError(Usage, "bad number")

// Numbers that users write in flags, files, sweeps and CSV are decimal: 010 is ten, and Go's 0x10, 0b1, 0o7, 1_000 and
// Inf are rejected. Only words of hardware (ParseWord) may be hexadecimal.

// ParseInt parses a decimal integer.
func ParseInt(text string) (int64, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a whole number, such as 10", ErrNumber, text)
	}
	return v, nil
}

// ParseUint parses an unsigned integer that fits in the given number of bits.
func ParseUint(text string, bits int) (uint64, error) {
	v, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a whole number from 0 to %d", ErrNumber, text,
			uint64(math.MaxUint64)>>(64-bits))
	}
	return v, nil
}

// ParseNumber parses a finite decimal number, such as 0.5 or 1e-3.
func ParseNumber(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || strings.ContainsAny(text, "xX_") {
		return 0, fmt.Errorf("%w: %q is not a number, such as 0.5", ErrNumber, text)
	}
	return v, nil
}

// ParseWord parses an address or the value of a register or table field. It accepts decimal numbers, and hexadecimal
// numbers after 0x.
func ParseWord(text string, bits int) (uint64, error) {
	digits, base := text, 10
	if hex, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		digits, base = hex, 16
	}
	v, err := strconv.ParseUint(digits, base, bits)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a number of %d bits, such as 10 or 0x1f", ErrNumber, text, bits)
	}
	return v, nil
}
