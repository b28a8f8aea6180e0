package rtl

import (
	"encoding/binary"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/twin"
)

// tap stores the frames that left since the last drain. Their contributors are reconstructed from the provenance log.
// Each slot has a list that grows with every merge and is moved out when the frame leaves.
type tap struct {
	observations []olaf.Observation
	inside       [2][]olaf.Contributor // arenas; the result of a drain stays valid until the next one
	side         int
	slots        [][]olaf.Contributor // contributors by slot
	leaving      [][]olaf.Contributor // contributors of finished frames, oldest first
	spare        [][]olaf.Contributor
	cut          int // frames cut by a flush

	recording bool
	packets   []twin.Packet
	lanes     [2][]int32 // arenas, like inside
	laneSide  int
}

// Bits that select reports. Frames are always reported.
const (
	reportDecisions = 1
	reportLog       = 2 // provenance
	reportLanes     = 4 // complete frames
	reportBypassed  = 8
	reportWire      = 16
)

// Record enables or disables the recording of complete frames.
func (c *Card) Record(on bool) {
	what := uint32(reportLog)
	if on {
		what |= reportLanes | reportBypassed
	}
	c.tap.recording = on
	_ = c.child.setReports(what) // the next access returns the error
}

// DrainPackets appends the frames that left since its previous call, including those that bypassed the queue, to buf
// and returns it. If recording is disabled, there are none. Lanes are valid until the next call of DrainPackets.
func (c *Card) DrainPackets(buf []twin.Packet) []twin.Packet {
	t := &c.tap
	buf = append(buf, t.packets...)
	t.packets = t.packets[:0]
	t.laneSide ^= 1
	t.lanes[t.laneSide] = t.lanes[t.laneSide][:0]
	return buf
}

// makePacket returns a complete frame in the form in which captures show it.
func (t *tap) makePacket(kind twin.Kind, at olaf.Time, queued olaf.Duration, u *olaf.Update, b []byte) twin.Packet {
	arena := t.lanes[t.laneSide]
	from := len(arena)
	for at := olaf.HeaderBytes; at+olaf.LaneBytes <= len(b); at += olaf.LaneBytes {
		arena = append(arena, int32(binary.BigEndian.Uint32(b[at:])))
	}
	t.lanes[t.laneSide] = arena
	return twin.Packet{At: at, Queued: queued, Kind: kind, Update: *u, Lanes: arena[from:len(arena):len(arena)],
		Addresses: twin.Addresses{
			DestMAC: [6]byte(b), SourceMAC: [6]byte(b[6:]), SourceIP: [4]byte(b[26:]), DestIP: [4]byte(b[30:]),
			SourcePort: binary.BigEndian.Uint16(b[34:]), DestPort: binary.BigEndian.Uint16(b[36:]),
		}}
}

// Drain appends the updates delivered since its previous call to buf, in order, and returns it. At is the time of the
// last beat on the bus, on the generator's run clock. Contributors are nil without provenance, and are valid until the
// next call of Drain.
func (c *Card) Drain(buf []olaf.Observation) []olaf.Observation {
	t := &c.tap
	buf = append(buf, t.observations...)
	t.observations = t.observations[:0]
	t.side ^= 1
	t.inside[t.side] = t.inside[t.side][:0]
	return buf
}

// report handles a record from the child.
func (c *Card) report(kind byte, r []byte) {
	t := &c.tap
	switch kind {
	case 'l':
		t.logUpdate(engine.Class(r[0]), binary.LittleEndian.Uint16(r[1:]), olaf.Contributor{
			Worker: olaf.WorkerID(binary.LittleEndian.Uint16(r[3:])),
			Seq:    binary.LittleEndian.Uint32(r[5:]),
			GenNS:  binary.LittleEndian.Uint64(r[9:]),
		})
	case 'x':
		slot := binary.LittleEndian.Uint16(r)
		t.leaving = append(t.leaving, *t.slotList(slot))
		*t.slotList(slot) = nil
	case 'c':
		t.cut++
	case 'f':
		f := frameOf(r)
		o := olaf.Observation{
			At:           c.runTime(f.out, f.over),
			Queued:       olaf.Duration(cycleTime(f.out - f.appended)),
			Update:       f.update,
			Contributors: t.takeContributors(),
		}
		t.observations = append(t.observations, o)
		if t.recording {
			p := t.makePacket(twin.Delivered, o.At, o.Queued, &o.Update, f.bytes)
			p.Contributors = o.Contributors
			t.packets = append(t.packets, p)
		}
	case 'y':
		b := r[10:]
		if short := olaf.HeaderBytes - len(b); short > 0 { // a damaged frame may be short; pad it with zeros
			b = append(b[:len(b):len(b)], make([]byte, short)...)
		}
		u, out := updateOf(b, len(b)), int64(binary.LittleEndian.Uint64(r))
		t.packets = append(t.packets, t.makePacket(twin.Bypassed, c.runTime(out, out), 0, &u, b))
	}
}

func cycleTime(cycles int64) olaf.Time { return olaf.Time(cycles * int64(olaf.Cycle)) }

// logUpdate adds an accepted update to the contributors of its slot.
func (t *tap) logUpdate(class engine.Class, slot uint16, contributor olaf.Contributor) {
	list := t.slotList(slot)
	if class != engine.Aggregated {
		if *list == nil && len(t.spare) > 0 {
			*list = t.spare[len(t.spare)-1]
			t.spare = t.spare[:len(t.spare)-1]
		}
		*list = (*list)[:0]
	}
	*list = append(*list, contributor)
}

// slotList returns the list of contributors in a slot.
func (t *tap) slotList(slot uint16) *[]olaf.Contributor {
	for int(slot) >= len(t.slots) {
		t.slots = append(t.slots, nil)
	}
	return &t.slots[slot]
}

// takeContributors removes and returns the contributors of the oldest frame that has left the queue. It returns nil if
// there is no log.
func (t *tap) takeContributors() []olaf.Contributor {
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

// frame is a frame that was sent to the parameter server.
type frame struct {
	over     int64 // cycle in which its last bit was due
	out      int64 // cycle in which its last beat was on the bus
	appended int64 // cycle in which its slot was filled
	update   olaf.Update
	bytes    []byte // its header, or the complete frame
}

// Offsets in the header of a frame (docs/reference/semantics.md, Update on the wire).
const (
	offFlags   = 43
	offCluster = 44
	offWorker  = 46
	offSeq     = 48
	offCount   = 52
	offGen     = 54
	offReward  = 60
)

// frameOf decodes the record of a frame.
func frameOf(r []byte) frame {
	const size, header = 25, 29
	b := r[header:]
	f := frame{
		over:     int64(binary.LittleEndian.Uint64(r)),
		out:      int64(binary.LittleEndian.Uint64(r[8:])),
		appended: int64(binary.LittleEndian.Uint64(r[16:])),
		bytes:    b,
		update:   updateOf(b, int(binary.LittleEndian.Uint16(r[size:]))),
	}
	if r[24] != 0 {
		f.update.Flags |= olaf.CountSaturated
	}
	return f
}

// updateOf decodes the OLAF header of a frame with the given size.
func updateOf(b []byte, size int) olaf.Update {
	u := olaf.Update{
		GenNS:   uint64(binary.BigEndian.Uint16(b[offGen:]))<<32 | uint64(binary.BigEndian.Uint32(b[offGen+2:])),
		Seq:     binary.BigEndian.Uint32(b[offSeq:]),
		Reward:  int32(binary.BigEndian.Uint32(b[offReward:])),
		Cluster: olaf.ClusterID(binary.BigEndian.Uint16(b[offCluster:])),
		Worker:  olaf.WorkerID(binary.BigEndian.Uint16(b[offWorker:])),
		Count:   binary.BigEndian.Uint16(b[offCount:]),
		Lanes:   uint16((size - olaf.HeaderBytes) / olaf.LaneBytes),
	}
	if b[offFlags]&2 != 0 {
		u.Flags |= olaf.Retransmission
	}
	return u
}
