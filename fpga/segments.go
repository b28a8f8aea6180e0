package fpga

import (
	"errors"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// ErrRunning says that a queue runs, so that nobody can look into what is in front of it.
var ErrRunning = olaf.NewError(olaf.Device, "the queue runs")

// ErrMoving says that what is in front of a queue that stands changes under one's eyes.
var ErrMoving = olaf.NewError(olaf.Device, "the table of the program changes while it is read")

// Segment is a slot of the program in front of the queue that holds a partial sum, as registers tell of it: not whose all the
// contributions are.
type Segment struct {
	Cluster olaf.ClusterID
	Seg     uint64 // place in the cluster's vector
	Slot    int    // of the table
	Count   int    // contributions inside
	Newest  olaf.WorkerID
	GenNS   uint64 // of the newest
	Since   uint64 // of the first contribution, in common.cycles
	Lanes   int    // that are stored
}

// Segments are the table of the program in front of the queue.
type Segments struct {
	Program uint32 // its code
	H       int    // contributions that complete a sum
	Built   int
	Held    []Segment
}

// ReadSegments reads what waits in front of the queue. The queue must stand: one that is frozen is read as it is, one that is
// disabled is frozen for the while, and one that runs gives an error that matches ErrRunning. The error matches ErrRefused where there is no
// such block, and ErrMoving where somebody else changes it meanwhile.
func ReadSegments(d Device) (Segments, error) { return readSegments(d, false) }

// HoldSegments is ReadSegments of a device whose time passes only when it is asked to: a queue that runs is frozen for the while
// as well, as nothing can arrive meanwhile.
func HoldSegments(d Device) (Segments, error) { return readSegments(d, true) }

func readSegments(d Device, holds bool) (t Segments, err error) {
	switch has, err := hasAggregator(d); {
	case err != nil:
		return t, err
	case !has:
		return t, fmt.Errorf("%w: %s is not built with a program in front of its queue", ErrRefused,
			d.Identity().Address)
	}
	control, err := d.Read32(regmap.QueueControl)
	if err != nil {
		return t, err
	}
	switch {
	case control&regmap.QueueControlFreeze != 0:
	case control&regmap.QueueControlEnable != 0 && !holds:
		return t, fmt.Errorf("%w: 'olafctl device reg write queue.control.freeze=1 -d %s' stops its clock, and loses what arrives until it is 0 again", ErrRunning, d.Identity().Address)
	default:
		if err := d.Write32(regmap.QueueControl, control|regmap.QueueControlFreeze); err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, d.Write32(regmap.QueueControl, control)) }()
	}
	return agreed(d)
}

// looks are how often the table is read until one is as that before.
const looks = 4

// agreed reads the table until two looks show the same, since a reset that comes between two registers leaves words of two tables.
func agreed(d Device) (t Segments, err error) {
	for i := range looks {
		before := t
		t = Segments{}
		if err := t.read(d); err != nil {
			return t, err
		}
		if i > 0 && t.Program == before.Program && t.H == before.H && t.Built == before.Built &&
			slices.Equal(t.Held, before.Held) {
			return t, nil
		}
	}
	return Segments{}, fmt.Errorf("%w: no two looks agree; end other programs that write to %s", ErrMoving,
		d.Identity().Address)
}

func (t *Segments) read(d Device) error {
	values, err := readAll(d, regmap.AggregatorProgram, regmap.AggregatorH, regmap.AggregatorBuiltSlots,
		regmap.AggregatorOccupied)
	if err != nil {
		return err
	}
	t.Program, t.H, t.Built = values[0], int(values[1]), int(values[2])
	segments, err := segmentsOf(d)
	if err != nil {
		return err
	}
	for i := range values[3] {
		if err := d.Write32(regmap.AggregatorInspectIndex, i); err != nil {
			return err
		}
		s, err := readSegment(d)
		if err != nil {
			return err
		}
		s.Seg = uint64(s.Slot % segments)
		t.Held = append(t.Held, s)
	}
	return nil
}

// segmentsOf is how many segments each cluster's vector has: one, where software can't say.
func segmentsOf(d Device) (int, error) {
	capabilities, err := d.Read32(regmap.CommonCapabilities)
	if err != nil || capabilities&regmap.CommonCapabilitiesWireFormats == 0 {
		return 1, err
	}
	n, err := d.Read32(regmap.AggregatorSegments)
	return max(int(n), 1), err
}

// readSegment is what the inspector shows.
func readSegment(d Device) (Segment, error) {
	v, err := readAll(d, regmap.AggregatorInspectIdentity, regmap.AggregatorInspectSize,
		regmap.AggregatorInspectSegment,
		regmap.AggregatorInspectGeneration, regmap.AggregatorInspectGeneration+4, regmap.AggregatorInspectSince,
		regmap.AggregatorInspectSince+4)
	if err != nil {
		return Segment{}, err
	}
	return Segment{
		Cluster: olaf.ClusterID(v[0] >> regmap.AggregatorInspectIdentityClusterShift), Newest: olaf.WorkerID(v[0]),
		Count: int(v[1] & regmap.AggregatorInspectSizeCountMask),
		Lanes: int(v[1] >> regmap.AggregatorInspectSizeLanesShift), Slot: int(v[2]),
		GenNS: uint64(v[4])<<32 | uint64(v[3]), Since: uint64(v[6])<<32 | uint64(v[5]),
	}, nil
}

// readAll reads registers in their order.
func readAll(d Device, at ...uint32) ([]uint32, error) {
	values := make([]uint32, len(at))
	for i, a := range at {
		var err error
		if values[i], err = d.Read32(a); err != nil {
			return nil, err
		}
	}
	return values, nil
}
