package slowmotion

import (
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// Limits of a live session's memory. Older data is not lost, because seeking replays the run and the twin is
// deterministic.
const (
	rememberedUpdates = 1 << 16
	rememberedEvents  = 1 << 12
	shownEvents       = 256
	seriesPoints      = 512
	teethInAll        = 1 << 20
	maxMerges         = 256
	meterParts        = 16
	detailedClusters  = 1 << 11 // with more, the series has no ages per cluster
)

const notYet = olaf.Time(-1)

// record stores the history of one queue in bounded memory: a constant amount per cluster, and rings for single
// updates. It is a twin.Observer. If a device cannot be observed, record receives its captured deliveries instead.
type record struct {
	zero  olaf.Time // device time at run time 0
	now   olaf.Time // run time
	slots int

	lives    ring[life]
	frames   ring[frameLife]
	events   ring[Event]
	bySlot   []int64 // frame in each slot
	order    []int64 // frames in the queue, in departure order
	clusters []clusterLife
	workers  []workerLife
	teeth    int // number stored per cluster
	segments int // frames per update

	observed int64
	merges   []int64
	in, out  meter
	unknown  bool // some frame's contributors are unknown, so that workers have no ages
	over     bool // the run is over: all sawtooths have ended
	answered bool // frames count as delivered when they reach the workers, after leaving the queue
	sums     []metric.Series
	series   series
}

// ring stores the newest elements of an endless list. Elements are numbered.
type ring[T any] struct {
	items []T
	next  int64
}

func (r *ring[T]) reset(capacity int) {
	if cap(r.items) < capacity {
		r.items = make([]T, 0, min(capacity, 1024))
	}
	r.items, r.next = r.items[:0], 0
}

// add appends v and returns its number. If the ring already contains limit elements, v overwrites the oldest.
func (r *ring[T]) add(v T, limit int) int64 {
	if len(r.items) < limit {
		r.items = append(r.items, v)
	} else {
		r.items[r.next%int64(limit)] = v
	}
	r.next++
	return r.next - 1
}

// at returns element n, or nil if it was overwritten or does not exist.
func (r *ring[T]) at(n int64) *T {
	if n < 0 || n >= r.next || n < r.next-int64(len(r.items)) {
		return nil
	}
	return &r.items[n%int64(len(r.items))]
}

// firstStored returns the number of the oldest stored element.
func (r *ring[T]) firstStored() int64 { return r.next - int64(len(r.items)) }

type life struct {
	created, arrived olaf.Time
	frame            int64
	replacedBy       int64
	seq              uint32
	worker           olaf.WorkerID
	cluster          olaf.ClusterID
	kind             Kind
	inside           []olaf.Contributor // contributors of a program's update; nil for a worker's
}

type frameLife struct {
	appended, started, left olaf.Time
	newest                  olaf.Time // generation time of the newest contributor
	before, after           olaf.Duration
	firstUpdate, lastUpdate int64 // number of the newest contributor
	size                    olaf.Size
	slot                    engine.Slot
	count                   int
	cluster                 olaf.ClusterID
	worker                  olaf.WorkerID
	seq                     uint32
}

type clusterLife struct {
	sent, merged, replaced, dropped, delivered int64

	left   int64 // frames not yet sent, or in the queue; negative if unknown
	age    results.Age
	peaks  results.Peaks
	vector results.Vector
	teeth  ring[Tooth]
}

type workerLife struct {
	left    int64 // as for a cluster
	age     results.Age
	vector  results.Vector
	seen    int64 // number, from 1, of the last delivery with this worker
	cluster int
}

// firstToLast is the window for ages: each sawtooth is measured from its first delivery to its last.
var firstToLast results.Window

// unknownLeft is stored as the number of remaining updates if that number is unknown.
const unknownLeft = -1

// reset clears the record for a new run. updates is the number of updates per worker, or nil if it is unknown.
func (r *record) reset(place pktgen.Placement, updates []int64, segments, slots int, width olaf.Duration,
	window olaf.Duration) {
	clusters := place.Clusters
	r.zero, r.now, r.slots, r.segments = 0, 0, slots, segments
	r.lives.reset(rememberedUpdates)
	r.frames.reset(rememberedUpdates)
	r.events.reset(rememberedEvents)
	r.order, r.observed, r.unknown, r.over = r.order[:0], 0, false, false
	if len(r.clusters) != clusters {
		r.clusters = make([]clusterLife, clusters)
	}
	for i := range r.clusters {
		c := &r.clusters[i]
		*c = clusterLife{teeth: c.teeth, left: unknownLeft}
		c.teeth.reset(0)
	}
	r.workers = make([]workerLife, place.Workers)
	for i := range r.workers {
		r.workers[i] = workerLife{left: unknownLeft, cluster: int(place.Cluster(i))}
	}
	for i, n := range updates {
		w := &r.workers[i]
		c := &r.clusters[w.cluster]
		frames := n * int64(segments)
		w.left, c.left = frames, max(c.left, 0)+frames
	}
	r.teeth = min(max(teethInAll/max(clusters, 1), 16), 512)
	r.merges = make([]int64, maxMerges)
	r.in, r.out = meter{width: window / meterParts}, meter{width: window / meterParts}
	r.series.reset(width)
}

// advanceTime advances the run time to the given instant.
func (r *record) advanceTime(at olaf.Time) {
	if at <= r.now {
		return
	}
	for at > r.series.end() {
		r.series.close(r.agesAt(r.series.end(), len(r.clusters) <= detailedClusters))
	}
	r.now = at
}

// Arrival records an update with the queue's decision about it. inside lists its contributors if a switch program made
// it.
func (r *record) Arrival(at olaf.Time, class engine.Class, slot engine.Slot, u *olaf.Update,
	inside []olaf.Contributor) {
	at -= r.zero
	r.advanceTime(at)
	r.in.add(at, u.Size().Bits())
	r.series.point.InBits += u.Size().Bits()
	n := r.lives.next
	l := life{
		created: generatedAt(u), arrived: at, frame: -1, replacedBy: -1,
		seq: u.Seq, worker: u.Worker, cluster: u.Cluster, kind: Kind(class), inside: slices.Clone(inside),
	}
	r.unknown = r.unknown || inside == nil && u.Count > 1
	c := r.clusterOf(u.Cluster)
	c.sent++
	count := 0
	switch class {
	case engine.Appended:
		l.frame = r.startFrame(n, at, slot, u)
		count = 1
	case engine.Aggregated:
		c.merged++
		r.series.point.Merged++
		l.frame, count = r.joinFrame(n, slot, u, 1)
	case engine.Replaced, engine.ReplacedReward:
		c.replaced++
		l.frame, count = r.joinFrame(n, slot, u, 0)
	default:
		c.dropped++
		r.series.point.Dropped++
		r.decrementInside(&l)
	}
	r.lives.add(l, rememberedUpdates)
	r.addEvent(Event{at, Kind(class), n, l.frame, slot, u.Cluster, u.Worker, u.Seq, count})
}

func generatedAt(u *olaf.Update) olaf.Time { return olaf.Time(u.GenNS) * olaf.Time(olaf.Nanosecond) }

// eventBefore returns the time of the newest stored event before now, or 0 if there is none.
func (r *record) eventBefore(now olaf.Time) olaf.Time {
	for n := r.events.next - 1; n >= r.events.firstStored(); n-- {
		if at := r.events.at(n).At; at < now {
			return at
		}
	}
	return 0
}

func (r *record) addEvent(e Event) { r.events.add(e, rememberedEvents) }

func (r *record) clusterOf(id olaf.ClusterID) *clusterLife {
	for int(id) >= len(r.clusters) {
		r.clusters = append(r.clusters, clusterLife{left: unknownLeft})
	}
	return &r.clusters[id]
}

func (r *record) workerOf(id olaf.WorkerID) *workerLife {
	for int(id) >= len(r.workers) {
		r.workers = append(r.workers, workerLife{left: unknownLeft})
	}
	return &r.workers[id]
}

// decrementLeft decrements the number of updates that a worker has left to deliver.
func (r *record) decrementLeft(cluster olaf.ClusterID, worker olaf.WorkerID) {
	c, w := r.clusterOf(cluster), r.workerOf(worker)
	c.left, w.left = max(c.left-1, min(c.left, 0)), max(w.left-1, min(w.left, 0))
}

// decrementInside decrements the number of remaining updates for every contributor of an update.
func (r *record) decrementInside(l *life) {
	if l.inside == nil {
		r.decrementLeft(l.cluster, l.worker)
	}
	for _, k := range l.inside {
		r.decrementLeft(l.cluster, k.Worker)
	}
}

// startFrame records a new frame in a slot, which begins with the given update, and returns the frame's number.
func (r *record) startFrame(update int64, at olaf.Time, slot engine.Slot, u *olaf.Update) int64 {
	f := r.frames.add(frameLife{
		appended: at, started: notYet, left: notYet, newest: generatedAt(u),
		firstUpdate: update, lastUpdate: update, size: u.Size(), slot: slot, count: 1,
		cluster: u.Cluster, worker: u.Worker, seq: u.Seq,
	}, rememberedUpdates)
	for int(slot) >= len(r.bySlot) {
		r.bySlot = append(r.bySlot, -1)
	}
	r.bySlot[slot] = f
	r.order = append(r.order, f)
	r.series.point.Occupancy = max(r.series.point.Occupancy, int32(len(r.order)))
	return f
}

// joinFrame adds an update to the frame in a slot. If more is 0, the update replaces the frame's contents instead.
func (r *record) joinFrame(update int64, slot engine.Slot, u *olaf.Update, more int) (frame int64, count int) {
	n := r.bySlot[slot]
	f := r.frames.at(n)
	if f == nil {
		return -1, 0
	}
	if more == 0 {
		r.markReplaced(n, f, update)
		f.count, f.newest = 1, generatedAt(u)
	} else {
		f.count++
		f.newest = max(f.newest, generatedAt(u))
	}
	f.lastUpdate, f.worker, f.seq = update, u.Worker, u.Seq
	return n, f.count
}

// markReplaced marks all contributors of a frame as replaced by the update with number by.
func (r *record) markReplaced(frame int64, f *frameLife, by int64) {
	for n := max(f.firstUpdate, r.lives.firstStored()); n <= f.lastUpdate; n++ {
		if l := r.lives.at(n); l.frame == frame && l.replacedBy < 0 {
			l.replacedBy = by
			r.decrementInside(l)
		}
	}
}

// Start records that the frame at the head of the queue began to leave.
func (r *record) Start(at olaf.Time, slot engine.Slot) {
	at -= r.zero
	r.advanceTime(at)
	n := r.bySlot[slot]
	f := r.frames.at(n)
	if f == nil || f.started >= 0 {
		return
	}
	f.started = at
	r.addEvent(Event{at, Started, f.lastUpdate, n, slot, f.cluster, f.worker, f.seq, f.count})
}

// Departure records that the last bit of a frame has left.
func (r *record) Departure(at olaf.Time, slot engine.Slot, u *olaf.Update) {
	at -= r.zero
	r.advanceTime(at)
	n := r.bySlot[slot]
	before, after := olaf.Duration(-1), olaf.Duration(0)
	if !r.answered {
		before, after = r.deliverCluster(at, u)
		r.deliverWorkers(at, n)
	}
	if i := slices.Index(r.order, n); i >= 0 {
		r.order = slices.Delete(r.order, i, i+1)
	}
	f := r.frames.at(n)
	if f == nil {
		return
	}
	f.left, f.before, f.after = at, before, after
	if f.started < 0 {
		f.started = f.appended
	}
	if !r.answered {
		r.addEvent(Event{at, Delivered, f.lastUpdate, n, slot, f.cluster, u.Worker, u.Seq, int(u.Count)})
	}
}

// Answer records that a sum has reached the workers of its cluster.
func (r *record) Answer(_ olaf.Time, o *olaf.Observation) {
	r.Observe(o)
	r.decrementLeft(o.Update.Cluster, o.Update.Worker)
}

// Observe records a captured delivery.
func (r *record) Observe(o *olaf.Observation) {
	r.advanceTime(o.At)
	r.deliverCluster(o.At, &o.Update)
	switch {
	case len(o.Contributors) == 0 && o.Update.Count > 1:
		r.unknown = true
	case len(o.Contributors) == 0:
		r.deliverWorker(o.Update.Cluster, o.Update.Worker, o.Update.Seq, o.At, generatedAt(&o.Update))
	}
	for i := range o.Contributors {
		k := &o.Contributors[i]
		r.deliverWorker(o.Update.Cluster, k.Worker, k.Seq, o.At, olaf.Time(k.GenNS)*olaf.Time(olaf.Nanosecond))
	}
	r.addEvent(Event{o.At, Delivered, -1, -1, engine.NoSlot, o.Update.Cluster, o.Update.Worker, o.Update.Seq,
		int(o.Update.Count)})
}

// deliverCluster updates a cluster's sawtooth and returns its age before and after the delivery. Unknown ages are
// negative.
func (r *record) deliverCluster(at olaf.Time, u *olaf.Update) (before, after olaf.Duration) {
	r.observed++
	r.out.add(at, u.Size().Bits())
	r.series.point.OutBits += u.Size().Bits()
	r.merges[min(max(int(u.Count)-1, 0), maxMerges-1)]++
	c := r.clusterOf(u.Cluster)
	c.delivered++
	generated, younger := r.modelTime(&c.vector, u.Seq, generatedAt(u))
	if !younger {
		if before, known := c.age.At(at); known {
			return before, before
		}
		return -1, -1
	}
	first := c.age.Deliveries() == 0
	if before = c.age.Deliver(firstToLast, at, generated); first {
		before = -1
	} else {
		c.peaks.Add(before)
	}
	after, _ = c.age.At(at)
	c.teeth.add(Tooth{at, before, after}, r.teeth)
	return before, after
}

// modelTime returns the generation time of a worker's model after the arrival of one frame of an update. It also
// reports whether the frame changes the model's age: an update in several segments is as old as its oldest segment.
func (r *record) modelTime(v *results.Vector, seq uint32, generated olaf.Time) (olaf.Time, bool) {
	if r.segments < 2 {
		return generated, true
	}
	oldest, younger := v.Put(r.segments, int(seq)%r.segments, int64(generated))
	return olaf.Time(oldest), younger
}

// deliverWorkers updates the sawtooths of the workers that contributed to a frame.
func (r *record) deliverWorkers(at olaf.Time, frame int64) {
	f := r.frames.at(frame)
	if f == nil || f.firstUpdate < r.lives.firstStored() {
		r.unknown = true
		return
	}
	for n := f.firstUpdate; n <= f.lastUpdate; n++ {
		if l := r.lives.at(n); l.frame == frame && l.replacedBy < 0 {
			r.deliverLife(at, l)
		}
	}
}

// deliverLife updates the sawtooth of an update's worker or, if a switch program made the update, of all its
// contributors.
func (r *record) deliverLife(at olaf.Time, l *life) {
	if l.inside == nil {
		r.deliverWorker(l.cluster, l.worker, l.seq, at, l.created)
	}
	for _, k := range l.inside {
		r.deliverWorker(l.cluster, k.Worker, k.Seq, at, olaf.Time(k.GenNS)*olaf.Time(olaf.Nanosecond))
	}
	r.decrementInside(l)
}

func (r *record) deliverWorker(cluster olaf.ClusterID, worker olaf.WorkerID, seq uint32, at, generated olaf.Time) {
	w := r.workerOf(worker)
	w.cluster = int(cluster)
	generated, younger := r.modelTime(&w.vector, seq, generated)
	if !younger {
		return
	}
	if w.seen == r.observed { // the frame contained an earlier update of this worker: one delivery; the newest counts
		w.age.Renew(generated)
		return
	}
	w.seen = r.observed
	w.age.Deliver(firstToLast, at, generated)
}

// currentAge returns the current age in a sawtooth that has not ended yet. For other sawtooths the age is missing.
func (r *record) currentAge(a *results.Age, left int64, at olaf.Time) results.Float {
	age, known := a.At(at)
	if !known || left == 0 || r.over {
		return results.Missing()
	}
	return results.Float(age.NS())
}

// byWorker returns a function that averages a value over the workers of a cluster. The average is missing if no worker
// has the value.
func (r *record) byWorker(of func(*workerLife) results.Float) func(cluster int) results.Float {
	if cap(r.sums) < len(r.clusters) {
		r.sums = make([]metric.Series, len(r.clusters))
	}
	sums := r.sums[:len(r.clusters)]
	clear(sums)
	for i := range r.workers {
		if w := &r.workers[i]; !r.unknown && w.cluster < len(sums) {
			sums[w.cluster].Add(of(w))
		}
	}
	return func(cluster int) results.Float { return sums[cluster].Mean() }
}

// agesAt returns the mean age over all clusters at an instant and, if each is set, every cluster's age. The instant
// must not be before the latest event. A mean is 0 if no cluster has an age.
func (r *record) agesAt(at olaf.Time, each bool) (means [olaf.Readings]float64, ages [olaf.Readings][]float32) {
	workers := r.byWorker(func(w *workerLife) results.Float { return r.currentAge(&w.age, w.left, at) })
	var sums [olaf.Readings]metric.Series
	if each {
		for i := range ages {
			ages[i] = make([]float32, len(r.clusters))
		}
	}
	for i := range r.clusters {
		c := &r.clusters[i]
		for reading, age := range [olaf.Readings]results.Float{r.currentAge(&c.age, c.left, at), workers(i)} {
			sums[reading].Add(age)
			if each {
				ages[reading][i] = float32(age)
			}
		}
	}
	for i := range means {
		if v := sums[i].Mean(); v.Known() {
			means[i] = float64(v)
		}
	}
	return means, ages
}

func (r *record) clusterSnapshots() []ClusterSnapshot {
	out := make([]ClusterSnapshot, len(r.clusters))
	workers := r.byWorker(func(w *workerLife) results.Float { return r.currentAge(&w.age, w.left, r.now) })
	for i := range r.clusters {
		c := &r.clusters[i]
		out[i] = ClusterSnapshot{
			ID: olaf.ClusterID(i), Sent: c.sent, Merged: c.merged, Replaced: c.replaced, Dropped: c.dropped,
			Delivered: c.delivered,
			Done:      c.left == 0 || r.over, Peak: c.peaks.MeanNS(),
		}
		out[i].AoM = [olaf.Readings]results.Float{r.currentAge(&c.age, c.left, r.now), workers(i)}
	}
	workers = r.byWorker(func(w *workerLife) results.Float { return averageAge(&w.age) })
	for i := range r.clusters {
		out[i].Mean = [olaf.Readings]results.Float{averageAge(&r.clusters[i].age), workers(i)}
	}
	return out
}

// averageAge returns the time average of a sawtooth. It is missing before the second delivery.
func averageAge(a *results.Age) results.Float {
	if a.Deliveries() < 2 {
		return results.Missing()
	}
	return a.MeanNS()
}

// copyTo copies the displayed state to a snapshot.
func (r *record) copyTo(q *QueueSnapshot, frameTime func(olaf.Size) olaf.Duration) {
	q.Clusters = r.clusterSnapshots()
	for reading := range olaf.Readings {
		var now, average metric.Series
		for i := range q.Clusters {
			now.Add(q.Clusters[i].AoM[reading])
			average.Add(q.Clusters[i].Mean[reading])
		}
		q.AoMNow[reading], q.MeanAoM[reading] = now.Mean(), average.Mean()
	}
	for _, frame := range r.order {
		if f := r.frames.at(frame); f != nil {
			q.Items = append(q.Items, r.slotSnapshot(frame, f, frameTime))
		}
	}
	q.Occupancy = len(r.order)
	q.InRate, q.OutputRate, q.RateWindow = r.in.rate(r.now), r.out.rate(r.now), r.in.width*meterParts
	q.Merges = append([]int64(nil), r.merges...)
	q.Series = append([]SeriesPoint(nil), r.series.points...)
	q.Events = r.events.next
	for i := max(r.events.firstStored(), r.events.next-shownEvents); i < r.events.next; i++ {
		q.Log = append(q.Log, *r.events.at(i))
	}
}

func (r *record) slotSnapshot(frame int64, f *frameLife, frameTime func(olaf.Size) olaf.Duration) SlotSnapshot {
	s := SlotSnapshot{
		Frame: frame, Update: f.lastUpdate, Slot: f.slot, Cluster: f.cluster, Worker: f.worker, Count: f.count,
		Age: r.now.Sub(f.newest), Waited: r.now.Sub(f.appended), Locked: f.started >= 0,
	}
	if whole := frameTime(f.size); s.Locked && whole > 0 {
		s.Sent = min(float64(r.now.Sub(f.started))/float64(whole), 1)
	}
	return s
}

// copyTeeth returns the stored deliveries of a cluster, oldest first.
func (r *record) copyTeeth(id olaf.ClusterID) []Tooth {
	if int(id) >= len(r.clusters) {
		return nil
	}
	teeth := &r.clusters[id].teeth
	out := make([]Tooth, 0, len(teeth.items))
	for i := teeth.firstStored(); i < teeth.next; i++ {
		out = append(out, *teeth.at(i))
	}
	return out
}

func (r *record) memberOf(n int64, l *life) Member {
	return Member{n, l.worker, l.seq, l.kind, l.created, l.arrived}
}

// lifeOf returns the history of update n. It returns false if the history was overwritten.
func (r *record) lifeOf(n int64) (Life, bool) {
	l := r.lives.at(n)
	if l == nil {
		return Life{}, false
	}
	out := Life{Member: r.memberOf(n, l), Cluster: l.cluster, Frame: l.frame, Started: notYet, Delivered: notYet,
		AoMBefore: -1, AoMAfter: -1}
	if by := r.lives.at(l.replacedBy); by != nil {
		m := r.memberOf(l.replacedBy, by)
		out.ReplacedBy = &m
	}
	f := r.frames.at(l.frame)
	if l.frame < 0 || f == nil {
		out.Forgotten = l.frame >= 0
		return out, true
	}
	out.Forgotten = f.firstUpdate < r.lives.firstStored()
	for i := max(f.firstUpdate, r.lives.firstStored()); i <= f.lastUpdate; i++ {
		if other := r.lives.at(i); i != n && other.frame == l.frame && other.replacedBy < 0 {
			out.With = append(out.With, r.memberOf(i, other))
		}
	}
	if out.ReplacedBy == nil {
		out.Started, out.Delivered, out.AoMBefore, out.AoMAfter = f.started, f.left, f.before, f.after
		if f.left < 0 {
			out.AoMBefore, out.AoMAfter = -1, -1
		}
	}
	return out, true
}

// meter measures a rate over the newest few intervals, each of length width.
type meter struct {
	width olaf.Duration
	parts [meterParts]int64
	head  int64 // number of the newest interval
}

func (m *meter) move(at olaf.Time) {
	part := int64(at) / max(int64(m.width), 1)
	if part-m.head >= meterParts {
		m.parts, m.head = [meterParts]int64{}, part
	}
	for m.head < part {
		m.head++
		m.parts[m.head%meterParts] = 0
	}
}

func (m *meter) add(at olaf.Time, bits int64) {
	m.move(at)
	m.parts[m.head%meterParts] += bits
}

// rate returns the bits per second over the complete intervals and the elapsed part of the newest interval.
func (m *meter) rate(at olaf.Time) float64 {
	v := *m
	v.move(at)
	sum := int64(0)
	for _, bits := range v.parts {
		sum += bits
	}
	span := olaf.Duration(at) - olaf.Duration(max(v.head-meterParts+1, 0))*max(v.width, 1)
	if span <= 0 {
		return 0
	}
	return float64(sum) / span.Seconds()
}

// series stores the points of a whole run. When the maximum number of points is reached, it merges neighbouring points.
type series struct {
	width  olaf.Duration
	points []SeriesPoint
	point  SeriesPoint // being filled
}

func (s *series) reset(width olaf.Duration) {
	s.width, s.points, s.point = max(width, olaf.Cycle), s.points[:0], SeriesPoint{}
}

func (s *series) end() olaf.Time {
	last := olaf.Time(0)
	if n := len(s.points); n > 0 {
		last = s.points[n-1].At
	}
	return last.Add(s.width)
}

func (s *series) close(means [olaf.Readings]float64, ages [olaf.Readings][]float32) {
	s.point.At, s.point.AoM, s.point.Ages = s.end(), means, ages
	s.points = append(s.points, s.point)
	s.point = SeriesPoint{}
	if len(s.points) < seriesPoints {
		return
	}
	for i := range seriesPoints / 2 {
		a, b := s.points[2*i], s.points[2*i+1]
		b.InBits += a.InBits
		b.OutBits += a.OutBits
		b.Dropped += a.Dropped
		b.Merged += a.Merged
		b.Occupancy = max(a.Occupancy, b.Occupancy)
		s.points[i] = b
	}
	s.points = s.points[:seriesPoints/2]
	s.width *= 2
}
