package monitor

import (
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// runs receives a bench's events and collects the metrics measured so far.
type runs struct {
	bench.NumbersOnly
	mu       sync.Mutex
	outline  *bench.Outline
	planned  float64
	of       []configuration // configurations from the outline
	verdicts map[[2]string]float64

	plannedDesc, doneDesc, meanDesc, ciDesc, verdictDesc *prometheus.Desc
}

// configuration contains the runs with one configuration.
type configuration struct {
	invalid int
	metrics []*metric.Metric
	valid   []measured // ordered by seed, so that sums equal a document's bit for bit
}

// measured contains the metrics of one run.
type measured struct {
	index  int
	values []results.Float
}

func newRuns() *runs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	of := []string{"experiment", "configuration", "metric", "unit"}
	return &runs{
		verdicts:    map[[2]string]float64{},
		plannedDesc: desc("runs_planned", "runs of the experiment", "experiment"),
		doneDesc:    desc("runs_total", "runs that are done", "experiment", "configuration", "valid"),
		meanDesc:    desc("metric_mean", "mean of a metric over the valid runs so far, in the metric's unit", of...),
		ciDesc:      desc("metric_ci95", "half-width of Student's 95 % interval of the mean", of...),
		verdictDesc: desc("published_numbers", "published numbers by the verdict on ours", "experiment", "verdict"),
	}
}

// Sinks returns the sinks for a stream of events, or nil for a nil Monitor.
func (m *Monitor) Sinks() []bench.Sink {
	if m == nil {
		return nil
	}
	return []bench.Sink{m.runs}
}

// AddVerdicts adds the verdicts on an experiment's published numbers to the metrics.
func (m *Monitor) AddVerdicts(experiment string, rows []results.PaperRow) {
	if m == nil {
		return
	}
	m.runs.mu.Lock()
	defer m.runs.mu.Unlock()
	for i := range rows {
		m.runs.verdicts[[2]string{experiment, rows[i].Verdict}]++
	}
}

func (r *runs) Event(e bench.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch e := e.(type) {
	case bench.Started:
		o, err := e.Work.Outline()
		if err != nil {
			return err
		}
		r.outline, r.planned, r.of = o, float64(e.Work.RunCount()), make([]configuration, len(o.Configurations))
	case bench.RunDone:
		r.of[e.Run.Config].addRun(e.Result)
	}
	return nil
}

func (c *configuration) addRun(run *results.Run) {
	if !run.Valid() {
		c.invalid++
		return
	}
	if c.metrics == nil {
		c.metrics = slices.DeleteFunc(slices.Clone(run.Declared.Metrics),
			func(m *metric.Metric) bool { return m.Aside })
	}
	one := measured{index: run.Index, values: make([]results.Float, len(c.metrics))}
	for i, m := range c.metrics {
		one.values[i] = run.Value(m)
	}
	at, _ := slices.BinarySearchFunc(c.valid, run.Index, func(m measured, index int) int { return m.index - index })
	c.valid = slices.Insert(c.valid, at, one)
}

func (r *runs) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{r.plannedDesc, r.doneDesc, r.meanDesc, r.ciDesc, r.verdictDesc} {
		ch <- d
	}
}

func (r *runs) Collect(ch chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, n := range r.verdicts {
		ch <- prometheus.MustNewConstMetric(r.verdictDesc, prometheus.GaugeValue, n, of[0], of[1])
	}
	if r.outline == nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(r.plannedDesc, prometheus.GaugeValue, r.planned, r.outline.Experiment)
	for i := range r.of {
		r.collectConfiguration(ch, &r.of[i], r.outline.Configurations[i].Name)
	}
}

func (r *runs) collectConfiguration(ch chan<- prometheus.Metric, c *configuration, name string) {
	for _, done := range []struct {
		n     int
		valid bool
	}{{len(c.valid), true}, {c.invalid, false}} {
		ch <- prometheus.MustNewConstMetric(r.doneDesc, prometheus.CounterValue, float64(done.n), r.outline.Experiment,
			name, strconv.FormatBool(done.valid))
	}
	values := make([]results.Float, len(c.valid))
	for i, m := range c.metrics {
		for k := range c.valid {
			values[k] = c.valid[k].values[i]
		}
		stat := results.Describe(values, "")
		if !stat.Known() || m.Sparse && stat.Max == 0 {
			continue
		}
		of := []string{r.outline.Experiment, name, m.Name, m.Unit}
		ch <- prometheus.MustNewConstMetric(r.meanDesc, prometheus.GaugeValue, float64(stat.Mean), of...)
		if stat.CI95.Known() {
			ch <- prometheus.MustNewConstMetric(r.ciDesc, prometheus.GaugeValue, float64(stat.CI95), of...)
		}
	}
}
