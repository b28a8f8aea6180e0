package results

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/results/metric"
)

// Config defines what a Collector measures.
type Config struct {
	// Declared are the counters and metrics of the run.
	Declared *metric.Declaration `json:"-"`
	// Clusters and Workers are the expected numbers of each. Higher ids are also measured.
	Clusters int    `json:"clusters"`
	Workers  int    `json:"workers"`
	Window   Window `json:"window"`
	// OutRate is the rate of the output link, for the utilisation; 0 means that it is unknown. OverheadBytes are added
	// to every frame.
	OutRate       olaf.Rate `json:"out_rate"`
	OverheadBytes olaf.Size `json:"overhead"`
	// OwnFrames means that updates use other frames than OLAF's. Their length is unknown, so the utilisation is
	// missing.
	OwnFrames bool `json:"own_frames,omitempty"`
	// SpeedupUpdates is the N in T(N): every worker must reach N received updates. 0 omits T(N).
	SpeedupUpdates int `json:"speedup_updates"`
	// Segments is the number of frames per update; each frame is a segment of the update's vector. 0 means one. The
	// remainder of a frame's sequence number, divided by Segments, identifies its segment. The age of a cluster or
	// worker is that of its oldest segment.
	Segments int `json:"segments,omitempty"`
	// Split describes how updates are divided into frames with separate clusters.
	Split Split `json:"split,omitzero"`
	// Jobs lists the clusters and their workers if workers are numbered within their cluster, as in a simulated
	// network. Jobs then determines Clusters and Workers, and no other ids may be observed. Without Jobs, worker ids
	// are unique over all clusters.
	Jobs []Job `json:"jobs,omitempty"`
}

// Job is a range of clusters with consecutive ids and equal properties.
type Job struct {
	Cluster  olaf.ClusterID `json:"cluster"`  // first id
	Clusters int            `json:"clusters"` // number of clusters
	Workers  int            `json:"workers"`  // per cluster, with ids from 0
}

// Collector computes the metrics of one run from its stream of observations, which must be in order of time. It needs
// constant memory per cluster and worker, plus two bytes for each update that consists of segments, and does not
// allocate for an observation. It is not safe for concurrent use.
type Collector struct {
	cfg      Config
	places   places
	clusters []clusterState
	workers  []workerState
	merges   []int64
	ages     ageHistogram

	observed       int64
	first, last    int64  // ps
	later          sum128 // sum of times since the first
	firstBytes     olaf.Size
	windowBytes    int64
	queued         sum128
	queuedMax      olaf.Duration
	queuedMeasured int64
	workersBehind  int
	timeToN        int64 // ps; -1 if not reached
	countSum       int64
	backwards      int64
	fromFuture     int64
	strays         int64
	lackProvenance bool
	fragments      *fragments // nil for whole updates
	stamps         bool       // ages by stamps other than the newest are declared
}

type clusterState struct {
	saw    saw
	mean   saw // by the mean stamp in a frame, and by the oldest
	oldest saw
	peaks  Peaks
	vector Vector
}

type workerState struct {
	saw      saw
	lastSeen int64 // last observation with this worker, from 1
	received int64
	cluster  int // index into clusters
	vector   Vector
	parts    []uint16 // by update: received segments, for updates with several segments
}

// NewCollector returns a Collector for one run.
func NewCollector(cfg Config) *Collector {
	c := new(Collector)
	c.Reset(cfg)
	return c
}

// Reset prepares the Collector for another run. It reuses the allocated memory.
func (c *Collector) Reset(cfg Config) {
	clusters, workers, merges, places := c.clusters[:0], c.workers[:0], c.merges, c.places
	clear(merges)
	places.assign(&cfg)
	*c = Collector{cfg: cfg, places: places, timeToN: -1, workersBehind: cfg.Workers, merges: merges}
	c.stamps = cfg.Declared != nil && cfg.Declared.Metric(metric.OldestStamp) != nil && cfg.Segments <= 1
	c.fragments = newFragments(cfg.Split)
	if merges == nil {
		c.merges = make([]int64, 64)
	}
	c.clusters = grow(clusters, max(cfg.Clusters, 1))
	c.workers = grow(workers, max(cfg.Workers, 1))
	for i := range c.places.first {
		for w := c.places.first[i]; w < c.places.end(i); w++ {
			c.workers[w].cluster = i
		}
	}
	c.initialise(0, 0)
}

// grow returns s extended by n elements that are zero.
func grow[T any](s []T, n int) []T {
	have := len(s)
	for cap(s) < have+n {
		s = append(s[:cap(s)], *new(T))
	}
	s = s[:have+n]
	clear(s[have:])
	return s
}

// initialise sets the initial age of all clusters and workers whose ids are at least the given ones.
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

// Observe adds the next delivered frame. o is not retained.
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
	c.countMerged(int(o.Update.Count) - 1)
	if o.Queued >= 0 {
		c.queued.addInt(int64(o.Queued))
		c.queuedMax = max(c.queuedMax, o.Queued)
		c.queuedMeasured++
	}
	place, known := c.places.placeOf(o)
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
	if c.fragments != nil {
		c.fragments.observe(o, int64(w.From), at)
	}
}

// countMerged counts an outgoing update that is the result of n aggregations.
func (c *Collector) countMerged(n int) {
	n = max(n, 0)
	if n >= len(c.merges) {
		c.merges = grow(c.merges, n+1-len(c.merges))
	}
	c.merges[n]++
}

// progress counts the updates received from each worker, for T(N).
func (c *Collector) progress(o *olaf.Observation, place place, at int64) {
	if o.Contributors == nil {
		if o.Update.Count > 1 {
			c.lackProvenance = true
			return
		}
		c.countInside(place.worker(o.Update.Worker), o.Update.Seq, at)
		return
	}
	for i := range o.Contributors {
		c.countInside(place.worker(o.Contributors[i].Worker), o.Contributors[i].Seq, at)
	}
}

// countInside counts one update of a worker, or one segment of an update.
func (c *Collector) countInside(i int, seq uint32, at int64) {
	if c.countReceived(i, at); c.cfg.Segments > 1 {
		c.countPart(i, seq)
	}
}

func (c *Collector) countReceived(i int, at int64) {
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
		c.workers = grow(c.workers, i+1-have)
		c.initialise(len(c.clusters), have)
	}
	return &c.workers[i]
}

func (c *Collector) cluster(i int) *clusterState {
	if i >= len(c.clusters) {
		have := len(c.clusters)
		c.clusters = grow(c.clusters, i+1-have)
		c.initialise(have, len(c.workers))
	}
	return &c.clusters[i]
}

// age updates the age sawtooths of the frame's cluster and workers.
func (c *Collector) age(o *olaf.Observation, place place, at int64) {
	from := int64(c.cfg.Window.From)
	gen := unwrapGeneration(o.At, o.Update.GenNS)
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
		// This is incomplete for a merged frame, but a run with merged frames has no metrics of workers.
		c.ageWorker(place.worker(o.Update.Worker), place.cluster, from, at, gen)
	}
	for i := range o.Contributors {
		k := &o.Contributors[i]
		c.ageWorker(place.worker(k.Worker), place.cluster, from, at, unwrapGeneration(o.At, k.GenNS))
	}
}

// ageCluster updates the age sawtooth of a cluster.
func (c *Collector) ageCluster(u *clusterState, from, at, gen int64) {
	if u.saw.delivered && at >= from {
		u.peaks.Add(olaf.Duration(at - u.saw.newest))
	}
	c.ages.add(u.saw.advance(from, at))
	u.saw.deliver(from, at, gen)
}

// ageStamps updates two further ages of a cluster, which use the mean and the oldest generation time in the frame
// instead of the newest, gen.
func (u *clusterState) ageStamps(o *olaf.Observation, from, at, gen int64) {
	oldest, behind := gen, int64(0)
	for i := range o.Contributors {
		one := unwrapGeneration(o.At, o.Contributors[i].GenNS)
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
		// The frame also contained an earlier update of this worker. That is one delivery, and the newest update
		// counts.
		w.saw.newest = max(w.saw.newest, gen)
		return
	}
	w.lastSeen = c.observed
	w.saw.advance(from, at)
	w.saw.deliver(from, at, gen)
}

// ObservedCount returns the number of frames observed so far.
func (c *Collector) ObservedCount() int64 { return c.observed }

// TimeSpan returns the mean time of the observed frames and the time from the first to the last, in nanoseconds. Both
// are missing if there are no frames.
func (c *Collector) TimeSpan() (mean, span Float) {
	if c.observed == 0 {
		return Missing(), Missing()
	}
	return Float(olaf.Duration(c.first).NS()) +
		Float(c.later.float()/float64(c.observed)/float64(olaf.Nanosecond)), Float(olaf.Duration(c.last - c.first).NS())
}

// Finish ends the run. It closes the window, checks the accounting identities, and returns the declared metrics.
// Afterwards, only Reset may be called.
func (c *Collector) Finish(counters olaf.Counts) Run {
	c.close()
	r := Run{Declared: c.cfg.Declared, Counters: counters}
	m := metric.Measured{Counts: counters, Nameless: c.lackProvenance, AgeBelow: c.ages.belowNS,
		Utilisation: c.utilisation(),
		Delay:       Missing(), DelayMax: Missing(), TimeToN: Missing(), Torn: c.countTorn(), TimeNReason: c.timeNReason(),
		Duration: Float(olaf.Duration(c.last - c.first).NS())}
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
	r.Aggregations = trimZeros(c.merges)
	if c.fragments != nil {
		r.Model = c.fragments.finish(c, c.lackProvenance)
	}
	c.validate(&r)
	return r
}

// close integrates all ages up to the end of a fixed window.
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

// counts reports whether an age is included in means. It must have two deliveries or an initial age.
func (c *Collector) counts(s *saw) bool {
	known := !c.cfg.Window.FirstToLast() && c.cfg.Window.InitialAge >= 0
	return s.deliveries >= 2 || known
}

func (c *Collector) clusterMetrics(r *Run, m *metric.Measured) {
	for i := range c.clusters {
		u := &c.clusters[i]
		k := ClusterMetric{Cluster: c.places.id(i), Deliveries: u.saw.deliveries, AoM: Missing(),
			PeakAoM: u.peaks.MeanNS(), AoMWorker: Missing()}
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

// workerMetrics computes ages per worker. It averages first over the workers of each cluster and then over clusters.
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
		at := i // the clusters of jobs are complete and in order
		if len(c.cfg.Jobs) == 0 {
			at = r.Clusters[i].Cluster
		}
		r.Clusters[i].AoMWorker = byCluster[at].Mean()
		m.WorkerMeans.Add(r.Clusters[i].AoMWorker)
	}
}

// utilisation returns the share of time during which frames occupied the output link. The time is the window or, if
// there is no fixed window, from the first bit of the first frame to the last bit of the last frame.
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

// timeNReason returns the reason why T(N) is missing.
func (c *Collector) timeNReason() string {
	switch {
	case c.cfg.SpeedupUpdates <= 0 || c.cfg.Workers <= 0:
		return "not asked for"
	case c.lackProvenance:
		return metric.NeedsProvenance
	}
	return fmt.Sprintf("not every worker had %d updates received", c.cfg.SpeedupUpdates)
}

// validate adds the reasons why the run must be excluded from means.
func (c *Collector) validate(r *Run) {
	addReason := func(format string, a ...any) { r.Invalid = append(r.Invalid, fmt.Sprintf(format, a...)) }
	if err := r.Counters.Check(); err != nil {
		addReason("%v", err)
	}
	if received := r.Counters.Of("received"); received != c.observed {
		addReason("the capture has %d frames, %d were delivered", received, c.observed)
	}
	if lost := r.Counters.Of("capture_lost"); lost > 0 {
		addReason("the capture lost %d frames", lost)
	}
	if c.backwards > 0 {
		addReason("%d observations go backwards in time", c.backwards)
	}
	if c.fromFuture > 0 {
		addReason("%d updates were generated after they were delivered", c.fromFuture)
	}
	if c.strays > 0 {
		addReason("%d frames are from clusters or workers that belong to no job", c.strays)
	}
}

// trimZeros returns a copy of v without trailing zeros.
func trimZeros(v []int64) []int64 {
	n := len(v)
	for n > 0 && v[n-1] == 0 {
		n--
	}
	return append([]int64(nil), v[:n]...)
}
