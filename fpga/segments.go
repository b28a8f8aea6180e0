package fpga

import (
	"errors"
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// ErrRunning is returned if the table of the switch program cannot be read because the queue is running.
var ErrRunning = olaf.NewError(olaf.Device, "the queue runs")

// ErrMoving is returned if the table of the switch program changed while it was read, although the queue was stopped.
var ErrMoving = olaf.NewError(olaf.Device, "the table of the program changes while it is read")

// Segment is a slot with a partial sum in the table of the switch program before the queue. The registers identify only
// the sum's newest contributor.
type Segment struct {
	Cluster olaf.ClusterID
	Seg     uint64 // position in the cluster's vector
	Slot    int    // index in the table
	Count   int    // number of contributions in the sum
	Newest  olaf.WorkerID
	GenNS   uint64 // generation time of the newest contribution
	Since   uint64 // time of the first contribution, by common.cycles
	Lanes   int    // number of stored lanes
}

// Segments is the table of the switch program before the queue.
type Segments struct {
	Program uint32 // program code
	H       int    // number of contributions that complete a sum
	Built   int
	Held    []Segment
}

// ReadSegments reads the table of the switch program before the queue. A disabled queue is frozen while the table is
// read, and a frozen queue is left as it is. If the queue is running, the error matches ErrRunning. The error matches
// ErrRefused if the card has no aggregator block, and ErrMoving if the table changes while it is read.
func ReadSegments(d Device) (Segments, error) { return readSegments(d, false) }

// FreezeAndReadSegments does the same as ReadSegments for a device whose time passes only on request. It can also
// freeze a running queue, because nothing arrives while the table is read.
func FreezeAndReadSegments(d Device) (Segments, error) { return readSegments(d, true) }

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
		return t, fmt.Errorf("%w: 'olafctl device reg write queue.control.freeze=1 -d %s' stops its clock, and "+
			"loses what arrives until it is 0 again", ErrRunning, d.Identity().Address)
	default:
		if err := d.Write32(regmap.QueueControl, control|regmap.QueueControlFreeze); err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, d.Write32(regmap.QueueControl, control)) }()
	}
	return readStableSegments(d)
}

// looks is the maximum number of times that the table is read until two successive results agree.
const looks = 4

// readStableSegments reads the table until two successive results agree. This is necessary because a reset between two
// register reads would mix the contents of two tables.
func readStableSegments(d Device) (t Segments, err error) {
	for i := range looks {
		before := t
		t = Segments{}
		if err := t.readTable(d); err != nil {
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

func (t *Segments) readTable(d Device) error {
	values, err := readAll(d, regmap.AggregatorProgram, regmap.AggregatorH, regmap.AggregatorBuiltSlots,
		regmap.AggregatorOccupied)
	if err != nil {
		return err
	}
	t.Program, t.H, t.Built = values[0], int(values[1]), int(values[2])
	segments, err := countSegments(d)
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

// countSegments returns the number of segments in the vector of each cluster. It is 1 in builds without wire formats.
func countSegments(d Device) (int, error) {
	capabilities, err := d.Read32(regmap.CommonCapabilities)
	if err != nil || capabilities&regmap.CommonCapabilitiesWireFormats == 0 {
		return 1, err
	}
	n, err := d.Read32(regmap.AggregatorSegments)
	return max(int(n), 1), err
}

// readSegment reads the slot that is selected in the inspector's registers.
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

// readAll reads the registers at the given addresses, in order.
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
