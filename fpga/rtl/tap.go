package rtl

import (
	"encoding/binary"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
)

// tap is what left since the last drain. Contributors come from the provenance log: lists that grow with their slots and
// leave with their frames.
type tap struct {
	observations []olaf.Observation
	inside       [2][]olaf.Contributor // arenas, so that what a drain handed out stays valid until the next one
	side         int
	slots        map[uint16][]olaf.Contributor
	leaving      [][]olaf.Contributor // of frames that are over, oldest first
	spare        [][]olaf.Contributor
	cut          int // frames that a flush ended on the bus
}

// Drain appends the updates delivered since the last Drain to buf, in order, and returns it. At is when the last beat was on
// the bus, on the generator's run clock. Contributors (nil without provenance) are valid until the next Drain.
func (c *Card) Drain(buf []olaf.Observation) []olaf.Observation {
	t := &c.tap
	buf = append(buf, t.observations...)
	t.observations = t.observations[:0]
	t.side ^= 1
	t.inside[t.side] = t.inside[t.side][:0]
	return buf
}

// report takes what the child tells while time passes.
func (c *Card) report(kind byte, r []byte) {
	t := &c.tap
	switch kind {
	case 'l':
		t.log(engine.Class(r[0]), binary.LittleEndian.Uint16(r[1:]), olaf.Contributor{
			Worker: olaf.WorkerID(binary.LittleEndian.Uint16(r[3:])),
			Seq:    binary.LittleEndian.Uint32(r[5:]),
			GenNS:  binary.LittleEndian.Uint64(r[9:]),
		})
	case 'x':
		slot := binary.LittleEndian.Uint16(r)
		t.leaving = append(t.leaving, t.slots[slot])
		delete(t.slots, slot)
	case 'c':
		t.cut++
	case 'f':
		f := frameOf(r)
		o := olaf.Observation{
			At:           cycleTime(f.out - c.zero),
			Queued:       olaf.Duration(cycleTime(f.out - f.appended)),
			Update:       f.update,
			Contributors: t.contributors(),
		}
		t.observations = append(t.observations, o)
	}
}

func cycleTime(cycles int64) olaf.Time { return olaf.Time(cycles * int64(olaf.Cycle)) }

// log books one accepted update.
func (t *tap) log(class engine.Class, slot uint16, who olaf.Contributor) {
	if t.slots == nil {
		t.slots = make(map[uint16][]olaf.Contributor)
	}
	list := t.slots[slot]
	if class != engine.Aggregated {
		if list == nil && len(t.spare) > 0 {
			list = t.spare[len(t.spare)-1]
			t.spare = t.spare[:len(t.spare)-1]
		}
		list = list[:0]
	}
	t.slots[slot] = append(list, who)
}

// contributors are those of the oldest frame that is over; nil without a log.
func (t *tap) contributors() []olaf.Contributor {
	if len(t.leaving) == 0 {
		return nil
	}
	list := t.leaving[0]
	t.leaving = append(t.leaving[:0], t.leaving[1:]...)
	arena := t.inside[t.side]
	from := len(arena)
	arena = append(arena, list...)
	t.inside[t.side] = arena
	t.spare = append(t.spare, list)
	return arena[from:len(arena):len(arena)]
}

// frame is one that left for the parameter server.
type frame struct {
	over     int64 // cycle in which its last bit was due
	out      int64 // cycle in which its last beat was on the bus
	appended int64 // cycle in which its slot was filled
	update   olaf.Update
	bytes    []byte // its header, or all of it
}

// Offsets in the header of a frame (docs/semantics.md, Update on the wire).
const (
	offFlags   = 43
	offCluster = 44
	offWorker  = 46
	offSeq     = 48
	offCount   = 52
	offGen     = 54
	offReward  = 60
)

// frameOf reads a record.
func frameOf(r []byte) frame {
	const size, header = 25, 29
	b := r[header:]
	f := frame{
		over:     int64(binary.LittleEndian.Uint64(r)),
		out:      int64(binary.LittleEndian.Uint64(r[8:])),
		appended: int64(binary.LittleEndian.Uint64(r[16:])),
		bytes:    b,
		update: olaf.Update{
			GenNS:   uint64(binary.BigEndian.Uint16(b[offGen:]))<<32 | uint64(binary.BigEndian.Uint32(b[offGen+2:])),
			Seq:     binary.BigEndian.Uint32(b[offSeq:]),
			Reward:  int32(binary.BigEndian.Uint32(b[offReward:])),
			Cluster: olaf.ClusterID(binary.BigEndian.Uint16(b[offCluster:])),
			Worker:  olaf.WorkerID(binary.BigEndian.Uint16(b[offWorker:])),
			Count:   binary.BigEndian.Uint16(b[offCount:]),
			Lanes:   uint16((int(binary.LittleEndian.Uint16(r[size:])) - olaf.HeaderBytes) / olaf.LaneBytes),
		},
	}
	if b[offFlags]&2 != 0 {
		f.update.Flags |= olaf.Retransmission
	}
	if r[24] != 0 {
		f.update.Flags |= olaf.CountSaturated
	}
	return f
}
