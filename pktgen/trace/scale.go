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

// ErrScaling is the kind of every refused scaling.
var ErrScaling = olaf.NewError(olaf.Usage, "cannot scale the trace")

// Averagings: over what the target rate is met.
const (
	// Stationary meets the rate while all workers send.
	Stationary = "stationary"
	// WholeRun meets the rate from the first update to the last, so that slow workers that finish late count in full.
	WholeRun = "whole-run"
)

// Scaling says what to make of a recording: how many workers, how alike, at which rate.
type Scaling struct {
	pktgen.Placement
	Updates   int       // per worker; 0 never ends, which suits a Source but no file
	Rate      olaf.Rate // of all workers together
	Frame     olaf.Size // of every update
	Line      olaf.Rate // what the link carries; Rate must not exceed it
	Averaging string    // Stationary or WholeRun
	Block     int       // updates that are replayed in a row before the bootstrap jumps; keeps their autocorrelation
	Drift     bool      // keep how intervals grow as the policy learns, instead of taking it out
	Spread    float64   // time of the slowest cluster over that of the fastest, geometric in between
	Jitter    float64   // standard deviation of the log of a worker's own speed
	// ActiveClusters lets only so many clusters send at once, in turns of TurnUpdates updates per worker; 0 is all.
	ActiveClusters int
	TurnUpdates    float64
	Seed           uint64
}

// DefaultScaling is 27 workers in 9 clusters at 60 Gbps, as in the paper's testbed.
func DefaultScaling() Scaling {
	return Scaling{Placement: pktgen.Placement{Workers: 27, Clusters: 9}, Updates: 500, Rate: 60 * olaf.Gbps,
		Frame: 256,
		Line:  100 * olaf.Gbps, Averaging: Stationary, Block: 25, Spread: 1, Jitter: 0.1, TurnUpdates: 5, Seed: 1}
}

// Check says what is wrong. The error matches ErrScaling.
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

// Recording is a recorded trace in memory, by worker, ready to be resampled.
type Recording struct {
	header  Header
	digest  string
	span    float64 // mean interval of a worker, ns
	workers []recorded
}

// recorded is one worker: its updates after the first and the interval before each, as raw shape (over the worker's
// mean) and flat shape (over the moving mean).
type recorded struct {
	updates   []Update
	raw, flat []float64
}

// Load reads all of source. A recording that is cut off is refused like any other damage.
func Load(source Source) (*Recording, error) {
	r := &Recording{header: *source.Header()}
	all := make([][]Update, r.header.Workers)
	digest, _, err := scan(source, func(u *Update) { all[u.Worker] = append(all[u.Worker], *u) })
	if err != nil {
		return nil, err
	}
	r.digest = digest
	for _, updates := range all {
		if len(updates) < 3 {
			continue
		}
		w := resample(updates)
		r.workers = append(r.workers, w)
		r.span += float64(updates[len(updates)-1].GenNS-updates[0].GenNS) / float64(len(updates)-1)
	}
	if len(r.workers) == 0 {
		return nil, fmt.Errorf("%w: no worker of it has three updates", ErrScaling)
	}
	r.span /= float64(len(r.workers))
	return r, nil
}

// Identify reads all of source and returns the SHA-256 over its header and updates, and how many there are.
func Identify(source Source) (digest string, updates uint64, err error) {
	return scan(source, func(*Update) {})
}

// scan shows every update to see and identifies the whole.
func scan(source Source, see func(*Update)) (digest string, updates uint64, err error) {
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

func resample(updates []Update) recorded {
	w := recorded{updates: updates[1:]}
	mean := float64(updates[len(updates)-1].GenNS-updates[0].GenNS) / float64(len(updates)-1)
	trend := flattener{out: func(v float64) { w.flat = append(w.flat, v) }}
	for i := range w.updates {
		d := float64(updates[i+1].GenNS - updates[i].GenNS)
		w.raw = append(w.raw, d/mean)
		trend.add(d)
	}
	trend.finish()
	return w
}

// Digest is the SHA-256 over the recording's header and updates.
func (r *Recording) Digest() string { return r.digest }

func (w *recorded) shape(drift bool) []float64 {
	if drift {
		return w.raw
	}
	return w.flat
}

// bootstrap replays one recorded worker in random blocks.
type bootstrap struct {
	from   *recorded
	shape  []float64
	random rand.PCG
	at     int
	left   int
	block  int
}

func (b *bootstrap) start(from *recorded, s *Scaling, worker int) {
	*b = bootstrap{from: from, shape: from.shape(s.Drift), block: min(s.Block, len(from.raw))}
	b.random.Seed(s.Seed, uint64(worker))
}

// next moves to the next update and returns the interval before it, in mean intervals of its worker.
func (b *bootstrap) next() float64 {
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

// emulated is one worker of the scaled trace.
type emulated struct {
	bootstrap
	factor float64 // its time over the recorded
	clock  float64 // in units of the mean interval
	nextNS int64
	seq    uint32
	worker olaf.WorkerID
	turn   int64 // which of the turns is its cluster's
}

// Scaler is a Source of scaled updates. It allocates nothing per update.
type Scaler struct {
	scaling Scaling
	header  Header
	unitNS  float64 // one mean interval of an emulated worker of factor 1
	turns   int64
	turnNS  float64 // length of a turn
	heap    []*emulated
	workers []emulated
}

// NewScaler prepares to make of r what s asks for. The error matches ErrScaling.
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
		sc.begin(&workers[j], r, j)
	}
	frameNS := float64(s.Frame.Bits()) / float64(s.Rate) * 1e9
	sc.workers = workers
	sc.unitNS = frameNS * sc.perUnit(workers) / float64(sc.turns)
	sc.turnNS = s.TurnUpdates * frameNS * float64(s.Workers) / float64(sc.turns)
	for j := range workers {
		w := &workers[j]
		sc.begin(w, r, j)
		phase := float64(w.random.Uint64()>>11) * (1.0 / (1 << 53))
		w.clock = w.next() * w.factor * phase
		w.nextNS = sc.timeOf(w)
		sc.heap = append(sc.heap, w)
	}
	for i := len(sc.heap)/2 - 1; i >= 0; i-- {
		sc.sink(i)
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

// begin gives worker j its source, its speed and its cluster's turn.
func (sc *Scaler) begin(w *emulated, r *Recording, j int) {
	s := &sc.scaling
	*w = emulated{worker: olaf.WorkerID(j)}
	w.start(&r.workers[j%len(r.workers)], s, j)
	cluster := int(s.Cluster(j))
	spread := 0.0
	if s.Clusters > 1 {
		spread = float64(exactmath.Log(s.Spread) * (float64(cluster)/float64(s.Clusters-1) - 0.5))
	}
	own := float64(exactmath.NormFloat64(rand.New(rand.NewPCG(s.Seed, 1<<32+uint64(j)))) * s.Jitter)
	// Rounded to 30 bits, as in every run that was kept before exactmath.
	w.factor = math.Round(exactmath.Exp(spread+own)*(1<<30)) / (1 << 30)
	w.turn = int64(cluster) % sc.turns
}

// perUnit is how many updates all workers together make per unit of time, by playing their whole run once, or from the
// recorded mean where the run does not end.
func (sc *Scaler) perUnit(workers []emulated) float64 {
	n := sc.scaling.Updates
	sum, longest := 0.0, 0.0
	for j := range workers {
		w := &workers[j]
		if n == 0 {
			sum += 1 / (average(w.shape) * w.factor)
			continue
		}
		w.random.Uint64() // the phase
		total := 0.0
		for range n {
			total += w.next()
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

// timeOf is the instant of w's next update. Where clusters take turns, a cluster's own clock only runs in its turns.
func (sc *Scaler) timeOf(w *emulated) int64 {
	ns := float64(w.clock * sc.unitNS)
	if sc.turns > 1 {
		whole := math.Floor(ns / sc.turnNS)
		ns += float64(sc.turnNS * (float64(whole*float64(sc.turns-1)) + float64(w.turn)))
	}
	return int64(ns + 0.5)
}

// Interval draws the next interval of one worker by itself, in picoseconds: what a worker that waits for answers needs,
// whose instants are not those of the trace. It must not be mixed with Next.
func (sc *Scaler) Interval(worker int) olaf.Duration {
	w := &sc.workers[worker]
	return olaf.Duration(w.next() * w.factor * sc.unitNS * float64(olaf.Nanosecond))
}

// Total is how many updates there will be, 0 if they do not end.
func (sc *Scaler) Total() int { return sc.scaling.Workers * sc.scaling.Updates }

// Header says how the trace was made.
func (sc *Scaler) Header() *Header { return &sc.header }

// Next makes the next update: what was recorded, at its new time, under its new worker.
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
		w.clock += float64(w.next() * w.factor)
		w.nextNS = sc.timeOf(w)
	}
	sc.sink(0)
	return nil
}

func (w *emulated) before(v *emulated) bool {
	return w.nextNS < v.nextNS || w.nextNS == v.nextNS && w.worker < v.worker
}

func (sc *Scaler) sink(i int) {
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

// Kept is one statistic before and after scaling.
type Kept struct {
	Name   string  `json:"name"`
	Source float64 `json:"source"`
	Scaled float64 `json:"scaled"`
}

// ScaleReport says what a scaling kept and by how much it is off.
type ScaleReport struct {
	Updates     uint64    `json:"updates"`
	Compression float64   `json:"compression"`
	Target      olaf.Rate `json:"target_rate"`
	Achieved    olaf.Rate `json:"achieved_rate"` // over the averaging's span
	Averaging   string    `json:"averaging"`
	Kept        []Kept    `json:"kept"`
}

// Report compares a scaled trace's statistics with its recording's.
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
		report.Kept = keptOf("", source.Mean, scaled.Mean)
	} else {
		report.Kept = append(keptOf("detrended ", source.MeanFlat, scaled.MeanFlat),
			keptOf("raw ", source.Mean, scaled.Mean)...)
	}
	return report
}

func keptOf(prefix string, a, b Moments) []Kept {
	return []Kept{{prefix + "CV", a.CV, b.CV}, {prefix + "lag-1 autocorrelation", a.Lag1, b.Lag1},
		{prefix + "burstiness", a.Burstiness, b.Burstiness}}
}
