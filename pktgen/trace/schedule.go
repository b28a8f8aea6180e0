package trace

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// ErrDeparture is returned if updates could not leave at the times in the trace.
var ErrDeparture = errors.New("departures are too far from the trace")

// Schedule converts a trace to descriptors for the packet generator, in order of time. The flow is the worker, and
// times are in cycles of 4 ns. Frames leave one after another at the line rate, so simultaneous updates wait in the
// network interface. This delay and the rounding of times are counted. Updates cause no allocation.
type Schedule struct {
	source Source
	total  int
	update Update        // kept here to avoid an allocation
	frame  olaf.Duration // transmission time
	free   olaf.Time     // when the line is free
	err    error
	error  DepartureError
}

// DepartureError compares planned or measured departure times with the times in the trace.
type DepartureError struct {
	Updates uint64        `json:"updates"`
	Late    uint64        `json:"late"` // number of frames that are late by more than their transmission time
	Mean    olaf.Duration `json:"mean"` // mean absolute error
	Max     olaf.Duration `json:"max"`
	Sum     olaf.Duration `json:"-"` // sum of the absolute errors
}

// Merge adds the numbers of o to e. The order of merges does not matter.
func (e *DepartureError) Merge(o DepartureError) {
	e.Updates += o.Updates
	e.Late += o.Late
	e.Sum += o.Sum
	e.Max = max(e.Max, o.Max)
	if e.Updates > 0 {
		e.Mean = e.Sum / olaf.Duration(e.Updates)
	}
}

// Add adds one departure. It counts as late if the actual time differs from the intended time by more than tolerance.
func (e *DepartureError) Add(intended, actual olaf.Time, tolerance olaf.Duration) {
	d := actual.Sub(intended)
	if d < 0 {
		d = -d
	}
	one := DepartureError{Updates: 1, Max: d, Sum: d}
	if d > tolerance {
		one.Late = 1
	}
	e.Merge(one)
}

// Check returns an error that matches ErrDeparture if the largest error exceeds limit.
func (e *DepartureError) Check(limit olaf.Duration) error {
	if e.Max <= limit {
		return nil
	}
	return fmt.Errorf("%w: up to %v, %d of %d updates by more than a frame; the limit is %v", ErrDeparture, e.Max,
		e.Late, e.Updates, limit)
}

// NewSchedule returns a schedule for source, which has total updates, on a line with the given rate and frame size. The
// error matches ErrScaling if the line rate or the frame size is invalid.
func NewSchedule(source Source, total int, line olaf.Rate, frame olaf.Size) (*Schedule, error) {
	if line <= 0 {
		return nil, fmt.Errorf("%w: the line rate must be positive", ErrScaling)
	}
	if frame < olaf.HeaderBytes || frame > olaf.MaxFrame {
		return nil, fmt.Errorf("%w: a frame of %v; it has %dB to %v", ErrScaling, frame, olaf.HeaderBytes,
			olaf.MaxFrame)
	}
	return &Schedule{source: source, total: total, frame: line.TimeToSend(frame)}, nil
}

// Total returns the number of descriptors in the stream.
func (s *Schedule) Total() int { return s.total }

// Next writes the next descriptor to d and reports whether there was one. It returns false at the end or after an
// error. It does not set the length, which the flow defines.
func (s *Schedule) Next(d *regmap.Descriptor) bool {
	u := &s.update
	if s.err == nil {
		s.err = s.source.Next(u)
	}
	if s.err != nil {
		return false
	}
	if u.GenNS > math.MaxInt64/int64(olaf.Nanosecond)/2 {
		s.err = fmt.Errorf("%w: update at %d ns exceeds virtual time", ErrInvalid, u.GenNS)
		return false
	}
	intended := olaf.Time(u.GenNS * int64(olaf.Nanosecond))
	cycle := max(intended, s.free) / olaf.Time(olaf.Cycle)
	planned := cycle * olaf.Time(olaf.Cycle)
	s.free = max(intended, s.free).Add(s.frame)
	s.error.Add(intended, planned, s.frame)
	*d = regmap.Descriptor{Time: uint64(cycle), Flow: uint16(u.Worker), Sequence: u.Seq, Reward: u.RewardQ248()}
	return true
}

// Fill writes the next descriptors to dst and returns their number. The number is less than len(dst) only at the end.
func (s *Schedule) Fill(dst []regmap.Descriptor) int {
	for i := range dst {
		if !s.Next(&dst[i]) {
			return i
		}
	}
	return len(dst)
}

// Err returns the error that ended the schedule early, or nil.
func (s *Schedule) Err() error {
	if s.err == io.EOF {
		return nil
	}
	return s.err
}

// Departures returns how much the planned departure times so far deviate from the trace.
func (s *Schedule) Departures() DepartureError { return s.error }
