package remote

import (
	"encoding/binary"

	"github.com/olafctl/olaf"
)

// The first byte of an update has these bits.
const (
	hasCount        = 1 << iota // the count follows, because it is not 1
	hasLanes                    // the lanes follow, because they differ from those of the last update
	hasFlags                    // the flags follow, because they are not 0
	hasContributors             // a provenance log follows, which may be empty
)

// smallestUpdate and smallestContributor are the minimum lengths of an update and of a contributor in bytes. They limit
// how many of them a list can contain.
const smallestUpdate, smallestContributor = 8, 3

// appendUpdates appends the number of updates and then the updates to b. Numbers are encoded as differences from the
// previous update, in as few bytes as possible, because transmission to a distant host costs more than arithmetic.
func appendUpdates(b []byte, all []olaf.Observation) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(all)))
	var last olaf.Observation
	for i := range all {
		b = appendUpdate(b, &all[i], &last)
		last = all[i]
	}
	return b
}

func appendUpdate(b []byte, o, last *olaf.Observation) []byte {
	u := &o.Update
	head := byte(0)
	if u.Count != 1 {
		head |= hasCount
	}
	if u.Lanes != last.Update.Lanes {
		head |= hasLanes
	}
	if u.Flags != 0 {
		head |= hasFlags
	}
	if o.Contributors != nil {
		head |= hasContributors
	}
	b = append(b, head)
	b = binary.AppendVarint(b, int64(o.At-last.At))
	b = binary.AppendVarint(b, int64(o.Queued))
	b = binary.AppendVarint(b, int64(u.GenNS-last.Update.GenNS))
	b = binary.AppendVarint(b, int64(int32(u.Seq-last.Update.Seq)))
	b = binary.AppendVarint(b, int64(u.Reward))
	b = binary.AppendUvarint(b, uint64(u.Cluster))
	b = binary.AppendUvarint(b, uint64(u.Worker))
	if head&hasCount != 0 {
		b = binary.AppendUvarint(b, uint64(u.Count))
	}
	if head&hasLanes != 0 {
		b = binary.AppendUvarint(b, uint64(u.Lanes))
	}
	if head&hasFlags != 0 {
		b = append(b, byte(u.Flags))
	}
	if head&hasContributors == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(o.Contributors)))
	for i := range o.Contributors {
		c := &o.Contributors[i]
		b = binary.AppendVarint(b, int64(c.GenNS-u.GenNS))
		b = binary.AppendVarint(b, int64(int32(c.Seq-u.Seq)))
		b = binary.AppendUvarint(b, uint64(c.Worker))
	}
	return b
}

// readUpdates reads a list of updates and appends the updates to buf and their contributors to arena.
func (r *reader) readUpdates(buf []olaf.Observation, arena []olaf.Contributor) ([]olaf.Observation, []olaf.Contributor) {
	n := r.u32()
	if uint64(n)*smallestUpdate > uint64(len(r.b)) {
		r.short, r.b = true, nil
		return buf, arena
	}
	var last olaf.Observation
	for range n {
		var o olaf.Observation
		arena = r.readUpdate(&o, &last, arena)
		if r.short {
			break
		}
		buf, last = append(buf, o), o
	}
	return buf, arena
}

func (r *reader) readUpdate(o, last *olaf.Observation, arena []olaf.Contributor) []olaf.Contributor {
	u := &o.Update
	head := r.u8()
	o.At = last.At + olaf.Time(r.varint())
	o.Queued = olaf.Duration(r.varint())
	u.GenNS = last.Update.GenNS + uint64(r.varint())
	u.Seq = last.Update.Seq + uint32(r.varint())
	u.Reward = int32(r.varint())
	u.Cluster = olaf.ClusterID(r.uvarint())
	u.Worker = olaf.WorkerID(r.uvarint())
	u.Count, u.Lanes = 1, last.Update.Lanes
	if head&hasCount != 0 {
		u.Count = uint16(r.uvarint())
	}
	if head&hasLanes != 0 {
		u.Lanes = uint16(r.uvarint())
	}
	if head&hasFlags != 0 {
		u.Flags = olaf.Flags(r.u8())
	}
	if head&hasContributors == 0 {
		return arena
	}
	n := r.uvarint()
	if n > uint64(len(r.b))/smallestContributor {
		r.short, r.b = true, nil
		return arena
	}
	from := len(arena)
	for range n {
		arena = append(arena, olaf.Contributor{GenNS: u.GenNS + uint64(r.varint()), Seq: u.Seq + uint32(r.varint()),
			Worker: olaf.WorkerID(r.uvarint())})
	}
	if o.Contributors = arena[from:len(arena):len(arena)]; n == 0 {
		o.Contributors = []olaf.Contributor{} // not nil, even if the arena is nil
	}
	return arena
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	r.skip(n)
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.skip(n)
	return v
}

// skip drops the n bytes of a number that was read, or everything if there was no valid number.
func (r *reader) skip(n int) {
	if n <= 0 {
		r.short, r.b = true, nil
		return
	}
	r.b = r.b[n:]
}
