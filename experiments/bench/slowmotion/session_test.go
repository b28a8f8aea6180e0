package slowmotion

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/results"
)

// livePlan returns a small Table 1: one run at 20G, OLAF and FIFO.
func livePlan(t testing.TB, edit func(*bench.Spec)) *bench.Plan {
	t.Helper()
	spec := bench.DefaultSpec(system.All())
	spec.Runs, spec.OutRates = 2, []olaf.Rate{20 * olaf.Gbps}
	spec.Workload.UpdatesPerWorker = 40
	if edit != nil {
		edit(&spec)
	}
	plan, err := bench.NewPlan(spec)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func openLive(t testing.TB, plan *bench.Plan) *Session {
	t.Helper()
	l, err := OpenSession(t.Context(), plan, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func snapshot(t testing.TB, l *Session) *Snapshot {
	t.Helper()
	s, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLiveAgreesWithRun watches the first run of a plan to its end and compares its counts with Run.
func TestLiveAgreesWithRun(t *testing.T) {
	for name, change := range map[string]func(*bench.Spec){
		"queues": nil,
		"answers to workers": func(s *bench.Spec) {
			s.Queue, s.Versus, s.Topology, s.OutRates = "iswitch", "", bench.ToWorkers, []olaf.Rate{2 * olaf.Gbps}
		},
		"sums to a server": func(s *bench.Spec) {
			s.Queue, s.Versus, s.H, s.OutRates = "iswitch", "", new(3), []olaf.Rate{2 * olaf.Gbps}
		},
		"vectors of three frames in a queue": func(s *bench.Spec) { s.Queue, s.Versus, s.Workload.Values = "fifo", "", 100 },
		"sums of vectors of three frames": func(s *bench.Spec) {
			s.Queue, s.Versus, s.H, s.Workload.Values = "iswitch", "", new(3), 100
			s.Topology, s.OutRates = bench.ToWorkers, []olaf.Rate{5 * olaf.Gbps}
		},
	} {
		t.Run(name, func(t *testing.T) { liveAgrees(t, livePlan(t, change)) })
	}
}

func liveAgrees(t *testing.T, plan *bench.Plan) {
	l := openLive(t, plan)
	for !l.IsDone() {
		if err := l.Advance(t.Context(), 3*olaf.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	s := snapshot(t, l)

	bed, err := testbed.OpenTestbed(t.Context(), "",
		testbed.OpenOptions{Access: testbed.Access{Programs: plan.Spec.Systems.Programs()}})
	if err != nil {
		t.Fatal(err)
	}
	defer bed.Close()
	out, err := bench.RunPlan(t.Context(), plan, bed, bench.NewStream())
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Queues {
		q, run := &s.Queues[i], &out.Runs[i][0]
		if diff := cmp.Diff(run.Counters, q.Counters); diff != "" {
			t.Errorf("%s: counters differ (-run +live):\n%s", q.Name, diff)
		}
		if q.Invalid != "" {
			t.Errorf("%s: %s", q.Name, q.Invalid)
		}
		if diff := cmp.Diff(run.Aggregations, trim(q.Merges)); diff != "" {
			t.Errorf("%s: aggregations differ:\n%s", q.Name, diff)
		}
		for i, want := range [olaf.Readings]results.Float{run.Metrics.Of("aom_cluster_ns"), run.Metrics.Of("aom_worker_ns")} {
			if got := q.MeanAoM[i]; got != want {
				t.Errorf("%s: mean AoM %v is %v ns, the run says %v", q.Name, olaf.Reading(i), got, want)
			}
			if q.AoMNow[i].Known() {
				t.Errorf("%s: it still ages: %v", q.Name, q.AoMNow[i])
			}
		}
		for c, m := range run.Clusters {
			if k := &q.Clusters[c]; k.Mean != [olaf.Readings]results.Float{m.AoM, m.AoMWorker} || k.Peak != m.PeakAoM || !k.Done {
				t.Errorf("%s cluster %d: %+v, the run says %+v", q.Name, c, k, m)
			}
			if m.Deliveries != q.Clusters[c].Delivered && plan.Spec.Workload.Segments() == 1 { // for several segments, frames are counted

				t.Errorf("%s cluster %d: %d deliveries, run had %d", q.Name, c, q.Clusters[c].Delivered, m.Deliveries)
			}
		}
		if len(q.Items) != 0 || q.Occupancy != 0 {
			t.Errorf("%s: %d updates inside at the end", q.Name, len(q.Items))
		}
	}
}

func trim(v []int64) []int64 {
	for len(v) > 0 && v[len(v)-1] == 0 {
		v = v[:len(v)-1]
	}
	return v
}

// sameMissing treats missing values as equal.
var sameMissing = cmp.Options{cmpopts.EquateNaNs(),
	cmp.Comparer(func(a, b results.Float) bool { return a == b || !a.Known() && !b.Known() })}

// TestLiveSeeksExactly checks that going forward, back and forward again leads to the same state as the first time.
func TestLiveSeeksExactly(t *testing.T) {
	l := openLive(t, livePlan(t, nil))
	const there, beyond = olaf.Time(11 * olaf.Microsecond), olaf.Time(30 * olaf.Microsecond)
	see := func() []QueueSnapshot {
		s := snapshot(t, l)
		for i := range s.Queues {
			q := &s.Queues[i]
			for j := range q.Log { // the slot that an update takes depends on the previous run
				q.Log[j].Slot = 0
			}
			for j := range q.Items {
				q.Items[j].Slot = 0
			}
		}
		return s.Queues
	}
	if err := l.Seek(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	first := see()
	if len(first[0].Items) == 0 || len(first[0].Log) == 0 {
		t.Fatal("nothing happens at that instant; the test looks at nothing")
	}
	for _, at := range []olaf.Time{beyond, there} {
		if err := l.Seek(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(first, see(), sameMissing); diff != "" {
		t.Errorf("the second look differs (-first +second):\n%s", diff)
	}
}

// TestLiveSteps checks steps from event to event in both directions.
func TestLiveSteps(t *testing.T) {
	l := openLive(t, livePlan(t, nil))
	var at []olaf.Time
	for range 50 {
		if err := l.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(at); n > 0 && l.now <= at[n-1] {
			t.Fatalf("step from %v to %v", at[n-1], l.now)
		}
		at = append(at, l.now)
	}
	for i := len(at) - 2; i > len(at)-6; i-- {
		if err := l.StepBack(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.now != at[i] {
			t.Errorf("step back to %v, the event before was at %v", l.now, at[i])
		}
	}
}

// TestLifeOfUpdates follows every update of both queues to its end and checks that the histories are consistent.
func TestLifeOfUpdates(t *testing.T) {
	l := openLive(t, livePlan(t, nil))
	for !l.IsDone() {
		if err := l.Advance(t.Context(), olaf.Microsecond); err != nil {
			t.Fatal(err)
		}
	}
	s := snapshot(t, l)
	for i := range s.Queues {
		q := &s.Queues[i]
		var delivered, dropped, replaced int64
		for n := range q.Counters.Of("in") {
			life, ok := l.Life(i, n)
			if !ok {
				t.Fatalf("%s forgot update %d", q.Name, n)
			}
			switch {
			case life.Kind.IsDrop():
				dropped++
				if life.Frame >= 0 {
					t.Errorf("%s update %d was dropped and is in frame %d", q.Name, n, life.Frame)
				}
			case life.ReplacedBy != nil:
				replaced++
			default:
				delivered++
				if life.Delivered <= life.Arrived || life.Started < life.Arrived && len(life.With) == 0 || life.Created > life.Arrived {
					t.Errorf("%s update %d: created %v, arrived %v, started %v, delivered %v", q.Name, n, life.Created, life.Arrived,
						life.Started, life.Delivered)
				}
				for _, m := range life.With {
					if other, _ := l.Life(i, m.Update); other.Frame != life.Frame || other.Cluster != life.Cluster {
						t.Errorf("%s update %d is with %d, which is elsewhere", q.Name, n, m.Update)
					}
				}
			}
		}
		c := q.Counters
		if delivered != c.Of("count_delivered") || dropped != c.Of("dropped_full") || replaced != c.Of("count_discarded") {
			t.Errorf("%s: %d delivered, %d dropped, %d replaced; counters say %d, %d, %d", q.Name, delivered, dropped, replaced,
				c.Of("count_delivered"), c.Of("dropped_full"), c.Of("count_discarded"))
		}
	}
	if _, ok := l.Life(0, 1<<40); ok {
		t.Error("an update that never was has a life")
	}
}

func TestLiveInspects(t *testing.T) {
	l := openLive(t, livePlan(t, nil))
	if err := l.Advance(t.Context(), 20*olaf.Microsecond); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, l)
	in, err := l.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Tables.Workers) != 27 || in.Role != "primary" || len(in.Registers) < 40 || len(in.Cards) != 2 {
		t.Errorf("%d workers, role %q, %d registers, %d cards", len(in.Tables.Workers), in.Role, len(in.Registers), len(in.Cards))
	}
	if diff := cmp.Diff(before.Queues, snapshot(t, l).Queues, sameMissing); diff != "" {
		t.Errorf("inspecting changed something:\n%s", diff)
	}
}

func TestLiveRefusesUnknownRuns(t *testing.T) {
	for _, o := range []Options{{Rate: 1}, {Index: 2}, {Rate: -1}} {
		if _, err := OpenSession(t.Context(), livePlan(t, nil), o); err == nil {
			t.Errorf("%+v was opened", o)
		}
	}
}

// stillPace is a wall clock controlled by the test.
type stillPace struct{ now time.Time }

func (p *stillPace) Now() time.Time                                { return p.now }
func (p *stillPace) Tick(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

func newPlayer(t testing.TB, speed Speed, edit func(*bench.Spec)) *Player {
	t.Helper()
	p, err := NewPlayer(t.Context(), livePlan(t, edit), Options{}, speed, false, new(stillPace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestPlayerPaces checks that device time follows the wall clock at the chosen scale, without losing fractions.
func TestPlayerPaces(t *testing.T) {
	p := newPlayer(t, Speed(10*olaf.Microsecond), nil)
	for range 150 { // 1 s in steps that are not whole cycles
		p.Elapse(t.Context(), time.Second/150)
	}
	if now := p.Snapshot().Now; now < olaf.Time(10*olaf.Microsecond-2*olaf.Cycle) || now > olaf.Time(10*olaf.Microsecond) {
		t.Errorf("after a second at 10us/s it is %v", now)
	}
	p.Execute(t.Context(), Pause{true})
	held := p.Snapshot().Now
	p.Elapse(t.Context(), time.Second)
	if s := p.Snapshot(); s.Now != held || s.State != Paused {
		t.Errorf("paused at %v, then it is %v and %v", held, s.Now, s.State)
	}
	p.Execute(t.Context(), Step{})
	if p.Snapshot().Now <= held {
		t.Error("a step did not move on")
	}
	p.Execute(t.Context(), Step{Back: true})
	if p.Snapshot().Now > held {
		t.Error("a step back did not go back")
	}
	p.Execute(t.Context(), Pause{false})
	p.Execute(t.Context(), SetSpeed{AsFastAsPossible})
	for range 1000 {
		p.Elapse(t.Context(), time.Millisecond)
		if p.Snapshot().State == Done {
			break
		}
	}
	if s := p.Snapshot(); s.State != Done || s.Sent != s.Total {
		t.Errorf("at full speed: %v, %d of %d sent", s.State, s.Sent, s.Total)
	}
}

func TestPlayerReruns(t *testing.T) {
	p := newPlayer(t, AsFastAsPossible, nil)
	spec := p.Snapshot().Plan.Spec
	spec.Slots = 3
	p.Execute(t.Context(), Rerun{Spec: spec})
	if s := p.Snapshot(); s.Queues[0].Slots != 3 || s.Now != 0 || s.Err != nil {
		t.Errorf("%d slots at %v, error %v", s.Queues[0].Slots, s.Now, s.Err)
	}
	spec.Slots = 0
	p.Execute(t.Context(), Rerun{Spec: spec})
	p.Elapse(t.Context(), 0) // the error stays visible
	if s := p.Snapshot(); !errors.Is(s.Err, bench.ErrSpec) || s.State == Failed || s.Queues[0].Slots != 3 {
		t.Errorf("a bad specification: %v, %v, %d slots", s.Err, s.State, s.Queues[0].Slots)
	}
	p.Execute(t.Context(), Seek{To: olaf.Time(olaf.Microsecond)})
	if s := p.Snapshot(); s.Err != nil || s.Now != olaf.Time(olaf.Microsecond) {
		t.Errorf("after an error: %v at %v", s.Err, s.Now)
	}
}

func TestSpeedStepsAreReversible(t *testing.T) {
	s := speedSteps()[0]
	for range len(speedSteps()) {
		next := s.Faster()
		if next.Slower() != s {
			t.Errorf("%v, faster %v, slower again %v", s, next, next.Slower())
		}
		s = next
	}
	if s != AsFastAsPossible || s.Faster() != AsFastAsPossible || speedSteps()[0].Slower() != speedSteps()[0] {
		t.Errorf("the ends do not hold: %v", s)
	}
}

// TestSeriesKeepsItsSums checks that merging points as a run gets longer loses nothing.
func TestSeriesKeepsItsSums(t *testing.T) {
	var s series
	s.reset(olaf.Cycle)
	const n = 5000
	for range n {
		s.point.InBits, s.point.Dropped = 3, 1
		s.close([olaf.Readings]float64{1, 1}, [olaf.Readings][]float32{})
	}
	var bits int64
	var dropped int32
	for _, p := range s.points {
		bits += p.InBits
		dropped += p.Dropped
	}
	if bits != 3*n || dropped != n || len(s.points) >= seriesPoints || s.points[len(s.points)-1].At < olaf.Time(n*olaf.Cycle) {
		t.Errorf("%d bits, %d drops in %d points until %v", bits, dropped, len(s.points), s.points[len(s.points)-1].At)
	}
}

func BenchmarkLiveSnapshot(b *testing.B) {
	l := openLive(b, livePlan(b, func(s *bench.Spec) {
		s.Workload.Clusters, s.Workload.Workers, s.Slots = 100, 300, 32
	}))
	if err := l.Advance(context.Background(), 50*olaf.Microsecond); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Snapshot(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPlayerSurvivesPanics checks that an internal panic becomes an error that is shown, so that the device can be
// released.
func TestPlayerSurvivesPanics(t *testing.T) {
	p := newPlayer(t, RealTime, nil)
	p.runGuarded(func() error { panic("a fault") })
	if s := p.Snapshot(); s.State != Failed || !errors.Is(s.Err, bench.ErrRun) || len(s.Queues) != 2 {
		t.Errorf("%v, %v", s.State, s.Err)
	}
}

// TestStopEndsTheTraffic checks that after a stop midway the sent updates still leave and the counts balance.
func TestStopEndsTheTraffic(t *testing.T) {
	p := newPlayer(t, AsFastAsPossible, nil)
	p.Execute(t.Context(), Seek{To: olaf.Time(10 * olaf.Microsecond)})
	p.Execute(t.Context(), Stop{})
	p.Elapse(t.Context(), time.Second)
	s := p.Snapshot()
	if s.State != Done || s.Sent == 0 || s.Sent == s.Total || s.Queues[0].Invalid != "" || s.Queues[0].Occupancy != 0 {
		t.Errorf("%v after %d of %d, %d inside, %s, %v", s.State, s.Sent, s.Total, s.Queues[0].Occupancy, s.Queues[0].Invalid, s.Err)
	}
}

// ownTime is a twin that behaves like a card: its time passes whenever its clock is read.
type ownTime struct{ fpga.Device }

func (d ownTime) Identity() fpga.Identity {
	id := d.Device.Identity()
	id.Kind = "pcie"
	return id
}

func (d ownTime) Read32(addr uint32) (uint32, error) {
	if addr == regmap.CommonCycles {
		if err := d.Device.Sleep(context.Background(), 5*olaf.Microsecond); err != nil {
			return 0, err
		}
	}
	return d.Device.Read32(addr)
}

// TestSampledSession watches a card through counters and capture, and checks that impossible commands are rejected.
func TestSampledSession(t *testing.T) {
	plan := livePlan(t, func(s *bench.Spec) { s.Versus = "" })
	bed, err := testbed.OpenTestbed(t.Context(), "", testbed.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bed.Cards[0].Device = ownTime{bed.Cards[0].Device}
	l := &Session{plan: plan, bed: bed, sampled: true, cards: []*card{{config: &plan.Configs[0], rec: new(record)}}}
	if err := l.programDevices(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &Player{pace: new(stillPace), session: l, state: Running}
	defer p.Close()
	p.Elapse(t.Context(), time.Second)
	p.Execute(t.Context(), Pause{true})
	if s := p.Snapshot(); !errors.Is(s.Err, ErrOwnTime) || s.State != Running || !s.Sampled {
		t.Errorf("pausing a card: %v, %v", s.Err, s.State)
	}
	for range 100 {
		p.Elapse(t.Context(), time.Second)
	}
	s := p.Snapshot()
	q := &s.Queues[0]
	if s.State != Done || s.Sent != s.Total || q.Invalid != "" || q.Counters.Of("received") != q.Counters.Of("delivered") ||
		!q.MeanAoM[olaf.PerCluster].Known() {
		t.Errorf("%v, %d of %d, %q, %d of %d received, AoM %v", s.State, s.Sent, s.Total, q.Invalid, q.Counters.Of("received"),
			q.Counters.Of("delivered"), q.MeanAoM)
	}
	if len(q.Items) != 0 || len(q.Log) == 0 || q.Log[len(q.Log)-1].Update >= 0 {
		t.Errorf("a card's single slots or updates are shown: %d slots, %d events", len(q.Items), len(q.Log))
	}
}

// TestSnapshotsAddUp compares a snapshot midway with one recomputed from single updates and deliveries.
func TestSnapshotsAddUp(t *testing.T) {
	l := openLive(t, livePlan(t, nil))
	for _, at := range []olaf.Duration{2, 9, 14, 23, 31} {
		if err := l.Seek(t.Context(), olaf.Time(at*olaf.Microsecond)); err != nil {
			t.Fatal(err)
		}
		for c := range 9 {
			l.Watch(olaf.ClusterID(c))
			s := snapshot(t, l)
			for i := range s.Queues {
				checkCluster(t, s.Now, &s.Queues[i], c)
				if c == 0 {
					checkInside(t, l, i, s)
				}
			}
		}
	}
}

// TestClustersAgeUntilLastUpdate checks that a cluster ages as long as an update of it is yet to be sent or in the
// queue.
func TestClustersAgeUntilLastUpdate(t *testing.T) {
	l := openLive(t, livePlan(t, nil))
	if err := l.Seek(t.Context(), olaf.Time(olaf.Second)); err != nil {
		t.Fatal(err)
	}
	last := snapshot(t, l)
	early := 0
	if err := l.Seek(t.Context(), olaf.Time(10*olaf.Microsecond)); err != nil {
		t.Fatal(err)
	}
	for {
		if err := l.Advance(t.Context(), 40*olaf.Nanosecond); err != nil || l.IsDone() {
			okay(t, err)
			break
		}
		for i, q := range snapshot(t, l).Queues {
			inside := map[olaf.ClusterID]bool{}
			for _, item := range q.Items {
				inside[item.Cluster] = true
			}
			for _, c := range q.Clusters {
				if done := c.Sent == last.Queues[i].Clusters[c.ID].Sent && !inside[c.ID]; c.Done != done ||
					(done || c.Delivered == 0) == c.AoM[olaf.PerCluster].Known() || done && c.AoM[olaf.PerWorker].Known() {
					t.Errorf("%s cluster %d at %v: done %v, ages %v, should be %v", q.Name, c.ID, l.now, c.Done, c.AoM, done)
				} else if done {
					early++
				}
			}
		}
	}
	if early == 0 {
		t.Error("no cluster is done before the others; the test looks at nothing")
	}
}

// checkInside compares slots and sums of one queue with single updates and the registers.
func checkInside(t *testing.T, l *Session, i int, s *Snapshot) {
	t.Helper()
	q := &s.Queues[i]
	var sent, merged, gone, inside int64
	for _, c := range q.Clusters {
		sent, merged, gone = sent+c.Sent, merged+c.Merged, gone+c.Dropped+c.Replaced
	}
	k := q.Counters
	for _, item := range q.Items {
		inside += int64(item.Count)
		life, _ := l.Life(i, item.Update)
		newest := life.Created
		for _, m := range life.With {
			newest = max(newest, m.Created)
		}
		if item.Age != s.Now.Sub(newest) || item.Count != 1+len(life.With) || item.Locked != (life.Started >= 0) {
			t.Errorf("%s at %v: slot %+v holds %d, the newest of %v", q.Name, s.Now, item, 1+len(life.With), newest)
		}
	}
	if sent != k.Of("in") || merged != k.Of("aggregated") || gone != k.Sum("dropped_full", "replaced") ||
		inside != k.Of("count_queued") {
		t.Errorf("%s at %v: sent %d, merged %d, gone %d, inside %d; registers %+v", q.Name, s.Now, sent, merged, gone, inside, k)
	}
}

// checkCluster recomputes a cluster's age from its deliveries: averaged from the first to the last, and now only while
// more can come.
func checkCluster(t *testing.T, now olaf.Time, q *QueueSnapshot, id int) {
	t.Helper()
	c := &q.Clusters[id]
	if int64(len(q.Teeth)) != c.Delivered {
		t.Fatalf("%s cluster %d: %d teeth of %d deliveries", q.Name, id, len(q.Teeth), c.Delivered)
	}
	if len(q.Teeth) == 0 {
		return
	}
	peaks, area := 0.0, 0.0
	for n, tooth := range q.Teeth[1:] {
		before := q.Teeth[n]
		length := tooth.At.Sub(before.At)
		peaks += tooth.Before.NS()
		area += float64(length) * (float64(before.Age) + float64(length)/2)
	}
	last := q.Teeth[len(q.Teeth)-1]
	close := func(what string, got results.Float, want float64) {
		if math.Abs(float64(got)-want) > 1e-6*math.Abs(want) {
			t.Errorf("%s cluster %d at %v: %s %v ns, deliveries say %v", q.Name, id, now, what, got, want)
		}
	}
	if n := float64(len(q.Teeth) - 1); n > 0 {
		close("peak", c.Peak, peaks/n)
		close("mean", c.Mean[olaf.PerCluster], area/float64(last.At.Sub(q.Teeth[0].At))/1000)
	}
	if age := c.AoM[olaf.PerCluster]; c.Done == age.Known() {
		t.Errorf("%s cluster %d at %v: done %v, age %v", q.Name, id, now, c.Done, age)
	} else if age.Known() {
		close("age", age, (last.Age + now.Sub(last.At)).NS())
	}
}
