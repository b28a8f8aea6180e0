package live

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
)

// Bounds of what a live session remembers. What is older is not lost: seeking replays the run, and the twin repeats itself.
const (
	rememberedUpdates = 1 << 16
	rememberedEvents  = 1 << 12
	shownEvents       = 256
	seriesPoints      = 512
	teethInAll        = 1 << 20
	maxMerges         = 256
	meterParts        = 16
)

const notYet = olaf.Time(-1)

// record keeps what one queue did, in bounded memory: constant per cluster, and rings for single updates. It is a
// twin.Observer; on a device that cannot be observed it is fed with what the capture delivers.
type record struct {
	zero  olaf.Time // device time at which the run clock was 0
	now   olaf.Time // run clock
	slots int

	lives    ring[life]
	frames   ring[frameLife]
	events   ring[Event]
	bySlot   []int64 // frame in each slot
	order    []int64 // frames inside, in departure order
	clusters []clusterLife
	teeth    int // remembered a cluster

	observed int64
	merges   []int64
	in, out  meter
	seen     int64 // clusters with a delivery …
	sumGen   int64 // … and the sum of their newest generation times, in ns
	series   series
}

// ring holds the newest elements of an endless list, by number.
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

// add appends an element to a ring of at most limit and returns its number.
func (r *ring[T]) add(v T, limit int) int64 {
	if len(r.items) < limit {
		r.items = append(r.items, v)
	} else {
		r.items[r.next%int64(limit)] = v
	}
	r.next++
	return r.next - 1
}

// at is the element with a number; nil when it is forgotten or was never there.
func (r *ring[T]) at(n int64) *T {
	if n < 0 || n >= r.next || n < r.next-int64(len(r.items)) {
		return nil
	}
	return &r.items[n%int64(len(r.items))]
}

// first is the number of the oldest element remembered.
func (r *ring[T]) first() int64 { return r.next - int64(len(r.items)) }

type life struct {
	created, arrived olaf.Time
	frame            int64
	replacedBy       int64
	seq              uint32
	worker           olaf.WorkerID
	cluster          olaf.ClusterID
	kind             Kind
}

type frameLife struct {
	appended, started, left olaf.Time
	newest                  olaf.Time // generation time
	before, after           olaf.Duration
	firstUpdate, lastUpdate int64 // the newest contributor
	size                    olaf.Size
	slot                    engine.Slot
	count                   int
	cluster                 olaf.ClusterID
	worker                  olaf.WorkerID
	seq                     uint32
}

type clusterLife struct {
	sent, merged, replaced, dropped, delivered int64

	newest, since, start olaf.Time
	peak                 olaf.Duration
	area                 float64 // ps²
	teeth                ring[Tooth]
}

// reset forgets everything and gets ready for a run.
func (r *record) reset(clusters, slots int, width olaf.Duration, window olaf.Duration) {
	r.zero, r.now, r.slots = 0, 0, slots
	r.lives.reset(rememberedUpdates)
	r.frames.reset(rememberedUpdates)
	r.events.reset(rememberedEvents)
	r.order, r.observed, r.seen, r.sumGen = r.order[:0], 0, 0, 0
	if len(r.clusters) != clusters {
		r.clusters = make([]clusterLife, clusters)
	}
	for i := range r.clusters {
		c := &r.clusters[i]
		*c = clusterLife{teeth: c.teeth}
		c.teeth.reset(0)
	}
	r.teeth = min(max(teethInAll/max(clusters, 1), 16), 512)
	r.merges = make([]int64, maxMerges)
	r.in, r.out = meter{width: window / meterParts}, meter{width: window / meterParts}
	r.series.reset(width)
}

// tick moves the run clock on.
func (r *record) tick(at olaf.Time) {
	if at <= r.now {
		return
	}
	for at > r.series.end() {
		r.series.close(r.aomNow(r.series.end()))
	}
	r.now = at
}

// Arrival takes what the queue did with an update.
func (r *record) Arrival(at olaf.Time, class engine.Class, slot engine.Slot, u *olaf.Update) {
	at -= r.zero
	r.tick(at)
	r.in.add(at, u.Size().Bits())
	r.series.point.InBits += u.Size().Bits()
	n := r.lives.next
	l := life{
		created: generatedAt(u), arrived: at, frame: -1, replacedBy: -1,
		seq: u.Seq, worker: u.Worker, cluster: u.Cluster, kind: Kind(class),
	}
	c := r.cluster(u.Cluster)
	c.sent++
	count := 0
	switch class {
	case engine.Appended:
		l.frame = r.append(n, at, slot, u)
		count = 1
	case engine.Aggregated:
		c.merged++
		r.series.point.Merged++
		l.frame, count = r.join(n, slot, u, 1)
	case engine.Replaced, engine.ReplacedReward:
		c.replaced++
		l.frame, count = r.join(n, slot, u, 0)
	default:
		c.dropped++
		r.series.point.Dropped++
	}
	r.lives.add(l, rememberedUpdates)
	r.event(Event{at, Kind(class), n, l.frame, slot, u.Cluster, u.Worker, u.Seq, count})
}

func generatedAt(u *olaf.Update) olaf.Time { return olaf.Time(u.GenNS) * olaf.Time(olaf.Nanosecond) }

func (r *record) event(e Event) { r.events.add(e, rememberedEvents) }

func (r *record) cluster(id olaf.ClusterID) *clusterLife {
	for int(id) >= len(r.clusters) {
		r.clusters = append(r.clusters, clusterLife{})
	}
	return &r.clusters[id]
}

// append starts a frame.
func (r *record) append(update int64, at olaf.Time, slot engine.Slot, u *olaf.Update) int64 {
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

// join lets an update into the frame in a slot: beside those inside, or in their place when more is 0.
func (r *record) join(update int64, slot engine.Slot, u *olaf.Update, more int) (frame int64, count int) {
	n := r.bySlot[slot]
	f := r.frames.at(n)
	if f == nil {
		return -1, 0
	}
	if more == 0 {
		r.replace(n, f, update)
		f.count, f.newest = 1, generatedAt(u)
	} else {
		f.count++
		f.newest = max(f.newest, generatedAt(u))
	}
	f.lastUpdate, f.worker, f.seq = update, u.Worker, u.Seq
	return n, f.count
}

// replace marks everybody inside a frame as superseded.
func (r *record) replace(frame int64, f *frameLife, by int64) {
	for n := max(f.firstUpdate, r.lives.first()); n <= f.lastUpdate; n++ {
		if l := r.lives.at(n); l.frame == frame && l.replacedBy < 0 {
			l.replacedBy = by
		}
	}
}

// Start notes that the head began to leave.
func (r *record) Start(at olaf.Time, slot engine.Slot) {
	at -= r.zero
	r.tick(at)
	n := r.bySlot[slot]
	f := r.frames.at(n)
	if f == nil || f.started >= 0 {
		return
	}
	f.started = at
	r.event(Event{at, Started, f.lastUpdate, n, slot, f.cluster, f.worker, f.seq, f.count})
}

// Departure notes that a frame's last bit left.
func (r *record) Departure(at olaf.Time, slot engine.Slot, u *olaf.Update) {
	at -= r.zero
	r.tick(at)
	before, after := r.deliver(at, u)
	n := r.bySlot[slot]
	if i := r.place(n); i >= 0 {
		r.order = append(r.order[:i], r.order[i+1:]...)
	}
	f := r.frames.at(n)
	if f == nil {
		return
	}
	f.left, f.before, f.after = at, before, after
	if f.started < 0 {
		f.started = f.appended
	}
	r.event(Event{at, Delivered, f.lastUpdate, n, slot, f.cluster, u.Worker, u.Seq, int(u.Count)})
}

func (r *record) place(frame int64) int {
	for i, n := range r.order {
		if n == frame {
			return i
		}
	}
	return -1
}

// Observe takes a delivery from a capture.
func (r *record) Observe(o *olaf.Observation) {
	r.tick(o.At)
	r.deliver(o.At, &o.Update)
	r.event(Event{o.At, Delivered, -1, -1, engine.NoSlot, o.Update.Cluster, o.Update.Worker, o.Update.Seq, int(o.Update.Count)})
}

// deliver moves a cluster's sawtooth and says what the delivery did to its age.
func (r *record) deliver(at olaf.Time, u *olaf.Update) (before, after olaf.Duration) {
	r.observed++
	r.out.add(at, u.Size().Bits())
	r.series.point.OutBits += u.Size().Bits()
	r.merges[min(max(int(u.Count)-1, 0), maxMerges-1)]++
	c, gen := r.cluster(u.Cluster), generatedAt(u)
	before = -1
	if c.delivered == 0 {
		r.seen++
		c.start = at
	} else {
		before = at.Sub(c.newest)
		c.advance(at)
		c.peak = max(c.peak, before)
		r.sumGen -= c.newest.NS()
	}
	c.delivered++
	if c.delivered == 1 || gen > c.newest {
		c.newest = gen
	}
	r.sumGen += c.newest.NS()
	c.since = at
	after = at.Sub(c.newest)
	c.teeth.add(Tooth{at, before, after}, r.teeth)
	return before, after
}

// advance integrates the age up to at.
func (c *clusterLife) advance(at olaf.Time) {
	if at > c.since {
		c.area += float64(at.Sub(c.since)) * float64(c.since.Sub(c.newest)+at.Sub(c.newest)) / 2
		c.since = at
	}
}

// aomNow is the mean age over the clusters that have one, in ns; 0 when none has.
func (r *record) aomNow(at olaf.Time) float64 {
	if r.seen == 0 {
		return 0
	}
	return float64(at.NS()) - float64(r.sumGen)/float64(r.seen)
}

func (r *record) clusterSnapshots() []ClusterSnapshot {
	out := make([]ClusterSnapshot, len(r.clusters))
	for i := range r.clusters {
		c := r.clusters[i] // a copy: looking does not integrate
		s := &out[i]
		*s = ClusterSnapshot{
			ID: olaf.ClusterID(i), Sent: c.sent, Merged: c.merged, Replaced: c.replaced, Dropped: c.dropped, Delivered: c.delivered,
			AoM: results.Missing(), Mean: results.Missing(), Peak: results.Missing(),
		}
		if c.delivered == 0 {
			continue
		}
		age := r.now.Sub(c.newest)
		s.AoM = results.Float(age.NS())
		s.Peak = results.Float(max(c.peak, age).NS())
		c.advance(r.now)
		if length := c.since.Sub(c.start); length > 0 {
			s.Mean = results.Float(c.area / float64(length) / float64(olaf.Nanosecond))
		}
	}
	return out
}

// snapshot copies what is to be shown.
func (r *record) snapshot(q *QueueSnapshot, frameTime func(olaf.Size) olaf.Duration) {
	q.Clusters = r.clusterSnapshots()
	q.MeanAoM, q.AoMNow = results.Missing(), results.Missing()
	sum, n := 0.0, 0
	for i := range q.Clusters {
		if q.Clusters[i].Mean.Known() {
			sum += float64(q.Clusters[i].Mean)
			n++
		}
	}
	if n > 0 {
		q.MeanAoM = results.Float(sum / float64(n))
	}
	if r.seen > 0 {
		q.AoMNow = results.Float(r.aomNow(r.now))
	}
	for _, frame := range r.order {
		if f := r.frames.at(frame); f != nil {
			q.Items = append(q.Items, r.slot(frame, f, frameTime))
		}
	}
	q.Occupancy = len(r.order)
	q.InRate, q.OutputRate, q.RateWindow = r.in.rate(r.now), r.out.rate(r.now), r.in.width*meterParts
	q.Merges = append([]int64(nil), r.merges...)
	q.Series = r.series.snapshot()
	q.Events = r.events.next
	for i := max(r.events.first(), r.events.next-shownEvents); i < r.events.next; i++ {
		q.Log = append(q.Log, *r.events.at(i))
	}
}

func (r *record) slot(frame int64, f *frameLife, frameTime func(olaf.Size) olaf.Duration) SlotSnapshot {
	s := SlotSnapshot{
		Frame: frame, Update: f.lastUpdate, Slot: f.slot, Cluster: f.cluster, Worker: f.worker, Count: f.count,
		Age: r.now.Sub(f.newest), Waited: r.now.Sub(f.appended), Locked: f.started >= 0,
	}
	if whole := frameTime(f.size); s.Locked && whole > 0 {
		s.Sent = min(float64(r.now.Sub(f.started))/float64(whole), 1)
	}
	return s
}

// sawtooth is what is remembered of a cluster's deliveries, oldest first.
func (r *record) sawtooth(id olaf.ClusterID) []Tooth {
	if int(id) >= len(r.clusters) {
		return nil
	}
	teeth := &r.clusters[id].teeth
	out := make([]Tooth, 0, len(teeth.items))
	for i := teeth.first(); i < teeth.next; i++ {
		out = append(out, *teeth.at(i))
	}
	return out
}

func (r *record) member(n int64, l *life) Member {
	return Member{n, l.worker, l.seq, l.kind, l.created, l.arrived}
}

// life tells the story of update n; false when it is forgotten.
func (r *record) life(n int64) (Life, bool) {
	l := r.lives.at(n)
	if l == nil {
		return Life{}, false
	}
	out := Life{Member: r.member(n, l), Cluster: l.cluster, Frame: l.frame, Started: notYet, Delivered: notYet, AoMBefore: -1, AoMAfter: -1}
	if by := r.lives.at(l.replacedBy); by != nil {
		m := r.member(l.replacedBy, by)
		out.ReplacedBy = &m
	}
	f := r.frames.at(l.frame)
	if l.frame < 0 || f == nil {
		out.Forgotten = l.frame >= 0
		return out, true
	}
	out.Forgotten = f.firstUpdate < r.lives.first()
	for i := max(f.firstUpdate, r.lives.first()); i <= f.lastUpdate; i++ {
		if other := r.lives.at(i); i != n && other.frame == l.frame && other.replacedBy < 0 {
			out.With = append(out.With, r.member(i, other))
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

// meter measures a rate over the newest parts of time, each as wide as width.
type meter struct {
	width olaf.Duration
	parts [meterParts]int64
	head  int64 // number of the newest part
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

// rate is in bits per second, over the whole parts and what has passed of the newest one.
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

// series keeps a whole run in a bounded number of points: when they are used up, neighbours are merged.
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

func (s *series) close(aom float64) {
	s.point.At, s.point.AoM = s.end(), aom
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

func (s *series) snapshot() []SeriesPoint { return append([]SeriesPoint(nil), s.points...) }
