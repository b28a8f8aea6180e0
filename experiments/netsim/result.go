package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// ClusterResult is one cluster.
type ClusterResult struct {
	Cluster int           `json:"cluster"`
	Group   string        `json:"group"`
	Values  metric.Values `json:"*"` // within the window
}

// GroupResult averages the clusters of a group.
type GroupResult struct {
	Group    string        `json:"group"`
	Clusters int           `json:"clusters"`
	Workers  int           `json:"workers"`
	Values   metric.Values `json:"*"` // within the window
}

// PortResult is one output port over the whole run, warm-up included.
type PortResult struct {
	Port   string        `json:"port"`
	Queue  string        `json:"queue"`
	Slots  int           `json:"slots"`
	Values metric.Values `json:"*"`
}

// WorkerResult is one worker.
type WorkerResult struct {
	Cluster, Worker int
	Share           float64 // its phase as a share of its period, 0 to below 1
	Sent, Received  uint32
	AoM             results.Float // ns
}

// Result is what one run measured.
type Result struct {
	Topology   string          `json:"topology"`
	Queue      string          `json:"queue"`
	Control    bool            `json:"transmission_control"`
	Seed       uint64          `json:"seed"`
	Window     string          `json:"aom_window"`
	Time       olaf.Duration   `json:"-"` // simulated, warm-up included
	Events     uint64          `json:"events"`
	Values     metric.Values   `json:"*"` // within the window; updates, ages in ns, and shares in per cent, as the names say
	Background [2]uint64       `json:"background_sent_delivered"`
	Groups     []GroupResult   `json:"groups"`
	Clusters   []ClusterResult `json:"clusters"`
	Ports      []PortResult    `json:"ports"`
	Workers    []WorkerResult  `json:"-"`
	// Totals is the account of the whole run, warm-up included, in which everything balances; the Values above are those
	// of the window.
	Totals olaf.Counts `json:"-"`

	swept metric.Values // what sweeps describe
}

// Of is a number of the run by its name, missing where there is none of that name.
func (r *Result) Of(name string) results.Float { return r.Values.Of(name) }

// MarshalJSON writes numbers by name among the other members, here and below.
func (r Result) MarshalJSON() ([]byte, error) { type plain Result; return metric.Inline(plain(r)) }
func (r GroupResult) MarshalJSON() ([]byte, error) {
	type plain GroupResult
	return metric.Inline(plain(r))
}
func (r ClusterResult) MarshalJSON() ([]byte, error) {
	type plain ClusterResult
	return metric.Inline(plain(r))
}
func (r PortResult) MarshalJSON() ([]byte, error) {
	type plain PortResult
	return metric.Inline(plain(r))
}

func (s *sim) result() (*Result, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	r := s.measure()
	r.Totals = s.totals()
	if err := r.Totals.Balance(); err != nil {
		return nil, err
	}
	for i := range s.ports {
		r.Ports = append(r.Ports, s.portResult(i, s.end, s.ports[i].busy))
	}
	return r, nil
}

// measure closes the window and takes everything but the ports.
func (s *sim) measure() *Result {
	m := &s.meter
	r := &Result{Topology: s.t.Name, Queue: s.t.Queue, Control: s.t.Control.Enabled, Seed: s.t.Seed, Window: m.window.String(),
		Time: olaf.Duration(s.end), Events: s.events, Background: [2]uint64{m.backgroundSent, m.backgroundDelivered}}
	all := new(measured)
	r.Groups = s.measureGroups(all, func(i int) *measured {
		c := &s.clusters[i]
		one := s.measureCluster(i, m.window, 0, func(j int32, age results.Float) {
			all.Workers.Add(age)
			if s.opt.Workers {
				r.Workers = append(r.Workers, s.workerResult(c, j, age))
			}
		})
		r.Clusters = append(r.Clusters, ClusterResult{int(c.id), s.groups[c.group], one.values(partStatistics)})
		return one
	})
	r.Values, r.swept = all.values(runStatistics), all.values(sweepStatistics)
	return r
}

// measureGroups takes all clusters, group by group, and adds them up in all.
func (s *sim) measureGroups(all *measured, cluster func(i int) *measured) []GroupResult {
	s.sumSent()
	out, groups := make([]GroupResult, len(s.groups)), make([]measured, len(s.groups))
	for i := range s.clusters {
		one, g := cluster(i), s.clusters[i].group
		all.take(one)
		groups[g].take(one)
		out[g].Clusters++
		out[g].Workers += int(s.clusters[i].workers)
	}
	for g := range groups {
		out[g].Group, out[g].Values = s.groups[g], groups[g].values(partStatistics)
	}
	all.tally[countAcks], all.tally[countAcksLost] = s.meter.acks, s.meter.acksLost
	return out
}

// measureCluster takes a cluster over a window, but for updates that are counted as sent too early, and calls visit with
// the age of each worker, missing where it has none.
func (s *sim) measureCluster(i int, w results.Window, early uint64, visit func(worker int32, age results.Float)) *measured {
	c, k := &s.clusters[i], &s.meter.clusters[i]
	out := &measured{tally: k.tally}
	out.tally[countSent] -= early
	out.tally[countGenerated] -= early
	out.Clusters.Add(averaged(k.age, w))
	out.Peaks.Add(k.peaks.MeanNS())
	var own metric.Series
	for j := c.firstWorker; j < c.firstWorker+c.workers; j++ {
		age := s.meter.workers[j].age
		if age.Deliveries() < 2 {
			out.Never++
		}
		mean := averaged(age, w)
		own.Add(mean)
		visit(j, mean)
	}
	out.WorkerMeans.Add(own.Mean())
	return out
}

// averaged is the average of a sawtooth over a window, missing where too little was delivered in it.
func averaged(age results.Age, w results.Window) results.Float {
	age.Close(w)
	if age.Deliveries() >= 2 || w.InitialAge >= 0 {
		return age.MeanNS()
	}
	return results.Missing()
}

func (s *sim) workerResult(c *cluster, i int32, age results.Float) WorkerResult {
	w := &s.workers[s.places[i]]
	share := 0.0
	if w.period > 0 {
		share = float64(w.offset%w.period) / float64(w.period)
	}
	return WorkerResult{int(c.id), int(i - c.firstWorker), share, w.sent, s.meter.workers[i].received, age}
}

// portResult is a port up to an instant, busy for a time.
func (s *sim) portResult(i int, now, busy int64) PortResult {
	p := &s.ports[i]
	sw := &s.t.Switches[p.from]
	m := portMeasured{p.output.Discipline().Stats(), &p.portState, busy, now}
	return PortResult{s.portName(i), s.t.queueOf(sw), sw.Slots, m.values()}
}
