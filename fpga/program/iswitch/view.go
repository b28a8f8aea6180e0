package iswitch

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// Slots returns the number of segments in the table.
func (s *Switch) Slots() int { return len(s.slots) }

// Memory returns the size of the table. Each lane takes four bytes and each counter two, as in the paper's buffers and
// Seg counters. Profile isw-x adds a bitmap and a round.
func (s *Switch) Memory() olaf.Size {
	bytes := Lanes*4 + 2
	if s.exact {
		bytes += 8 + 2
	}
	return olaf.Size(len(s.slots) * bytes)
}

// Slot returns the contents of segment i.
func (s *Switch) Slot(i int) program.Slot {
	t := &s.slots[i]
	v := program.Slot{Occupied: t.count > 0}
	if v.Occupied {
		v.Count, v.Bitmap, v.Since, v.Trace = int(t.count), t.sum.Bitmap, t.since, t.sum.Trace
	}
	for _, k := range s.jobs {
		if k != nil && i >= k.Base && i < k.Base+k.Slots {
			v.Job, v.Seg = k.ID, uint64(i-k.Base)
		}
	}
	if v.Occupied {
		v.Lanes = s.buffer(t)
	}
	return v
}

// Reset empties the table and sets the counts to 0.
func (s *Switch) Reset() {
	for i := range s.slots {
		s.slots[i] = slot{at: uint32(i)}
	}
	s.ResetCounts()
}
