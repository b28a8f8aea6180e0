package realtime

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/xdp"
)

// witness takes up what the plane logs, and lets the engine decide the same.
type witness struct {
	replayer *xdp.Replayer
	arrivals []xdp.Decision
	beyond   uint64 // arrivals that were not kept
}

// keptArrivals bounds the memory of a queue that is never enabled anew.
const keptArrivals = 1 << 22

// begin forgets what was decided before.
func (w *witness) begin(discipline string, q queueConfig) (err error) {
	w.arrivals, w.beyond = w.arrivals[:0], 0
	w.replayer, err = xdp.NewReplayer(discipline, q.engine())
	return err
}

func (w *witness) take(d *xdp.Decision) {
	w.replayer.Add(d)
	switch {
	case d.Kind != xdp.Arrival:
	case len(w.arrivals) < keptArrivals:
		w.arrivals = append(w.arrivals, *d)
	default:
		w.beyond++
	}
}

// listen takes up what was decided since the last time. It takes no lock, which the pacer would wait for while this thread does
// not run: whoever changes the plane is who listens.
func (c *Card) listen() error {
	if c.plane == nil || c.witness.replayer == nil {
		return nil
	}
	return c.plane.Decisions(c.witness.take)
}

// Decisions compares what was decided since the queue was enabled with the engine.
func (c *Card) Decisions() (*olaf.Decisions, error) {
	if err := c.latch(false); err != nil {
		return nil, err
	}
	if err := c.listen(); err != nil {
		return nil, err
	}
	x := c.state() // of an instant when the log was read; more may be decided meanwhile where traffic goes on
	if err := c.listen(); err != nil {
		return nil, err
	}
	found := c.witness.replayer.Compare(x.Number)
	d := &olaf.Decisions{Checked: int64(found.Checked), Equal: int64(found.Equal), First: found.First, Void: found.Void}
	if n := c.total.unlogged; n > 0 {
		d.Void = fmt.Sprintf("the log had no room for %d decisions", n)
	}
	return d, nil
}

// Unlogged is how many decisions found no room in the log since the counters were cleared: of what came after the first of them nothing is
// checked.
func (c *Card) Unlogged() uint64 { return c.total.unlogged }

// Pacing is how well frames left in time since the counters were cleared.
func (c *Card) Pacing() *fpga.Pacing { return c.pacing() }

func (c *Card) pacing() *fpga.Pacing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pacer.stats.tell(c.generator.zero.Load())
}

// Arrivals are the updates since the queue was enabled, in the order in which it decided.
func (c *Card) Arrivals() ([]fpga.Arrival, error) {
	if err := c.listen(); err != nil {
		return nil, err
	}
	w, zero := &c.witness, c.generator.zero.Load()
	if w.beyond > 0 {
		return nil, fmt.Errorf("%w: %d arrivals are not kept, as there were more than %d", fpga.ErrDoubtful, w.beyond,
			keptArrivals)
	}
	out := make([]fpga.Arrival, len(w.arrivals))
	last := int64(0)
	for i := range w.arrivals {
		d := &w.arrivals[i]
		last = max(last, int64(d.AtNS)-zero) // processors may have read the clock in another order
		out[i] = fpga.Arrival{At: olaf.Time(last) * olaf.Time(olaf.Nanosecond), Update: d.Update}
	}
	return out, nil
}

// Faults are other reasons why a run must not be used, what explains the others first: cables that are gone or down, programs that were taken off,
// frames that an interface refused, or that were lost on a cable.
func (c *Card) Faults() (faults []string) {
	if err := c.Intact(); err != nil {
		faults = append(faults, err.Error())
	}
	for _, cable := range c.cables() {
		for _, end := range cable.Ends() {
			if s, err := end.State(); err == nil && !s.Up {
				faults = append(faults, fmt.Sprintf("the cable %s is down at %s", c.nameOf(cable), end.Node.Name()))
			}
		}
	}
	if _, err := c.generator.counted(false); err != nil {
		faults = append(faults, fmt.Sprintf("the workers' interface refused frames: %v", err))
	}
	c.mu.Lock()
	unsent, err := c.pacer.stats.unsent, c.pacer.stats.firstErr
	c.mu.Unlock()
	if unsent > 0 {
		faults = append(faults, fmt.Sprintf("the interface towards the server refused %s: %v",
			olaf.Plural(unsent, "frame"), err))
	}
	for _, cable := range c.cables() { // a redirect to a peer that does not listen loses frames without a word
		if lost, err := c.underway(cable); err == nil && lost != 0 {
			faults = append(faults, fmt.Sprintf("%s did not get from the %s to the %s", olaf.Plural(lost, "frame"),
				cable.A.Node.Name(), cable.B.Node.Name()))
		}
	}
	return faults
}

// cables are all of them, the server's last.
func (c *Card) cables() []*netlab.Cable { return append(slices.Clone(c.in), c.out) }

// Intact says whether all cables are there, with the programs on them. The error matches fpga.ErrGone of a cable, fpga.ErrDoubtful of a program.
func (c *Card) Intact() error {
	for _, cable := range c.cables() {
		for _, end := range cable.Ends() {
			if _, err := end.State(); err != nil {
				return c.gone(cable)
			}
		}
	}
	return c.Attached()
}

func (c *Card) gone(cable *netlab.Cable) error {
	return fmt.Errorf("%w: the cable %s was taken away in the middle of the run", fpga.ErrGone, c.nameOf(cable))
}
