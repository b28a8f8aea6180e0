package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

func (s *sim) makeResult() (*Result, error) {
	if err := s.checkAccounts(); err != nil {
		return nil, err
	}
	r := s.measureRun()
	if err := r.setTotals(s.sumTotals(r.Values)); err != nil {
		return nil, err
	}
	for i := range s.ports {
		r.Ports = append(r.Ports, s.portResult(i, s.end, s.ports[i].up.Busy))
	}
	return r, nil
}

// measureRun closes the window and returns all measurements except the ports'.
func (s *sim) measureRun() *Result {
	m := &s.meter
	r := &Result{Topology: s.t.Name, Queue: s.t.Queue, Control: s.t.Control.Enabled, Seed: s.t.Seed,
		Window: m.window.String(),
		Time:   olaf.Duration(s.end), Events: s.events, LostPct: results.Missing(),
		Background: [2]uint64{m.backgroundSent, m.backgroundDelivered}}
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
	r.Values, r.swept = s.runValues(all, s.end), all.values(sweepStatistics)
	return r
}

// measureGroups measures all clusters, group by group, and adds them up in all.
func (s *sim) measureGroups(all *measured, cluster func(i int) *measured) []GroupResult {
	s.sumSent()
	out, groups := make([]GroupResult, len(s.groups)), make([]measured, len(s.groups))
	for i := range s.clusters {
		one, g := cluster(i), s.clusters[i].group
		all.addCluster(one)
		groups[g].addCluster(one)
		out[g].Clusters++
		out[g].Workers += int(s.clusters[i].workers)
	}
	for g := range groups {
		out[g].Group, out[g].Values = s.groups[g], groups[g].values(partStatistics)
	}
	all.tally[countAcks], all.tally[countAcksLost] = s.meter.acks, s.meter.acksLost
	return out
}

// measureCluster measures a cluster over a window, minus updates that were counted as sent too early. It calls visit
// with the age of each worker, missing if it has none.
func (s *sim) measureCluster(i int, w results.Window, early uint64,
	visit func(worker int32, age results.Float)) *measured {
	c, k := &s.clusters[i], &s.meter.clusters[i]
	out := &measured{tally: k.tally}
	out.Nameless = s.meter.nameless
	out.tally[countSent] -= early
	out.tally[countGenerated] -= early
	out.Clusters.Add(averageAge(k.age, w))
	out.Peaks.Add(k.peaks.MeanNS())
	var own metric.Series
	for j := c.firstWorker; j < c.firstWorker+c.workers; j++ {
		age := s.meter.workers[j].age
		if age.Deliveries() < 2 {
			out.Never++
		}
		mean := averageAge(age, w)
		own.Add(mean)
		visit(j, mean)
	}
	out.WorkerMeans.Add(own.Mean())
	return out
}

// averageAge returns the average of a sawtooth over a window, missing if there are too few deliveries.
func averageAge(age results.Age, w results.Window) results.Float {
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

// portResult returns a port's result at an instant; busy is its transmission time, both in ps.
func (s *sim) portResult(i int, now, busy int64) PortResult {
	p := &s.ports[i]
	sw := &s.t.Switches[p.from]
	m := portMeasured{p.output.Discipline().Stats(), &p.portState, busy, now}
	return PortResult{s.portName(i), s.t.queueOf(sw), sw.Slots, m.values()}
}
