package system

import (
	"fmt"
	"strconv"
	"strings"
)

// Range is the part of a switch's table reserved for a job, both ends included.
type Range struct{ First, Last int }

// Set parses a range such as 0-63. The error matches ErrOptions.
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

// maxSlots is above the size of every table.
const maxSlots = 1 << 24

// String returns the form that Set parses.
func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// MarshalText returns String, for files and documents.
func (r Range) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses the text as Set does.
func (r *Range) UnmarshalText(text []byte) error { return r.Set(string(text)) }

// size returns the number of slots.
func (r Range) size() int { return r.Last - r.First + 1 }

// ParseRanges parses the jobs' ranges, separated by commas. The error matches ErrOptions.
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

// divideTable divides a table between jobs: into the requested ranges, or evenly. slots is the table's length; if not
// requested, it is usual slots per job or the end of the last range. The program checks that ranges fit the table and
// do not overlap.
func (o *Options) divideTable(usual int, places string) (slots int, share func(job int) (base, size int), err error) {
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
	if slots = o.Slots; slots == 0 {
		slots = usual * jobs
	}
	each := slots / jobs
	if each < 1 {
		return 0, nil, fmt.Errorf("%w: %d %s for %d jobs", ErrOptions, slots, places, jobs)
	}
	return slots, func(job int) (base, size int) { return job * each, each }, nil
}
