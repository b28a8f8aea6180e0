package netsim

import (
	"fmt"
	"math"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/node"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/program"
)

// Open is how workers go about it who send without waiting to switches that add up.
const Open = "open"

// station is a switch that workers hang on, where switches have a program: it adds up what they send before a port has it, and what
// comes from other switches passes on.
type station struct {
	node.Switch
	front    *aggregator.Aggregator // nil where no worker hangs
	sim      *sim
	at       int32
	clusters int    // as many as the highest id of those that hang here says
	vectors  int    // place of what was added among the program's counts
	merged   uint64 // updates inside of sums beside the first
	refused  uint64 // updates that were not added
}

// adding is the system whose switches add up. The error matches system.ErrUnknown.
func (t *Topology) adding() (*system.System, error) { return t.systems.Adding().Find(t.Program) }

// AddUp puts the program of s into the switches, and workers that do not wait on them. A sum holds as many updates as the first cluster
// has workers until H says otherwise.
func (t *Topology) AddUp(s *system.System) {
	t.Queue, t.Waiting, t.Program, t.H = s.Discipline, nil, s.Name, 1
	if len(t.Clusters) > 0 {
		t.H = max(t.Clusters[0].Workers, 1)
	}
}

// Sums says what switches do with updates on their way, "" where they pass them on.
func (t *Topology) Sums() string {
	if t.Program == "" {
		return ""
	}
	return fmt.Sprintf("%s, sums of %d", t.Program, t.H)
}

// program refuses what can be told without the network.
func (c *checker) program() {
	t := c.t
	if t.Program == "" {
		if t.H != 0 {
			c.fail(t.Pos, "h", "h is %d, but switches have no program that adds up; add program: %s", t.H, strings.Join(t.systems.Adding().Names(), " or "))
		}
		return
	}
	s, err := t.adding()
	if err != nil {
		c.errs = append(c.errs, t.locate(t.Pos, "program", err))
		return
	}
	if t.Waiting != nil {
		c.fail(t.Pos, "program", "switches add up for workers that do not wait, but those of %s wait; leave out program or waiting", t.Waiting.System)
	}
	if t.H < 1 || t.H > math.MaxUint16 {
		c.fail(t.Pos, "h", "h is %d; a sum has 1 to %d updates", t.H, math.MaxUint16)
	}
	if t.Queue != s.Discipline {
		c.fail(t.Pos, "queue", "ports of %s are %s, not %s", s.Name, s.Discipline, t.Queue)
	}
	for i := range t.Switches {
		if sw := &t.Switches[i]; t.queueOf(sw) != t.Queue {
			c.fail(sw.Pos, "queue", "ports of %s are %s, not %s", s.Name, s.Discipline, sw.Queue)
		}
	}
}

// addPrograms gives every switch that workers hang on the program.
func (n *network) addPrograms(t *Topology) error {
	if t.Program == "" {
		return nil
	}
	s, err := t.adding()
	if err != nil {
		return err
	}
	n.stations = make([]station, n.switches)
	for i := range n.trees {
		tr := &n.trees[i]
		for _, at := range tr.attached {
			st := &n.stations[at]
			st.at, st.clusters = at, max(st.clusters, tr.spec.ID+tr.spec.count())
		}
	}
	for i := range n.stations {
		if st := &n.stations[i]; st.clusters > 0 {
			if err := st.install(s.Program, t.H); err != nil {
				return t.locate(t.Pos, "program", err)
			}
		}
	}
	return nil
}

// install makes the switch's program, in front of its ports.
func (st *station) install(d *program.Description, h int) error {
	own := *d
	own.New = func(cfg program.Config) (p program.Program, err error) {
		st.Program, err = d.New(cfg)
		return &st.Switch, err
	}
	st.vectors = d.Ledger.Index("vectors_in")
	var err error
	st.front, err = aggregator.New(&own, aggregator.Config{Clusters: st.clusters, H: h, Up: st.leave})
	return err
}

// reach presents an update of a worker to the switch that it hangs on, on its way out of a port.
func (s *sim) reach(to, c int32, u *olaf.Update) {
	if s.stations == nil {
		s.offer(to, c, u, nil)
		return
	}
	st := &s.stations[s.ports[to].from]
	before := st.Counts()[st.vectors]
	st.front.Offer(olaf.Time(s.now), u, 0, nil)
	if st.Counts()[st.vectors] == before {
		st.refused++
		s.meter.dropped(c, u, s.now)
	}
}

// leave takes a sum to a port.
func (st *station) leave(_ olaf.Time, u *olaf.Update, _ []int32, inside []olaf.Contributor) {
	s := st.sim
	c := s.byID[u.Cluster]
	for range u.Count - 1 {
		st.merged++
		s.meter.merged(c, engine.Aggregated, s.now)
	}
	s.offer(s.toward(s.clusters[c].server, st.at), c, u, inside)
}

// held is how many updates are inside of partial sums.
func (st *station) held() uint64 {
	if st.front == nil {
		return 0
	}
	return st.Counts()[st.vectors-program.VectorsIn+program.VectorsHeld]
}

// audit says what a program's own account leaves open.
func (s *sim) audit() error {
	if s.stations == nil {
		return nil
	}
	of, err := s.t.adding()
	if err != nil {
		return err
	}
	for i := range s.stations {
		if st := &s.stations[i]; st.front != nil {
			if err := of.Program.CountsOf(st).Balance(); err != nil {
				return fmt.Errorf("switch %s: %w", s.names[i], err)
			}
		}
	}
	return nil
}
