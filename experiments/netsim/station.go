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

// Open is the mode of open-loop workers on switches that add.
const Open = "open"

// station is a switch with workers and a program: it adds their updates before they reach a port, and forwards packets
// from other switches.
type station struct {
	node.Switch
	front    *aggregator.Aggregator // nil without workers
	sim      *sim
	at       int32
	clusters int    // highest cluster id of its workers, plus one
	vectors  int    // index of the number of added updates in the program's counts
	merged   uint64 // updates in sums, except the first of each
	refused  uint64 // updates not added
}

// addingSystem returns the system of the switches' program. The error matches system.ErrUnknown.
func (t *Topology) addingSystem() (*system.System, error) { return t.systems.Adding().Find(t.Program) }

// AddUp sets the switches' program to s's, with open-loop workers. H becomes the number of workers in the first
// cluster.
func (t *Topology) AddUp(s *system.System) {
	t.Queue, t.Waiting, t.Program, t.H = s.Discipline, nil, s.Name, 1
	if len(t.Clusters) > 0 {
		t.H = max(t.Clusters[0].Workers, 1)
	}
}

// DescribeSums describes how switches add updates, or returns "" if they only forward.
func (t *Topology) DescribeSums() string {
	if t.Program == "" {
		return ""
	}
	return fmt.Sprintf("%s, sums of %d", t.Program, t.H)
}

// checkProgram checks the program without the network.
func (c *checker) checkProgram() {
	t := c.t
	if t.Program == "" {
		if t.H != 0 {
			c.addError(t.Pos, "h", "h is %d, but switches have no program that adds up; add program: %s", t.H,
				strings.Join(t.systems.Adding().Names(), " or "))
		}
		return
	}
	s, err := t.addingSystem()
	if err != nil {
		c.errs = append(c.errs, t.locateError(t.Pos, "program", err))
		return
	}
	if t.Waiting != nil {
		c.addError(t.Pos, "program", "switches add up for workers that do not wait, but those of %s wait; leave "+
			"out program or waiting", t.Waiting.System)
	}
	if t.H < 1 || t.H > math.MaxUint16 {
		c.addError(t.Pos, "h", "h is %d; a sum has 1 to %d updates", t.H, math.MaxUint16)
	}
	if t.Queue != s.Discipline {
		c.addError(t.Pos, "queue", "ports of %s are %s, not %s", s.Name, s.Discipline, t.Queue)
	}
	for i := range t.Switches {
		if sw := &t.Switches[i]; t.queueOf(sw) != t.Queue {
			c.addError(sw.Pos, "queue", "ports of %s are %s, not %s", s.Name, s.Discipline, sw.Queue)
		}
	}
}

// addPrograms installs the program on every switch with workers.
func (n *network) addPrograms(t *Topology) error {
	if t.Program == "" {
		return nil
	}
	s, err := t.addingSystem()
	if err != nil {
		return err
	}
	n.stations = make([]station, n.switches)
	for i := range n.trees {
		tr := &n.trees[i]
		for _, at := range tr.attached {
			st := &n.stations[at]
			st.at, st.clusters = at, max(st.clusters, tr.spec.ID+tr.spec.clusterCount())
		}
	}
	for i := range n.stations {
		if st := &n.stations[i]; st.clusters > 0 {
			if err := st.installProgram(s.Program, t.H); err != nil {
				return t.locateError(t.Pos, "program", err)
			}
		}
	}
	return nil
}

// installProgram creates the switch's program, which precedes its ports.
func (st *station) installProgram(d *program.Description, h int) error {
	own := *d
	own.New = func(cfg program.Config) (p program.Program, err error) {
		st.Program, err = d.New(cfg)
		return &st.Switch, err
	}
	st.vectors = d.Ledger.Index("vectors_in")
	var err error
	st.front, err = aggregator.New(&own, aggregator.Config{Clusters: st.clusters, H: h, Up: st.offerSum})
	return err
}

// reachSwitch delivers a worker's update to its switch, for output on a port.
func (s *sim) reachSwitch(to, c int32, u *olaf.Update) {
	if s.stations == nil {
		s.offerUpdate(to, c, u, nil)
		return
	}
	st := &s.stations[s.ports[to].from]
	before := st.Counts()[st.vectors]
	st.front.Offer(olaf.Time(s.now), u, 0, nil)
	if st.Counts()[st.vectors] == before {
		st.refused++
		s.meter.countDrop(c, u, s.now)
	}
}

// offerSum offers a sum to a port.
func (st *station) offerSum(_ olaf.Time, u *olaf.Update, _ []int32, inside []olaf.Contributor) {
	s := st.sim
	c := s.byID[u.Cluster]
	for range u.Count - 1 {
		st.merged++
		s.meter.countMerge(c, engine.Aggregated, s.now)
	}
	s.offerUpdate(s.portToward(s.clusters[c].server, st.at), c, u, inside)
}

// countHeld returns the number of updates in partial sums.
func (st *station) countHeld() uint64 {
	if st.front == nil {
		return 0
	}
	return st.Counts()[st.vectors-program.VectorsIn+program.VectorsHeld]
}

// auditPrograms checks the programs' own accounts.
func (s *sim) auditPrograms() error {
	if s.stations == nil {
		return nil
	}
	of, err := s.t.addingSystem()
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
