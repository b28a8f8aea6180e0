package play

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/p4ctl"
)

// idle is the cluster of all hosts that have no job at the switch.
const idle olaf.ClusterID = 0

// Segment is the range of a job's aggregators in a switch. Cluster is the cluster and the multicast group of the job's
// hosts.
type Segment struct {
	Job     string         `json:"job"`
	Cluster olaf.ClusterID `json:"cluster"`
	First   int            `json:"first"`
	Size    int            `json:"size"`
	Hosts   []netip.Addr   `json:"hosts"`
}

// Orders contains the configuration of one switch in one slot.
type Orders struct {
	Tables   p4ctl.Tables
	Segments []Segment
	Idle     int // idle hosts
}

// MakeUpHosts returns tables for a device that has none, for trying out a plan. They contain the given number of idle
// hosts in a unit, each behind a different port.
func MakeUpHosts(unit, hosts int) (p4ctl.Tables, error) {
	if hosts < 1 || hosts > 4096 {
		return p4ctl.Tables{}, fmt.Errorf("%w: %d hosts; 1 to 4096", ErrPlay, hosts)
	}
	t := p4ctl.Tables{}
	for i := range hosts {
		var err error
		w := p4ctl.Worker{Address: netip.AddrFrom4([4]byte{10, byte(1 + unit%255), byte(i / 250), byte(1 + i%250)}),
			Cluster: idle, ID: olaf.WorkerID(i)}
		if t, err = t.Add(uint32(i+1), w); err != nil {
			return t, err
		}
	}
	return t, nil
}

// PlanOrders returns the configuration of a unit's switch in a slot. Each host that works for a job aggregated by the
// switch is in the job's cluster, and its port is in the cluster's multicast group. The hosts are those in the switch's
// tables, and a host keeps its job as long as the job lasts. Aggregators are divided evenly among the unit's places.
//
// For each job, the program's tables contain the job's aggregators and the number of workers that complete a sum; the
// group lists the workers. The error matches ErrPlay.
func PlanOrders(plan *sched.Plan, unit string, slot int, hosts p4ctl.Tables) (*Orders, error) {
	at := slices.IndexFunc(plan.Problem.Units, func(u sched.Unit) bool { return u.Name == unit })
	switch {
	case at < 0:
		return nil, fmt.Errorf("%w: there is no unit %q in it; there are %s", ErrPlay, unit,
			strings.Join(unitNames(plan.Problem), ", "))
	case slot < 0 || slot >= plan.Slots:
		return nil, fmt.Errorf("%w: slot %d; it has slots 0 to %d", ErrPlay, slot, plan.Slots-1)
	}
	places := plan.Problem.Units[at].INC
	held := placesOf(plan, unit, slot)
	if len(held) > places {
		return nil, fmt.Errorf("%w: the switch of %s is to aggregate for %d jobs in slot %d and can for %d", ErrPlay,
			unit, len(held), slot, places)
	}
	o := &Orders{Tables: hosts.Canonical()}
	wanted := 0
	for _, h := range held {
		wanted += h.workers
	}
	if n := len(hosts.Workers); wanted > n {
		return nil, fmt.Errorf("%w: the jobs of %s in slot %d have %d workers, and the tables of the switch know "+
			"%d hosts: it is a plan for another network, or hosts are missing", ErrPlay, unit, slot, wanted, n)
	}
	taken, err := o.assignHosts(held)
	if err != nil {
		return nil, err
	}
	if err := o.makeIdle(taken); err != nil {
		return nil, err
	}
	size := p4inc.DefaultSlots / max(1, places)
	for _, h := range held {
		s := Segment{Job: h.job, Cluster: h.cluster, First: h.place * size, Size: size}
		for _, w := range o.Tables.Workers {
			if w.Cluster == h.cluster {
				s.Hosts = append(s.Hosts, w.Address)
			}
		}
		o.Segments = append(o.Segments, s)
	}
	if err := o.removeEmpty(); err != nil {
		return nil, err
	}
	return o, o.writeEntries()
}

// makeIdle moves all hosts that are not taken to the idle cluster.
func (o *Orders) makeIdle(taken map[netip.Addr]bool) error {
	for _, w := range o.Tables.Workers {
		if taken[w.Address] {
			continue
		}
		o.Idle++
		var err error
		if o.Tables, err = o.Tables.Move(idle, w.Address); err != nil {
			return fmt.Errorf("%w: %w", ErrPlay, err)
		}
	}
	return nil
}

// writeEntries writes the segments into the program's tables and removes the entries of other jobs.
func (o *Orders) writeEntries() error {
	d := p4inc.Describe()
	jobs := make([]program.Job, len(o.Segments))
	for i, s := range o.Segments {
		jobs[i] = program.Job{ID: s.Cluster, Fan: len(s.Hosts), Base: s.First, Slots: s.Size}
	}
	entries, err := p4ctl.EntriesOf(&d, jobs...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPlay, err)
	}
	o.Tables.Entries = append(slices.DeleteFunc(o.Tables.Entries,
		func(e p4ctl.Entry) bool { return e.Table.Program.Code == d.Code }), entries...)
	o.Tables = o.Tables.Canonical()
	return nil
}

// assignHosts gives every job as many hosts as it has workers. It prefers the hosts that the job already has over
// unused hosts.
func (o *Orders) assignHosts(held []holding) (taken map[netip.Addr]bool, err error) {
	taken = map[netip.Addr]bool{}
	take := func(h *holding, mine func(p4ctl.Worker) bool) {
		for _, w := range o.Tables.Workers {
			if len(h.hosts) < h.workers && !taken[w.Address] && mine(w) {
				taken[w.Address] = true
				h.hosts = append(h.hosts, w.Address)
			}
		}
	}
	for k := range held {
		take(&held[k], func(w p4ctl.Worker) bool { return w.Cluster == held[k].cluster })
	}
	for k := range held {
		take(&held[k], func(p4ctl.Worker) bool { return true })
		if o.Tables, err = o.Tables.Move(held[k].cluster, held[k].hosts...); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrPlay, err)
		}
	}
	return taken, nil
}

// removeEmpty removes the clusters that no longer have hosts.
func (o *Orders) removeEmpty() (err error) {
	left := map[olaf.ClusterID]bool{}
	for _, w := range o.Tables.Workers {
		left[w.Cluster] = true
	}
	for _, c := range o.Tables.Canonical().Clusters {
		if !left[c.ID] {
			if o.Tables, err = o.Tables.RemoveCluster(c.ID); err != nil {
				return fmt.Errorf("%w: %w", ErrPlay, err)
			}
		}
	}
	return nil
}

func unitNames(p *sched.Problem) []string {
	return olaf.Map(p.Units, func(u sched.Unit) string { return u.Name })
}

// holding is a job that occupies a place in a switch.
type holding struct {
	job     string
	cluster olaf.ClusterID
	workers int
	place   int
	hosts   []netip.Addr
}

// placesOf returns the jobs that occupy a place in a unit's switch in a slot, in the order of the places. A job gets
// the lowest free place and keeps it from its first slot to its last.
func placesOf(plan *sched.Plan, unit string, slot int) []holding {
	workers := map[string]int{}
	for i := range plan.Problem.Jobs {
		j := &plan.Problem.Jobs[i]
		workers[j.ID] = j.Workers[unit]
	}
	var now []holding
	for i := 0; i <= slot; i++ {
		now = slices.DeleteFunc(now, func(h holding) bool {
			a := &plan.Jobs[h.cluster-1]
			return a.Start+len(a.Rates) <= i
		})
		for k := range plan.Jobs {
			a := &plan.Jobs[k]
			if a.INC != unit || a.Start != i || len(a.Rates) == 0 {
				continue
			}
			place := 0
			for slices.ContainsFunc(now, func(h holding) bool { return h.place == place }) {
				place++
			}
			now = append(now, holding{job: a.Job, cluster: olaf.ClusterID(k + 1), workers: workers[a.Job],
				place: place})
		}
	}
	slices.SortFunc(now, func(a, b holding) int { return a.place - b.place })
	return now
}
