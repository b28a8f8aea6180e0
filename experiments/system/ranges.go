package system

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Range is the part of a switch's table that is reserved for a job. Both ends are included.
type Range struct{ First, Last int }

// Set parses a range in the form 0-63. The error matches ErrOptions.
func (r *Range) Set(text string) error {
	first, last, ok := strings.Cut(strings.TrimSpace(text), "-")
	a, err := strconv.Atoi(first)
	b, err2 := strconv.Atoi(last)
	if !ok || err != nil || err2 != nil || a < 0 || b < a || b >= maxSlots {
		return fmt.Errorf("%w: slots %q; write the first and the last slot of a job, such as 0-63, below %d",
			ErrOptions, text, maxSlots)
	}
	r.First, r.Last = a, b
	return nil
}

// maxSlots is a limit that no table reaches.
const maxSlots = 1 << 24

// String returns the range in the form that Set parses.
func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// MarshalText returns the same text as String, for files and documents.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses a range like Set.
func (r *Range) UnmarshalText(text []byte) error { return r.Set(string(text)) }

// size returns the number of slots in the range.
func (r Range) size() int { return r.Last - r.First + 1 }

// ParseRanges parses the ranges of all jobs, separated by commas. The error matches ErrOptions.
func ParseRanges(text string) (ranges []Range, err error) {
	for word := range strings.SplitSeq(text, ",") {
		var r Range
		if err := r.Set(word); err != nil {
			return nil, err
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// divideTable divides a table between the jobs, into the requested ranges or evenly. slots is the length of the table.
// If it was not requested, it is defaultSlots per job, or the end of the last range. Whether the ranges fit into the
// table and do not overlap is checked by the program.
func (o *Options) divideTable(defaultSlots int, places string) (slots int, share func(job int) (base, size int), err error) {
	jobs := max(o.Jobs, 1)
	if len(o.Ranges) > 0 {
		if len(o.Ranges) != jobs {
			return 0, nil, fmt.Errorf("%w: %d ranges of %s for %d jobs; give one for each", ErrOptions, len(o.Ranges),
				places, jobs)
		}
		slots = o.Slots
		for _, r := range o.Ranges {
			if o.Slots == 0 {
				slots = max(slots, r.Last+1)
			}
		}
		return slots, func(job int) (base, size int) { return o.Ranges[job].First, o.Ranges[job].size() }, nil
	}
	slots = cmp.Or(o.Slots, defaultSlots*jobs)
	each := slots / jobs
	if each < 1 {
		return 0, nil, fmt.Errorf("%w: %d %s for %d jobs", ErrOptions, slots, places, jobs)
	}
	return slots, func(job int) (base, size int) { return job * each, each }, nil
}
