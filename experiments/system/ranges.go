package system

import (
	"fmt"
	"strconv"
	"strings"
)

// Range is the slots of a switch's table that a job has to itself, both ends inside.
type Range struct{ First, Last int }

// Set reads 0-63. The error matches ErrOptions.
func (r *Range) Set(text string) error {
	first, last, ok := strings.Cut(strings.TrimSpace(text), "-")
	a, err := strconv.Atoi(first)
	b, err2 := strconv.Atoi(last)
	if !ok || err != nil || err2 != nil || a < 0 || b < a || b >= maxSlots {
		return fmt.Errorf("%w: slots %q; write the first and the last slot of a job, such as 0-63, below %d", ErrOptions, text, maxSlots)
	}
	r.First, r.Last = a, b
	return nil
}

// maxSlots is beyond what any table has.
const maxSlots = 1 << 24

// String is what Set reads.
func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// MarshalText is String, for files and documents.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is Set.
func (r *Range) UnmarshalText(text []byte) error { return r.Set(string(text)) }

// size is how many slots there are.
func (r Range) size() int { return r.Last - r.First + 1 }

// ParseRanges reads the ranges of jobs, separated by commas. The error matches ErrOptions.
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

// parts are the slots of each job of a table that jobs divide: the ranges that were asked for, else as many for each. slots is the
// table's length, 0 to have usual for each job or what the ranges reach to. Whether ranges fit the table and each other is said by
// the program.
func (o *Options) parts(usual int, places string) (slots int, share func(job int) (base, size int), err error) {
	jobs := max(o.Jobs, 1)
	if len(o.Ranges) > 0 {
		if len(o.Ranges) != jobs {
			return 0, nil, fmt.Errorf("%w: %d ranges of %s for %d jobs; give one for each", ErrOptions, len(o.Ranges), places, jobs)
		}
		slots = o.Slots
		for _, r := range o.Ranges {
			if o.Slots == 0 {
				slots = max(slots, r.Last+1)
			}
		}
		return slots, func(job int) (base, size int) { return o.Ranges[job].First, o.Ranges[job].size() }, nil
	}
	if slots = o.Slots; slots == 0 {
		slots = usual * jobs
	}
	each := slots / jobs
	if each < 1 {
		return 0, nil, fmt.Errorf("%w: %d %s for %d jobs", ErrOptions, slots, places, jobs)
	}
	return slots, func(job int) (base, size int) { return job * each, each }, nil
}
