package testbed

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/fpga"
)

// Mirror describes how copies of the generator's frames arrive, which a switch sends to the server's host. Both ends of
// an age are then stamped by the same clock, and the generator's clock is not used.
type Mirror struct {
	// Open starts a capture of the copies, stamped by the clock that stamps the server's frames. If Open is nil, the
	// copies arrive among the server's frames.
	Open func() (Frames, error)
}

// copies contains the mirrored updates of a run. Ages begin at their timestamps instead of the generator's.
type copies struct {
	frames Frames // nil if they arrive among the server's frames
	name   string // name of the interface

	originNS int64 // start of the run
	decoder  *capture.Decoder
	met      map[updateID]bool
	stamps   map[generationID]int64 // time since the start of the run
	fresh    []olaf.Observation     // since the last Drain
	late     olaf.Duration
	widthNS  int64 // largest distance between copies of different updates with one generationID
	missing  int64 // updates at the server without a copy
	repeats  int64 // unmerged updates at the server, if these repeat their copies
	broken   error
}

// updateID identifies an update of a run.
type updateID struct {
	generationID
	worker olaf.WorkerID
	seq    uint32
	again  bool
}

// generationID identifies the newest of the updates that a queue merged. The merged update has its generation time.
type generationID struct {
	cluster olaf.ClusterID
	genNS   uint64
}

// openCopies starts the capture of copies. server is the capture at the server.
func openCopies(m *Mirror, server Frames) (*copies, error) {
	c := &copies{name: server.Info().Interface}
	if m.Open == nil {
		return c, nil
	}
	var err error
	if c.frames, err = m.Open(); err != nil {
		return nil, err
	}
	c.name = c.frames.Info().Interface
	if a, b := c.frames.Info().Stamps, server.Info().Stamps; a != b {
		return nil, errors.Join(fmt.Errorf("%w: %s has timestamps from the %s clock and %s from the %s clock, but a "+
			"mirror needs one clock; use kernel for both, or mirror to the server's interface", ErrBackend, c.name, a,
			server.Info().Interface, b), c.frames.Close())
	}
	return c, nil
}

// Close ends the capture.
func (c *copies) Close() error {
	if c == nil || c.frames == nil {
		return nil
	}
	return c.frames.Close()
}

// begin removes the copies of earlier runs.
func (c *copies) begin(originNS int64) {
	*c = copies{frames: c.frames, name: c.name, originNS: originNS, met: map[updateID]bool{}, stamps: map[generationID]int64{}}
	c.decoder = capture.NewDecoder(c)
	c.decoder.SetOrigin(0) // Next returns times since the run's start
}

// Name returns the name of the interface, which the decoder uses in errors.
func (c *copies) Name() string { return c.name }

// Next returns the next mirrored frame of the run. Its time is the time since the run's start.
func (c *copies) Next(p *capture.Packet) error {
	for {
		if err := c.frames.Next(p); err != nil {
			return err
		}
		if p.UnixNS -= c.originNS; p.UnixNS >= 0 {
			return nil
		}
	}
}

// read reads the copies that have arrived. It does nothing if they arrive among the server's frames.
func (c *copies) read() {
	for c.frames != nil && c.decoder != nil && c.broken == nil {
		var a capture.Arrival
		err := c.decoder.Next(&a)
		if errors.Is(err, capture.ErrIdle) {
			return
		}
		if c.broken = err; err == nil && a.Frame.Kind() != olaf.KindAck {
			c.note(&a)
		}
	}
}

// note stores the timestamp of a copy.
func (c *copies) note(a *capture.Arrival) {
	id := generationID{a.Update.Cluster, a.Update.GenNS}
	if other, there := c.stamps[id]; there {
		c.widthNS = max(c.widthNS, a.At.NS()-other, other-a.At.NS())
	}
	c.stamps[id] = a.At.NS()
	c.fresh = append(c.fresh, a.Observation())
}

// takes reports whether one of the server's frames is a copy. The first frame of each update that was not merged is a
// copy.
func (c *copies) takes(a *capture.Arrival) bool {
	u := &a.Update
	if c.frames != nil || u.Count > 1 {
		return false
	}
	id := updateID{generationID{u.Cluster, u.GenNS}, u.Worker, u.Seq, u.Flags&olaf.Retransmission != 0}
	if c.met[id] {
		c.repeats++
		return false
	}
	c.met[id] = true
	c.note(a)
	return true
}

// date replaces an arrival's generation time by the timestamp of its copy. An arrival without a copy is counted as
// missing.
func (c *copies) date(a *capture.Arrival) {
	id := generationID{a.Update.Cluster, a.Update.GenNS}
	stamp, there := c.stamps[id]
	if !there {
		c.read()
		stamp, there = c.stamps[id]
	}
	if !there || stamp < 0 {
		c.missing++
		return
	}
	a.Update.GenNS, a.GeneratedNS = uint64(stamp), stamp
}

// settle updates the lower limit on the largest delay of the timestamps. It must be called after a Drain.
func (c *copies) settle() {
	c.late = max(c.late, lateAtLeast(c.fresh))
	c.fresh = c.fresh[:0]
}

// report writes the uncertainty of ages that begin at the copies' timestamps, or the reason why the ages must be
// withheld.
func (c *copies) report(to *fpga.Capture) {
	to.Mirror, to.DriftNS = c.name, 0
	to.UncertaintyNS = int64(c.late/olaf.Nanosecond) + c.widthNS
	if c.frames == nil {
		to.Duplicates = 0 // a copy and its update are not duplicates
		if len(c.met) > 0 && c.repeats == 0 {
			to.Faults = append(to.Faults, fmt.Sprintf("no update reached %s twice, so no switch mirrors the generator's cable to it "+
				"(clock.by mirror)", c.name))
		}
	}
	if c.frames != nil {
		if err := c.frames.StampCounts().Err(); err != nil {
			to.Faults = append(to.Faults, fmt.Sprintf("copies at %s: %v", c.name, err))
		}
	}
	why := ""
	switch {
	case c.broken != nil:
		why = fmt.Sprintf("the capture of copies at %s failed: %v", c.name, c.broken)
	case c.missing > 0:
		why = fmt.Sprintf("%s had no copy at %s (clock.by mirror)", olaf.Plural(c.missing, "update"), c.name)
	}
	to.Withheld = cmp.Or(why, to.Withheld)
}
