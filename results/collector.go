package results

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/metric"
)

// Config says what a Collector measures.
type Config struct {
	// Declared are the counters and metrics of the run.
	Declared *metric.Declaration `json:"-"`
	// Clusters and Workers are how many there should be. Ids beyond are measured all the same.
	Clusters int    `json:"clusters"`
	Workers  int    `json:"workers"`
	Window   Window `json:"window"`
	// OutRate is the output link's, for utilisation; 0 when unknown. OverheadBytes are added to every frame on it.
	OutRate       olaf.Rate `json:"out_rate"`
	OverheadBytes olaf.Size `json:"overhead"`
	// OwnFrames says that updates come in frames of another form than OLAF's, whose lengths nobody tells: utilisation is missing.
	OwnFrames bool `json:"own_frames,omitempty"`
	// SpeedupUpdates is the N of T(N), updates that every worker must have had received; 0 leaves T(N) out.
	SpeedupUpdates int `json:"speedup_updates"`
	// Segments is how many frames an update takes, each a segment of its vector; 0 is one. The sequence of a frame then says by its
	// remainder which one, and the age of a cluster or worker is that of the oldest segment that it has.
	Segments int `json:"segments,omitempty"`
	// Jobs says which clusters there are and how many workers each has, where workers are numbered within their cluster
	// (a simulated network). Clusters and Workers follow from it, and no other ids may be observed. Without it the ids of
	// workers are numbered over all clusters.
	Jobs []Job `json:"jobs,omitempty"`
}

// Job is a run of clusters that are alike, with consecutive ids.
type Job struct {
	Cluster  olaf.ClusterID `json:"cluster"`  // the first
	Clusters int            `json:"clusters"` // how many
	Workers  int            `json:"workers"`  // of each, with ids from 0
}

// Collector streams the observations of one run into its metrics: constant memory per cluster and worker, two bytes an update where
// that comes in segments, and nothing allocated per observation. Observations must come in the order of their times. It is not safe for concurrent use.
type Collector struct {
	cfg      Config
	places   places
	clusters []clusterState
	workers  []workerState
	merges   []int64
	ages     ageHistogram

	observed       int64
	first, last    int64  // ps
	later          sum128 // of times since the first
	firstBytes     olaf.Size
	windowBytes    int64
	queued         sum128
	queuedMax      olaf.Duration
	queuedMeasured int64
	workersBehind  int
	timeToN        int64 // ps, -1 before
	countSum       int64
	backwards      int64
	fromFuture     int64
	strays         int64
	lackProvenance bool
	stamps         bool // ages by other stamps than the newest are asked for
}

type clusterState struct {
	saw    saw
	mean   saw // by the mean stamp inside a frame, and by the oldest
	oldest saw
	peaks  Peaks
	vector Vector
}

type workerState struct {
	saw      saw
	lastSeen int64 // the observation that last held this worker, from 1
	received int64
	cluster  int // index into the clusters
	vector   Vector
	parts    []uint16 // by update, how many of its segments came; of updates of several alone
}

// NewCollector makes a Collector for one run.
func NewCollector(cfg Config) *Collector {
	c := new(Collector)
	c.Reset(cfg)
	return c
}

// Reset readies the Collector for another run and keeps its memory.
func (c *Collector) Reset(cfg Config) {
	clusters, workers, merges, places := c.clusters[:0], c.workers[:0], c.merges, c.places
	clear(merges)
	places.lay(&cfg)
	*c = Collector{cfg: cfg, places: places, timeToN: -1, workersBehind: cfg.Workers, merges: merges}
	c.stamps = cfg.Declared != nil && cfg.Declared.Metric(metric.OldestStamp) != nil && cfg.Segments <= 1
	if merges == nil {
		c.merges = make([]int64, 64)
	}
	c.clusters = grown(clusters, max(cfg.Clusters, 1))
	c.workers = grown(workers, max(cfg.Workers, 1))
	for i := range c.places.first {
		for w := c.places.first[i]; w < c.places.end(i); w++ {
			c.workers[w].cluster = i
		}
	}
	c.initialise(0, 0)
}

// grown returns s with n zeroed elements more.
func grown[T any](s []T, n int) []T {
	have := len(s)
	for cap(s) < have+n {
		s = append(s[:cap(s)], *new(T))
	}
	s = s[:have+n]
	clear(s[have:])
	return s
}

// initialise gives the clusters and workers from the given ids on their initial age.
func (c *Collector) initialise(cluster, worker int) {
	w := c.cfg.Window
	if w.FirstToLast() || w.InitialAge < 0 {
		return
	}
	start := saw{newest: int64(w.From) - int64(w.InitialAge), since: int64(w.From), start: int64(w.From), running: true}
	for i := cluster; i < len(c.clusters); i++ {
		c.clusters[i].saw, c.clusters[i].mean, c.clusters[i].oldest = start, start, start
	}
	for i := worker; i < len(c.workers); i++ {
		c.workers[i].saw = start
	}
}

// Observe takes the next delivered frame. o is not kept.
func (c *Collector) Observe(o *olaf.Observation) {
	at := int64(o.At)
	if c.observed == 0 {
		c.first, c.firstBytes = at, o.Update.Size()+c.cfg.OverheadBytes
	} else if at < c.last {
		c.backwards++
		at = c.last
	}
	c.observed++
	c.last = at
	c.later.addInt(at - c.first)
	c.countSum += int64(o.Update.Count)
	c.merged(int(o.Update.Count) - 1)
	if o.Queued >= 0 {
		c.queued.addInt(int64(o.Queued))
		c.queuedMax = max(c.queuedMax, o.Queued)
		c.queuedMeasured++
	}
	place, known := c.places.of(o)
	if !known {
		c.strays++
		return
	}
	c.progress(o, place, at)
	w := c.cfg.Window
	if !w.FirstToLast() && at > int64(w.To) {
		return
	}
	if at >= int64(w.From) {
		c.windowBytes += int64(o.Update.Size() + c.cfg.OverheadBytes)
	}
	c.age(o, place, at)
}

// merged counts an outgoing update that carried n aggregations.
func (c *Collector) merged(n int) {
	n = max(n, 0)
	if n >= len(c.merges) {
		c.merges = grown(c.merges, n+1-len(c.merges))
	}
	c.merges[n]++
}

// progress counts what every worker has had received, for T(N).
func (c *Collector) progress(o *olaf.Observation, place place, at int64) {
	if o.Contributors == nil {
		if o.Update.Count > 1 {
			c.lackProvenance = true
			return
		}
		c.inside(place.worker(o.Update.Worker), o.Update.Seq, at)
		return
	}
	for i := range o.Contributors {
		c.inside(place.worker(o.Contributors[i].Worker), o.Contributors[i].Seq, at)
	}
}

// inside notes an update, or a segment of one, of a worker.
func (c *Collector) inside(i int, seq uint32, at int64) {
	if c.received(i, at); c.cfg.Segments > 1 {
		c.came(i, seq)
	}
}

func (c *Collector) received(i int, at int64) {
	w := c.worker(i)
	w.received++
	if i < c.cfg.Workers && w.received == int64(c.cfg.SpeedupUpdates) {
		if c.workersBehind--; c.workersBehind == 0 {
			c.timeToN = at
		}
	}
}

func (c *Collector) worker(i int) *workerState {
	if i >= len(c.workers) {
		have := len(c.workers)
		c.workers = grown(c.workers, i+1-have)
		c.initialise(len(c.clusters), have)
	}
	return &c.workers[i]
}

func (c *Collector) cluster(i int) *clusterState {
	if i >= len(c.clusters) {
		have := len(c.clusters)
		c.clusters = grown(c.clusters, i+1-have)
		c.initialise(have, len(c.workers))
	}
	return &c.clusters[i]
}

// age moves the sawtooths of the frame's cluster and of the workers inside.
func (c *Collector) age(o *olaf.Observation, place place, at int64) {
	from := int64(c.cfg.Window.From)
	gen := generated(o.At, o.Update.GenNS)
	if gen > at+int64(olaf.Nanosecond) {
		c.fromFuture++
	}
	if c.cfg.Segments > 1 {
		c.ageSegments(o, place, at, gen)
		return
	}
	u := c.cluster(place.cluster)
	c.ageCluster(u, from, at, gen)
	if c.stamps {
		u.ageStamps(o, from, at, gen)
	}
	if o.Contributors == nil {
		// Of a merged frame this is not all; no metric of workers comes out of such a run.
		c.ageWorker(place.worker(o.Update.Worker), place.cluster, from, at, gen)
	}
	for i := range o.Contributors {
		k := &o.Contributors[i]
		c.ageWorker(place.worker(k.Worker), place.cluster, from, at, generated(o.At, k.GenNS))
	}
}

// ageCluster moves a cluster's sawtooth.
func (c *Collector) ageCluster(u *clusterState, from, at, gen int64) {
	if u.saw.delivered && at >= from {
		u.peaks.Add(olaf.Duration(at - u.saw.newest))
	}
	c.ages.add(u.saw.advance(from, at))
	u.saw.deliver(from, at, gen)
}

// ageStamps moves a cluster's sawtooths by other stamps than the newest, of a frame that was generated at gen by that.
func (u *clusterState) ageStamps(o *olaf.Observation, from, at, gen int64) {
	oldest, behind := gen, int64(0)
	for i := range o.Contributors {
		one := generated(o.At, o.Contributors[i].GenNS)
		oldest, behind = min(oldest, one), behind+gen-one
	}
	u.mean.advance(from, at)
	u.mean.deliver(from, at, gen-behind/int64(max(len(o.Contributors), 1)))
	u.oldest.advance(from, at)
	u.oldest.deliver(from, at, oldest)
}

func (c *Collector) ageWorker(i, cluster int, from, at, gen int64) {
	w := c.worker(i)
	w.cluster = cluster
	if w.lastSeen == c.observed {
		// The same frame held an earlier update of this worker: one delivery, the newest counts.
		w.saw.newest = max(w.saw.newest, gen)
		return
	}
	w.lastSeen = c.observed
	w.saw.advance(from, at)
	w.saw.deliver(from, at, gen)
}

// Observed is how many frames were taken.
func (c *Collector) Observed() int64 { return c.observed }

// Stamped is when frames were observed on the average, and over which time, in ns; missing of none.
func (c *Collector) Stamped() (mean, span Float) {
	if c.observed == 0 {
		return Missing(), Missing()
	}
	return Float(olaf.Duration(c.first).NS()) + Float(c.later.float()/float64(c.observed)/float64(olaf.Nanosecond)), Float(olaf.Duration(c.last - c.first).NS())
}

// CountSum is Σ count over the frames taken.
func (c *Collector) CountSum() int64 { return c.countSum }

// Finish ends the run: it closes the window, checks the accounting, and returns the metrics that the configuration
// declares. The Collector can only be Reset after it.
func (c *Collector) Finish(counters olaf.Counts) Run {
	c.close()
	r := Run{Declared: c.cfg.Declared, Counters: counters}
	m := metric.Measured{Counts: counters, Nameless: c.lackProvenance, AgeBelow: c.ages.belowNS, Utilisation: c.utilisation(),
		Delay: Missing(), DelayMax: Missing(), TimeToN: Missing(), Torn: c.torn(), WhyNoTimeN: c.whyNoTimeN(), Duration: Float(olaf.Duration(c.last - c.first).NS())}
	c.clusterMetrics(&r, &m)
	c.workerMetrics(&r, &m)
	if c.queuedMeasured > 0 {
		m.Delay = Float(c.queued.float() / float64(c.queuedMeasured) / 1000)
		m.DelayMax = Float(c.queuedMax.NS())
	}
	if c.timeToN >= 0 && !c.lackProvenance {
		m.TimeToN = Float(olaf.Duration(c.timeToN).NS())
	}
	r.Metrics, r.Missing = c.cfg.Declared.Measure(&m)
	r.Aggregations = trimmed(c.merges)
	c.validate(&r)
	return r
}

// close integrates every running sawtooth up to the end of a fixed window.
func (c *Collector) close() {
	w := c.cfg.Window
	if w.FirstToLast() {
		return
	}
	for i := range c.clusters {
		c.ages.add(c.clusters[i].saw.advance(int64(w.From), int64(w.To)))
		c.clusters[i].mean.advance(int64(w.From), int64(w.To))
		c.clusters[i].oldest.advance(int64(w.From), int64(w.To))
	}
	for i := range c.workers {
		c.workers[i].saw.advance(int64(w.From), int64(w.To))
	}
}

// counts says whether a sawtooth is in the means: two deliveries make an average, or an initial age does.
func (c *Collector) counts(s *saw) bool {
	known := !c.cfg.Window.FirstToLast() && c.cfg.Window.InitialAge >= 0
	return s.deliveries >= 2 || known
}

func (c *Collector) clusterMetrics(r *Run, m *metric.Measured) {
	for i := range c.clusters {
		u := &c.clusters[i]
		k := ClusterMetric{Cluster: c.places.id(i), Deliveries: u.saw.deliveries, AoM: Missing(), PeakAoM: u.peaks.MeanNS(), AoMWorker: Missing()}
		if c.counts(&u.saw) {
			k.AoM = u.saw.meanNS()
			if c.stamps {
				m.MeanStamps.Add(u.mean.meanNS())
				m.OldestStamps.Add(u.oldest.meanNS())
			}
		}
		m.Clusters.Add(k.AoM)
		m.Peaks.Add(k.PeakAoM)
		if i < c.cfg.Clusters || u.saw.deliveries > 0 {
			r.Clusters = append(r.Clusters, k)
		}
	}
}

// workerMetrics averages workers within their cluster, then clusters.
func (c *Collector) workerMetrics(r *Run, m *metric.Measured) {
	if c.lackProvenance {
		return
	}
	byCluster := make([]metric.Series, len(c.clusters))
	for id := range c.workers {
		w := &c.workers[id]
		if w.saw.deliveries < 2 && (id < c.cfg.Workers || w.saw.deliveries > 0) {
			m.Never++
		}
		if c.counts(&w.saw) && (id < c.cfg.Workers || w.saw.deliveries > 0) {
			m.Workers.Add(w.saw.meanNS())
			byCluster[w.cluster].Add(w.saw.meanNS())
		}
	}
	for i := range r.Clusters {
		at := i // those of jobs are all there, in their order
		if len(c.cfg.Jobs) == 0 {
			at = r.Clusters[i].Cluster
		}
		r.Clusters[i].AoMWorker = byCluster[at].Mean()
		m.WorkerMeans.Add(r.Clusters[i].AoMWorker)
	}
}

// utilisation is the share of the output link's time that the frames took: over the window, or from the first bit of
// the first frame to the last bit of the last.
func (c *Collector) utilisation() Float {
	rate := float64(c.cfg.OutRate)
	span := float64(c.cfg.Window.To - c.cfg.Window.From)
	if c.cfg.Window.FirstToLast() {
		span = float64(c.last-c.first) + float64(c.firstBytes.Bits())*float64(olaf.Second)/max(rate, 1)
	}
	if rate <= 0 || span <= 0 || c.observed == 0 || c.cfg.OwnFrames {
		return Missing()
	}
	return Float(float64(c.windowBytes) * 8 * float64(olaf.Second) / rate / span)
}

// whyNoTimeN is why T(N) is missing, where it is.
func (c *Collector) whyNoTimeN() string {
	switch {
	case c.cfg.SpeedupUpdates <= 0 || c.cfg.Workers <= 0:
		return "not asked for"
	case c.lackProvenance:
		return metric.NeedsProvenance
	}
	return fmt.Sprintf("not every worker had %d updates received", c.cfg.SpeedupUpdates)
}

// validate lists why the run must not enter a mean.
func (c *Collector) validate(r *Run) {
	say := func(format string, a ...any) { r.Invalid = append(r.Invalid, fmt.Sprintf(format, a...)) }
	if err := r.Counters.Check(); err != nil {
		say("%v", err)
	}
	if received := r.Counters.Of("received"); received != c.observed {
		say("the capture says %d frames received, %d were handed over", received, c.observed)
	}
	if lost := r.Counters.Of("capture_lost"); lost > 0 {
		say("the capture lost %d frames", lost)
	}
	if c.backwards > 0 {
		say("%d observations go backwards in time", c.backwards)
	}
	if c.fromFuture > 0 {
		say("%d updates were generated after they were delivered", c.fromFuture)
	}
	if c.strays > 0 {
		say("%d frames are of clusters or workers that no job has", c.strays)
	}
}

// trimmed is a copy without the zeros at its end.
func trimmed(v []int64) []int64 {
	n := len(v)
	for n > 0 && v[n-1] == 0 {
		n--
	}
	return append([]int64(nil), v[:n]...)
}
