package wired

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// awaitAfter is the age of an incomplete sum at which the switch reports to a contributor whose vectors are missing. It
// is also the time between two reports to a worker.
const awaitAfter = olaf.Second

// awaits records when the workers at a switch were last sent the numbers of workers whose vectors are missing.
type awaits struct {
	notified []olaf.Time // by worker
	out      []byte
}

// findMissing returns, as a bitmap, the workers whose vectors are missing in sums to which a worker contributed and that
// began before a time. It is 0 if the program's slots do not show that.
func findMissing(p program.Program, worker, workers int, before olaf.Time) (missing uint64) {
	if p.CountOccupied() == 0 || workers > 64 {
		return 0
	}
	for i := range p.Slots() {
		if s := p.Slot(i); s.Occupied && s.Since <= before && s.Bitmap>>worker&1 == 1 {
			missing |= ^s.Bitmap
		}
	}
	return missing & (1<<workers - 1)
}

// reportMissing returns a frame with the workers whose vectors are missing, for a worker that sends a part of its vector
// at now, or nil if it is not due. The frame is valid until the next call.
func (a *awaits) reportMissing(p program.Program, worker, workers int, now olaf.Time, outer *frame.Outer) ([]byte, error) {
	if a.notified == nil {
		a.notified, a.out = make([]olaf.Time, workers), make([]byte, olaf.MaxFrame)
	}
	if now < a.notified[worker].Add(awaitAfter) {
		return nil, nil
	}
	a.notified[worker] = now
	missing := findMissing(p, worker, workers, now-olaf.Time(awaitAfter))
	if missing == 0 {
		return nil, nil
	}
	n, err := frame.Baseline.Encode(a.out, outer, &program.Packet{Kind: program.Control, Action: xagg.Awaits, Bitmap: missing}, nil)
	return a.out[:n], err
}
