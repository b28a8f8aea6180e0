package netsim

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
)

// Counts are updates within the window, unless a name says frames. docs/metrics.md and docs/experiments/multihop.md
// define the losses.
type Counts struct {
	Generated        uint64 `json:"generated"`
	Withheld         uint64 `json:"withheld"` // by transmission control
	Sent             uint64 `json:"sent"`
	DeliveredFrames  uint64 `json:"delivered_frames"`
	DeliveredUpdates uint64 `json:"delivered_updates"`
	Aggregated       uint64 `json:"aggregated"`
	Replaced         uint64 `json:"replaced"`
	DroppedFrames    uint64 `json:"dropped_frames"`
	DroppedUpdates   uint64 `json:"dropped_updates"`
}

func (c *Counts) add(t *tally) {
	c.Generated += t.generated
	c.Withheld += t.withheld
	c.Sent += t.sent
	c.DeliveredFrames += t.delivered
	c.DeliveredUpdates += t.updates
	c.Aggregated += t.aggregated
	c.Replaced += t.replaced
	c.DroppedFrames += t.droppedFrames
	c.DroppedUpdates += t.dropped
}

// Loss is what got lost, in per cent of what was sent.
type Loss struct {
	Packets  results.Float `json:"loss_packets_pct"`  // dropped frames over sent updates
	Updates  results.Float `json:"loss_updates_pct"`  // updates in dropped frames over sent updates
	Replaced results.Float `json:"loss_replaced_pct"` // subsumed by a newer one of the same worker
}

func (c *Counts) loss() Loss {
	share := func(n uint64) results.Float {
		if c.Sent == 0 {
			return results.Missing()
		}
		return results.Float(100 * float64(n) / float64(c.Sent))
	}
	return Loss{share(c.DroppedFrames), share(c.DroppedUpdates), share(c.Replaced)}
}

// Ages are time averages of the Age of Model, ns, under both readings.
type Ages struct {
	// Cluster takes one sawtooth per cluster, which any of its workers' deliveries resets.
	Cluster results.Float `json:"aom_cluster_ns"`
	// Worker takes one per worker, averaged within clusters and then over them.
	Worker results.Float `json:"aom_worker_ns"`
	Peak   results.Float `json:"peak_aom_ns"`
	// NeverDelivered counts workers with fewer than two deliveries in the window.
	NeverDelivered int `json:"never_delivered"`
}

// Fairness is Jain's index of ages.
type Fairness struct {
	Cluster     results.Float `json:"jain"`              // of the clusters' own sawtooths
	WorkerMeans results.Float `json:"jain_worker_means"` // of the clusters' mean worker ages
	Workers     results.Float `json:"jain_workers"`      // of all workers' ages
}

// ClusterResult is one cluster.
type ClusterResult struct {
	Cluster int    `json:"cluster"`
	Group   string `json:"group"`
	Counts
	Loss
	Ages
}

// GroupResult averages the clusters of a group.
type GroupResult struct {
	Group    string `json:"group"`
	Clusters int    `json:"clusters"`
	Workers  int    `json:"workers"`
	Counts
	Loss
	Ages
}

// PortResult is one output port over the whole run, warm-up included.
type PortResult struct {
	Port        string        `json:"port"`
	Queue       string        `json:"queue"`
	Slots       int           `json:"slots"`
	In          uint64        `json:"in"`
	Appended    uint64        `json:"appended"`
	Aggregated  uint64        `json:"aggregated"`
	Replaced    uint64        `json:"replaced"`
	Dropped     uint64        `json:"dropped"`
	Left        uint64        `json:"left"`
	Peak        int           `json:"peak_occupancy"`
	Utilisation results.Float `json:"utilisation"`
	LostOnLink  uint64        `json:"lost_on_link"`
	Bypass      uint64        `json:"bypass_dropped"`
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
	Topology string        `json:"topology"`
	Queue    string        `json:"queue"`
	Control  bool          `json:"transmission_control"`
	Seed     uint64        `json:"seed"`
	Window   string        `json:"aom_window"`
	Time     olaf.Duration `json:"-"` // simulated, warm-up included
	Events   uint64        `json:"events"`
	Counts
	Loss
	Ages
	Fairness
	Acks       uint64          `json:"acks"`
	AcksLost   uint64          `json:"acks_lost"`
	Background [2]uint64       `json:"background_sent_delivered"`
	Groups     []GroupResult   `json:"groups"`
	Clusters   []ClusterResult `json:"clusters"`
	Ports      []PortResult    `json:"ports"`
	Workers    []WorkerResult  `json:"-"`
	// Totals is the account of the whole run, warm-up included, in which everything balances; the Counts above are those
	// of the window.
	Totals olaf.Counts `json:"-"`
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
		r.Ports = append(r.Ports, s.portResult(i, s.end))
	}
	return r, nil
}

// measure closes the window and takes everything but the ports.
func (s *sim) measure() *Result {
	s.sumSent()
	m := &s.meter
	r := &Result{Topology: s.t.Name, Queue: s.t.Queue, Control: s.t.Control.Enabled, Seed: s.t.Seed, Window: m.window.String(),
		Time: olaf.Duration(s.end), Events: s.events, Acks: m.acks, AcksLost: m.acksLost,
		Background: [2]uint64{m.backgroundSent, m.backgroundDelivered}}
	ofGroup := make([][]ClusterResult, len(s.groups))
	var workerAges []results.Float
	for i := range s.clusters {
		c := s.clusterResult(i, r, &workerAges)
		r.Clusters = append(r.Clusters, c)
		g := s.clusters[i].group
		ofGroup[g] = append(ofGroup[g], c)
	}
	for g, name := range s.groups {
		r.Groups = append(r.Groups, s.groupResult(name, g, ofGroup[g]))
	}
	r.Ages = meanAges(r.Clusters)
	r.Loss = r.Counts.loss()
	r.Fairness = Fairness{
		results.Jain(pick(r.Clusters, func(c *ClusterResult) results.Float { return c.Ages.Cluster })),
		results.Jain(pick(r.Clusters, func(c *ClusterResult) results.Float { return c.Ages.Worker })),
		results.Jain(workerAges),
	}
	return r
}

func (s *sim) clusterResult(i int, r *Result, workerAges *[]results.Float) ClusterResult {
	c, k := &s.clusters[i], &s.meter.clusters[i]
	out := ClusterResult{Cluster: int(c.id), Group: s.groups[c.group]}
	out.Counts.add(&k.tally)
	r.Counts.add(&k.tally)
	out.Loss = out.Counts.loss()
	w := s.meter.window
	k.age.Close(w)
	out.Ages.Cluster, out.Peak = results.Missing(), k.peaks.MeanNS()
	if k.age.Deliveries() >= 2 || w.InitialAge >= 0 {
		out.Ages.Cluster = k.age.MeanNS()
	}
	var own []results.Float
	for j := c.firstWorker; j < c.firstWorker+c.workers; j++ {
		wm, wk := &s.meter.workers[j], &s.workers[s.places[j]]
		wm.age.Close(w)
		age := results.Missing()
		if wm.age.Deliveries() < 2 {
			out.NeverDelivered++
		}
		if wm.age.Deliveries() >= 2 || w.InitialAge >= 0 {
			age = wm.age.MeanNS()
			own = append(own, age)
			*workerAges = append(*workerAges, age)
		}
		if s.opt.Workers {
			share := 0.0
			if wk.period > 0 {
				share = float64(wk.offset%wk.period) / float64(wk.period)
			}
			r.Workers = append(r.Workers, WorkerResult{int(c.id), int(j - c.firstWorker), share, wk.sent, wm.received, age})
		}
	}
	out.Ages.Worker = mean(own)
	return out
}

func (s *sim) groupResult(name string, g int, clusters []ClusterResult) GroupResult {
	out := GroupResult{Group: name, Clusters: len(clusters), Ages: meanAges(clusters)}
	for i := range s.clusters {
		if int(s.clusters[i].group) == g {
			out.Workers += int(s.clusters[i].workers)
			out.Counts.add(&s.meter.clusters[i].tally)
		}
	}
	out.Loss = out.Counts.loss()
	return out
}

// portResult is a port up to an instant.
func (s *sim) portResult(i int, now int64) PortResult {
	p := &s.ports[i]
	st := p.output.Discipline().Stats()
	sw := &s.t.Switches[p.from]
	return PortResult{
		Port: s.portName(i), Queue: s.t.queueOf(sw), Slots: sw.Slots, In: st.In(), Appended: st.Class[engine.Appended],
		Aggregated: st.Class[engine.Aggregated], Replaced: st.Class[engine.Replaced] + st.Class[engine.ReplacedReward],
		Dropped: st.Class[engine.DroppedFull] + st.Class[engine.DroppedReward] + st.Class[engine.DroppedMismatch],
		Left:    st.Released, Peak: st.PeakOccupancy, Utilisation: results.Float(float64(p.busy) / float64(now)),
		LostOnLink: p.framesLost, Bypass: p.bypassDropped,
	}
}

func meanAges(clusters []ClusterResult) Ages {
	var a Ages
	a.Cluster = mean(pick(clusters, func(c *ClusterResult) results.Float { return c.Ages.Cluster }))
	a.Worker = mean(pick(clusters, func(c *ClusterResult) results.Float { return c.Ages.Worker }))
	a.Peak = mean(pick(clusters, func(c *ClusterResult) results.Float { return c.Peak }))
	for i := range clusters {
		a.NeverDelivered += clusters[i].NeverDelivered
	}
	return a
}

// pick lists a number of every cluster that has it.
func pick(clusters []ClusterResult, of func(*ClusterResult) results.Float) []results.Float {
	var out []results.Float
	for i := range clusters {
		if v := of(&clusters[i]); v.Known() {
			out = append(out, v)
		}
	}
	return out
}

func mean(values []results.Float) results.Float {
	if len(values) == 0 {
		return results.Missing()
	}
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	return results.Float(sum / float64(len(values)))
}
