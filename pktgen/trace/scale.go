package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/exactmath"
	"github.com/olafctl/olaf/pktgen"
)

// ErrScaling is matched by errors about invalid scalings.
var ErrScaling = olaf.NewError(olaf.Usage, "cannot scale the trace")

// Averaging windows, over which the target rate is met.
const (
	// Stationary is the averaging window in which the trace has the target rate while all workers send.
	Stationary = "stationary"
	// WholeRun is the averaging window from the first update to the last. It includes the time in which only slow
	// workers still send.
	WholeRun = "whole-run"
)

// Scaling describes the trace that is made from a recording.
type Scaling struct {
	pktgen.Placement
	Updates   int       // updates per worker; 0 means endless, which a Source accepts but a file does not
	Rate      olaf.Rate // total rate of all workers
	Frame     olaf.Size // size of every update
	Line      olaf.Rate // link capacity, the maximum of Rate
	Averaging string    // Stationary or WholeRun
	Block     int       // number of updates replayed in a row before the bootstrap jumps; preserves their autocorrelation
	Drift     bool      // keep the growth of intervals during training, which is otherwise removed
	Spread    float64   // the slowest cluster's time divided by the fastest's; geometric in between
	Jitter    float64   // standard deviation of the log of a worker's speed
	// ActiveClusters limits the number of clusters that send at the same time, in turns of TurnUpdates updates per
	// worker; 0 means all.
	ActiveClusters int
	TurnUpdates    float64
	Seed           uint64
}

// DefaultScaling returns a scaling to 27 workers in 9 clusters at 60 Gbps, as in the paper's testbed.
func DefaultScaling() Scaling {
	return Scaling{Placement: pktgen.Placement{Workers: 27, Clusters: 9}, Updates: 500, Rate: 60 * olaf.Gbps,
		Frame: 256,
		Line:  100 * olaf.Gbps, Averaging: Stationary, Block: 25, Spread: 1, Jitter: 0.1, TurnUpdates: 5, Seed: 1}
}

// Check validates the scaling. The error matches ErrScaling.
func (s *Scaling) Check() error {
	say := ""
	switch {
	case s.Workers < 1 || s.Workers > 1<<16:
		say = fmt.Sprintf("%d workers; there are 1 to 65536", s.Workers)
	case s.Clusters < 1 || s.Clusters > s.Workers:
		say = fmt.Sprintf("%d clusters for %d workers; every cluster needs a worker", s.Clusters, s.Workers)
	case s.Updates < 0 || s.Updates > math.MaxUint32:
		say = fmt.Sprintf("%d updates per worker", s.Updates)
	case s.Frame < olaf.HeaderBytes || s.Frame > olaf.MaxFrame || (s.Frame-olaf.HeaderBytes)%olaf.LaneBytes != 0:
		say = fmt.Sprintf("a frame of %v; it has %dB to %v and whole lanes", s.Frame, olaf.HeaderBytes, olaf.MaxFrame)
	case s.Rate <= 0:
		say = "the rate must be positive"
	case s.Rate > s.Line:
		say = fmt.Sprintf("%v is more than the link's %v", s.Rate, s.Line)
	case s.Averaging != Stationary && s.Averaging != WholeRun:
		say = fmt.Sprintf("unknown averaging %q; there are %s and %s", s.Averaging, Stationary, WholeRun)
	case s.Averaging == WholeRun && s.Updates == 0:
		say = "a rate over the whole run needs a number of updates per worker"
	case s.Block < 1:
		say = fmt.Sprintf("blocks of %d updates; at least 1", s.Block)
	case !(s.Spread >= 1 && s.Spread <= 1000):
		say = fmt.Sprintf("a spread of %g; it is slowest over fastest, 1 to 1000", s.Spread)
	case !(s.Jitter >= 0 && s.Jitter <= 2):
		say = fmt.Sprintf("a jitter of %g; it is 0 to 2", s.Jitter)
	case s.ActiveClusters < 0 || s.ActiveClusters > s.Clusters:
		say = fmt.Sprintf("%d active of %d clusters", s.ActiveClusters, s.Clusters)
	case s.ActiveClusters > 0 && !(s.TurnUpdates > 0):
		say = fmt.Sprintf("turns of %g updates; they must be positive", s.TurnUpdates)
	default:
		return nil
	}
	return fmt.Errorf("%w: %s", ErrScaling, say)
}

// Recording is a recorded trace in memory, grouped by worker, that can be resampled.
type Recording struct {
	header  Header
	digest  string
	span    float64 // mean interval of a worker, ns
	workers []recorded
}

// recorded contains the updates of one worker after the first update, and the interval before each. raw is relative to
// the mean interval of the worker, and flat is relative to the moving mean.
type recorded struct {
	updates   []Update
	raw, flat []float64
}

// LoadRecording reads all of source. It rejects a truncated recording, like any other damaged one.
func LoadRecording(source Source) (*Recording, error) {
	r := &Recording{header: *source.Header()}
	all := make([][]Update, r.header.Workers)
	digest, _, err := scanSource(source, func(u *Update) { all[u.Worker] = append(all[u.Worker], *u) })
	if err != nil {
		return nil, err
	}
	r.digest = digest
	for _, updates := range all {
		if len(updates) < 3 {
			continue
		}
		w := newRecorded(updates)
		r.workers = append(r.workers, w)
		r.span += float64(updates[len(updates)-1].GenNS-updates[0].GenNS) / float64(len(updates)-1)
	}
	if len(r.workers) == 0 {
		return nil, fmt.Errorf("%w: no worker of it has three updates", ErrScaling)
	}
	r.span /= float64(len(r.workers))
	return r, nil
}

// identifySource reads all of source and returns the SHA-256 digest of its header and updates, and the number of
// updates.
func identifySource(source Source) (digest string, updates uint64, err error) {
	return scanSource(source, func(*Update) {})
}

// scanSource calls see with every update, and returns the digest and the number of updates.
func scanSource(source Source, see func(*Update)) (digest string, updates uint64, err error) {
	doc, err := json.Marshal(source.Header())
	if err != nil {
		return "", 0, fmt.Errorf("trace header: %w", err)
	}
	hash := sha256.New()
	hash.Write(doc)
	var u Update
	var row []byte
	for {
		if err := source.Next(&u); err == io.EOF {
			return hex.EncodeToString(hash.Sum(nil)), updates, nil
		} else if err != nil {
			return "", updates, err
		}
		updates++
		see(&u)
		row = appendRow(row[:0], &u, 0)
		hash.Write(row)
	}
}

func newRecorded(updates []Update) recorded {
	w := recorded{updates: updates[1:]}
	mean := float64(updates[len(updates)-1].GenNS-updates[0].GenNS) / float64(len(updates)-1)
	trend := flattener{out: func(v float64) { w.flat = append(w.flat, v) }}
	for i := range w.updates {
		d := float64(updates[i+1].GenNS - updates[i].GenNS)
		w.raw = append(w.raw, d/mean)
		trend.addValue(d)
	}
	trend.flushRest()
	return w
}

// Digest returns the SHA-256 digest of the recording's header and updates.
func (r *Recording) Digest() string { return r.digest }

func (w *recorded) shapeFor(drift bool) []float64 {
	if drift {
		return w.raw
	}
	return w.flat
}

// bootstrap replays a recorded worker in random blocks.
type bootstrap struct {
	from   *recorded
	shape  []float64
	random rand.PCG
	at     int
	left   int
	block  int
}

func (b *bootstrap) reset(from *recorded, s *Scaling, worker int) {
	*b = bootstrap{from: from, shape: from.shapeFor(s.Drift), block: min(s.Block, len(from.raw))}
	b.random.Seed(s.Seed, uint64(worker))
}

// nextInterval moves to the next update and returns the interval before it as a multiple of the worker's mean interval.
func (b *bootstrap) nextInterval() float64 {
	if b.left == 0 {
		starts := uint64(len(b.shape) - b.block + 1)
		b.at = int(b.random.Uint64() % starts)
		b.left = b.block
	} else {
		b.at++
	}
	b.left--
	return b.shape[b.at]
}

// emulated is a worker in the scaled trace.
type emulated struct {
	bootstrap
	factor float64 // ratio of the worker's time to the recorded time
	clock  float64 // the worker's time, in units of the mean interval
	nextNS int64
	seq    uint32
	worker olaf.WorkerID
	turn   int64 // turn in which the worker's cluster sends
}

// Scaler is a Source of scaled updates. It causes no allocation per update.
type Scaler struct {
	scaling Scaling
	header  Header
	unitNS  float64 // mean interval of an emulated worker with factor 1
	turns   int64
	turnNS  float64 // length of a turn
	heap    []*emulated
	workers []emulated
}

// NewScaler prepares a scaling of r as described by s. The error matches ErrScaling.
func NewScaler(r *Recording, s Scaling) (*Scaler, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	sc := &Scaler{scaling: s, turns: 1}
	if s.ActiveClusters > 0 {
		sc.turns = int64((s.Clusters + s.ActiveClusters - 1) / s.ActiveClusters)
	}
	workers := make([]emulated, s.Workers)
	for j := range workers {
		sc.setUpWorker(&workers[j], r, j)
	}
	frameNS := float64(s.Frame.Bits()) / float64(s.Rate) * 1e9
	sc.workers = workers
	sc.unitNS = frameNS * sc.perUnit(workers) / float64(sc.turns)
	sc.turnNS = s.TurnUpdates * frameNS * float64(s.Workers) / float64(sc.turns)
	for j := range workers {
		w := &workers[j]
		sc.setUpWorker(w, r, j)
		phase := float64(w.random.Uint64()>>11) * (1.0 / (1 << 53))
		w.clock = w.nextInterval() * w.factor * phase
		w.nextNS = sc.timeOf(w)
		sc.heap = append(sc.heap, w)
	}
	for i := len(sc.heap)/2 - 1; i >= 0; i-- {
		sc.siftDown(i)
	}
	sc.header = scaledHeader(r, &s, r.span/sc.unitNS)
	return sc, nil
}

func scaledHeader(r *Recording, s *Scaling, compression float64) Header {
	h := r.header
	h.Workers, h.Clusters, h.Payload, h.Speeds = s.Workers, s.Clusters, false, nil
	h.Lanes = int(s.Frame-olaf.HeaderBytes) / olaf.LaneBytes
	method := "moving-block bootstrap of detrended intervals"
	if s.Drift {
		method = "moving-block bootstrap of raw intervals"
	}
	h.Scaled = &Scaled{Source: r.digest, Method: method, Block: s.Block, Spread: s.Spread, Jitter: s.Jitter,
		Seed:        s.Seed,
		Compression: compression, Rate: s.Rate, Averaging: s.Averaging, FrameBytes: s.Frame, Active: s.ActiveClusters}
	return h
}

// setUpWorker sets the recorded source, the speed and the turn of worker j.
func (sc *Scaler) setUpWorker(w *emulated, r *Recording, j int) {
	s := &sc.scaling
	*w = emulated{worker: olaf.WorkerID(j)}
	w.reset(&r.workers[j%len(r.workers)], s, j)
	cluster := int(s.Cluster(j))
	spread := 0.0
	if s.Clusters > 1 {
		spread = float64(exactmath.Log(s.Spread) * (float64(cluster)/float64(s.Clusters-1) - 0.5))
	}
	own := float64(exactmath.NormFloat64(rand.New(rand.NewPCG(s.Seed, 1<<32+uint64(j)))) * s.Jitter)
	// Rounding to 30 bits gives the same results as in runs made before exactmath.
	w.factor = math.Round(exactmath.Exp(spread+own)*(1<<30)) / (1 << 30)
	w.turn = int64(cluster) % sc.turns
}

// perUnit returns the number of updates from all workers per unit of time. For a run with an end, it plays the complete
// run once. For an endless run, it uses the recorded mean.
func (sc *Scaler) perUnit(workers []emulated) float64 {
	n := sc.scaling.Updates
	sum, longest := 0.0, 0.0
	for j := range workers {
		w := &workers[j]
		if n == 0 {
			sum += 1 / (meanOf(w.shape) * w.factor)
			continue
		}
		w.random.Uint64() // skip the phase
		total := 0.0
		for range n {
			total += w.nextInterval()
		}
		total *= w.factor
		sum += float64(n) / total
		longest = max(longest, total)
	}
	if sc.scaling.Averaging == WholeRun {
		return float64(len(workers)) * float64(n) / longest
	}
	return sum
}

// timeOf returns the time of the next update of w. If clusters take turns, the clock of a cluster advances only during
// its turns.
func (sc *Scaler) timeOf(w *emulated) int64 {
	ns := float64(w.clock * sc.unitNS)
	if sc.turns > 1 {
		whole := math.Floor(ns / sc.turnNS)
		ns += float64(sc.turnNS * (float64(whole*float64(sc.turns-1)) + float64(w.turn)))
	}
	return int64(ns + 0.5)
}

// Interval draws the next interval of a worker. It is for closed-loop workers, whose update times differ from those in
// the trace. It must not be used together with Next.
func (sc *Scaler) Interval(worker int) olaf.Duration {
	w := &sc.workers[worker]
	return olaf.Duration(w.nextInterval() * w.factor * sc.unitNS * float64(olaf.Nanosecond))
}

// Total returns the number of updates, or 0 if there is no end.
func (sc *Scaler) Total() int { return sc.scaling.Workers * sc.scaling.Updates }

// Header returns the header of the scaled trace.
func (sc *Scaler) Header() *Header { return &sc.header }

// Next returns the next update: a recorded update with its new time and worker.
func (sc *Scaler) Next(u *Update) error {
	if len(sc.heap) == 0 {
		return io.EOF
	}
	w := sc.heap[0]
	*u = w.from.updates[w.at]
	u.GenNS, u.Worker, u.Cluster, u.Seq, u.BaseVersion = w.nextNS, w.worker, sc.scaling.Cluster(int(w.worker)), w.seq, 0
	w.seq++
	if int(w.seq) == sc.scaling.Updates {
		last := len(sc.heap) - 1
		sc.heap[0] = sc.heap[last]
		sc.heap = sc.heap[:last]
	} else {
		w.clock += float64(w.nextInterval() * w.factor)
		w.nextNS = sc.timeOf(w)
	}
	sc.siftDown(0)
	return nil
}

func (w *emulated) before(v *emulated) bool {
	return w.nextNS < v.nextNS || w.nextNS == v.nextNS && w.worker < v.worker
}

func (sc *Scaler) siftDown(i int) {
	for {
		child := 2*i + 1
		if child >= len(sc.heap) {
			return
		}
		if right := child + 1; right < len(sc.heap) && sc.heap[right].before(sc.heap[child]) {
			child = right
		}
		if !sc.heap[child].before(sc.heap[i]) {
			return
		}
		sc.heap[i], sc.heap[child] = sc.heap[child], sc.heap[i]
		i = child
	}
}

// ScaledStatistic contains the value of a statistic before and after scaling.
type ScaledStatistic struct {
	Name   string  `json:"name"`
	Source float64 `json:"source"`
	Scaled float64 `json:"scaled"`
}

// ScaleReport compares a scaled trace with the recording from which it was made.
type ScaleReport struct {
	Updates     uint64            `json:"updates"`
	Compression float64           `json:"compression"`
	Target      olaf.Rate         `json:"target_rate"`
	Achieved    olaf.Rate         `json:"achieved_rate"` // rate over the averaging window
	Averaging   string            `json:"averaging"`
	Kept        []ScaledStatistic `json:"kept"`
}

// Report compares the statistics of a scaled trace with those of the recording.
func (sc *Scaler) Report(source, scaled Statistics) ScaleReport {
	s := &sc.scaling
	report := ScaleReport{Updates: scaled.Updates, Compression: sc.header.Scaled.Compression, Target: s.Rate,
		Averaging: s.Averaging}
	perNS := 0.0
	if s.Averaging == WholeRun {
		if scaled.SpanNS > 0 {
			perNS = float64(scaled.Updates-1) / float64(scaled.SpanNS)
		}
	} else {
		for _, w := range scaled.PerWork {
			if w.Intervals.MeanNS > 0 {
				perNS += 1 / w.Intervals.MeanNS
			}
		}
	}
	report.Achieved = olaf.Rate(math.Round(perNS*1e3*float64(s.Frame.Bits()))) * olaf.Mbps
	if s.Drift {
		report.Kept = compareMoments("", source.Mean, scaled.Mean)
	} else {
		report.Kept = append(compareMoments("detrended ", source.MeanFlat, scaled.MeanFlat),
			compareMoments("raw ", source.Mean, scaled.Mean)...)
	}
	return report
}

func compareMoments(prefix string, a, b Moments) []ScaledStatistic {
	return []ScaledStatistic{{prefix + "CV", a.CV, b.CV}, {prefix + "lag-1 autocorrelation", a.Lag1, b.Lag1},
		{prefix + "burstiness", a.Burstiness, b.Burstiness}}
}
