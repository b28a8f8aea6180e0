package monitor

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
)

// session is a collector for the state of a live session.
type session struct {
	look                        func() *slowmotion.Snapshot
	time, occupancy, count, aom *prometheus.Desc
}

// AddSession adds metrics for a live session. look must be safe for concurrent use.
func (m *Monitor) AddSession(look func() *slowmotion.Snapshot) {
	if m == nil {
		return
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "live", name), help, labels, nil)
	}
	m.registry.MustRegister(&session{
		look:      look,
		time:      desc("time_seconds", "device time since the start"),
		occupancy: desc("queue_occupancy", "updates inside the queue", "queue"),
		count:     desc("queue_counted", "counters of the queue so far, by their names in documents", "queue", "counter"),
		aom: desc("queue_aom_seconds",
			"mean Age of Model over clusters, each from its first delivery to its last so far", "queue", "reading"),
	})
}

func (s *session) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.time, s.occupancy, s.count, s.aom} {
		ch <- d
	}
}

func (s *session) Collect(ch chan<- prometheus.Metric) {
	now := s.look()
	if now == nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(s.time, olaf.Duration(now.Now).Seconds())
	for i := range now.Queues {
		q := &now.Queues[i]
		gauge(s.occupancy, float64(q.Occupancy), q.Name)
		for _, c := range q.Counters.Ledger().Counters {
			gauge(s.count, float64(q.Counters.Of(c.Name)), q.Name, c.Name)
		}
		for reading, aom := range q.MeanAoM {
			if aom.Known() {
				gauge(s.aom, float64(aom)/1e9, q.Name, olaf.Reading(reading).String())
			}
		}
	}
}
