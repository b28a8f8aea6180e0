package realtime

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
)

// witness reads the plane's decision log and lets the engine make the same decisions, for comparison.
type witness struct {
	replayer *dataplane.Replayer
	arrivals []dataplane.Decision
	beyond   uint64 // number of arrivals beyond keptArrivals
}

// maxArrivals limits the number of stored arrivals, so that memory is bounded if the queue is never enabled again.
const maxArrivals = 1 << 22

// reset discards earlier decisions and creates an engine for the given configuration.
func (w *witness) reset(discipline string, q queueConfig) (err error) {
	w.arrivals, w.beyond = w.arrivals[:0], 0
	w.replayer, err = dataplane.NewReplayer(discipline, q.engineConfig())
	return err
}

func (w *witness) addDecision(d *dataplane.Decision) {
	w.replayer.Add(d)
	switch {
	case d.Kind != dataplane.Arrival:
	case len(w.arrivals) < maxArrivals:
		w.arrivals = append(w.arrivals, *d)
	default:
		w.beyond++
	}
}

// readDecisions reads the decisions since its previous call. It does not lock, because the pacer would have to wait
// whenever this thread is not running. It may therefore only be called by the thread that changes the plane.
func (c *Card) readDecisions() error {
	if c.plane == nil || c.witness.replayer == nil {
		return nil
	}
	return c.plane.Decisions(c.witness.addDecision)
}

// Decisions compares the plane's decisions since the queue was enabled with those of the engine.
func (c *Card) Decisions() (*olaf.Decisions, error) {
	if err := c.latchPlane(false); err != nil {
		return nil, err
	}
	if err := c.readDecisions(); err != nil {
		return nil, err
	}
	x := c.viewState() // state at an instant; under traffic more decisions may follow
	if err := c.readDecisions(); err != nil {
		return nil, err
	}
	found := c.witness.replayer.Compare(x.Number)
	d := &olaf.Decisions{Checked: int64(found.Checked), Equal: int64(found.Equal), First: found.First, Void: found.Void}
	if n := c.total.unlogged; n > 0 {
		d.Void = fmt.Sprintf("the log had no room for %d decisions", n)
	}
	return d, nil
}

// Unlogged returns the number of decisions for which the log had no room since the counters were cleared. Decisions
// after the first of these are not checked.
func (c *Card) Unlogged() uint64 { return c.total.unlogged }

// Pacing returns the timing of departures since the counters were cleared.
func (c *Card) Pacing() *fpga.Pacing { return c.pacing() }

func (c *Card) pacing() *fpga.Pacing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pacer.stats.report(c.generator.zero.Load())
}

// Arrivals returns the updates that arrived since the queue was enabled, in the order of the queue's decisions.
func (c *Card) Arrivals() ([]fpga.Arrival, error) {
	if err := c.readDecisions(); err != nil {
		return nil, err
	}
	w, zero := &c.witness, c.generator.zero.Load()
	if w.beyond > 0 {
		return nil, fmt.Errorf("%w: %d arrivals were not recorded, because there were more than %d", fpga.ErrDoubtful,
			w.beyond,
			maxArrivals)
	}
	out := make([]fpga.Arrival, len(w.arrivals))
	last := int64(0)
	for i := range w.arrivals {
		d := &w.arrivals[i]
		last = max(last, int64(d.AtNS)-zero) // the order of clock readings may differ from the order of decisions
		out[i] = fpga.Arrival{At: olaf.Time(last) * olaf.Time(olaf.Nanosecond), Update: d.Update}
	}
	return out, nil
}

// Faults returns further reasons why a run must not be used, with root causes first. These are cables that are missing
// or down, detached programs, and frames that were rejected by an interface or lost on a cable.
func (c *Card) Faults() (faults []string) {
	if err := c.CheckIntact(); err != nil {
		faults = append(faults, err.Error())
	}
	for _, cable := range c.allCables() {
		for _, end := range cable.Ends() {
			if s, err := end.State(); err == nil && !s.Up {
				faults = append(faults, fmt.Sprintf("the cable %s is down at %s", c.nameOf(cable), end.Node.Name()))
			}
		}
	}
	if _, err := c.generator.readCounters(false); err != nil {
		faults = append(faults, fmt.Sprintf("the workers' interface rejected frames: %v", err))
	}
	c.mu.Lock()
	unsent, err := c.pacer.stats.unsent, c.pacer.stats.firstErr
	c.mu.Unlock()
	if unsent > 0 {
		faults = append(faults, fmt.Sprintf("the interface towards the server rejected %s: %v",
			olaf.Plural(unsent, "frame"), err))
	}
	for _, cable := range c.allCables() { // redirecting a frame to a peer without a listener loses it without an error
		if lost, err := c.inFlightOn(cable); err == nil && lost != 0 {
			faults = append(faults, fmt.Sprintf("%s did not get from %s to %s", olaf.Plural(lost, "frame"),
				cable.A.Node.Name(), cable.B.Node.Name()))
		}
	}
	return faults
}

// allCables returns all cables, with the server's cable last.
func (c *Card) allCables() []*netlab.Cable { return append(slices.Clone(c.in), c.out) }

// CheckIntact returns an error if a cable or a program is missing. The error matches fpga.ErrGone for a cable and
// fpga.ErrDoubtful for a program.
func (c *Card) CheckIntact() error {
	for _, cable := range c.allCables() {
		for _, end := range cable.Ends() {
			if _, err := end.State(); err != nil {
				return c.goneError(cable)
			}
		}
	}
	return c.CheckAttached()
}

func (c *Card) goneError(cable *netlab.Cable) error {
	return fmt.Errorf("%w: the cable %s was removed during the run", fpga.ErrGone, c.nameOf(cable))
}
