package trace

import (
	"io"
	"math"
)

// trendHalf is half the length of the window for the moving mean that removes the drift from a worker's intervals.
// Intervals drift because episodes grow longer during training.
const trendHalf = 15

// Moments contains statistical moments of the intervals between updates.
type Moments struct {
	Count      int     `json:"count"` // number of intervals
	MeanNS     float64 `json:"mean_ns"`
	CV         float64 `json:"cv"`         // standard deviation divided by the mean
	Lag1       float64 `json:"lag1"`       // autocorrelation at lag 1
	Burstiness float64 `json:"burstiness"` // (sd − mean)/(sd + mean): −1 regular, 0 Poisson, towards 1 bursty
	MaxOverAvg float64 `json:"max_over_mean"`
}

// WorkerStatistics contains the statistics of one worker.
type WorkerStatistics struct {
	Worker    int     `json:"worker"`
	Cluster   int     `json:"cluster"`
	Updates   int     `json:"updates"`
	Intervals Moments `json:"intervals"`
	Detrended Moments `json:"detrended"` // intervals divided by their moving mean; their mean is about 1
	Reward    float64 `json:"reward"`    // mean reward over the worker's updates
	EnvSteps  float64 `json:"env_steps"` // mean per update
}

// Statistics contains the statistics of a trace.
type Statistics struct {
	Updates  uint64             `json:"updates"`
	SpanNS   int64              `json:"span_ns"` // from the first to the last update
	PerWork  []WorkerStatistics `json:"workers"`
	Mean     Moments            `json:"mean"`           // mean over the workers' moments of intervals
	MeanFlat Moments            `json:"mean_detrended"` // mean over the workers' moments of detrended intervals
	Total    Moments            `json:"aggregate"`      // moments of all updates together
	// Dispersion is the index of dispersion for intervals, for all updates together: the variance of sums of k gaps
	// divided by k times the squared mean, by k. It is 1 for a Poisson process.
	Dispersion map[int]float64 `json:"dispersion"`
	EarlyMean  float64         `json:"early_reward"` // mean reward of the first tenth of the updates …
	LateMean   float64         `json:"late_reward"`  // … and of the last
}

// series computes the moments of a stream of values in one pass. It subtracts the first value from all values, because
// cancellation would otherwise hide small variations around a large mean.
type series struct {
	n                int
	shift, previous  float64
	sum, square, lag float64
	largest          float64
}

func (s *series) add(v float64) {
	if s.n == 0 {
		s.shift, s.largest = v, v
	}
	x := v - s.shift
	s.lag += float64(s.previous * x) // the first x is 0
	s.sum += x
	s.square += float64(x * x)
	s.largest = max(s.largest, v)
	s.previous = x
	s.n++
}

func (s *series) moments() Moments {
	m := Moments{Count: s.n}
	if s.n == 0 {
		return m
	}
	n := float64(s.n)
	mean := s.sum / n
	variance := max(s.square/n-float64(mean*mean), 0)
	sd := math.Sqrt(variance)
	m.MeanNS = mean + s.shift
	if m.MeanNS > 0 {
		m.CV, m.MaxOverAvg = sd/m.MeanNS, s.largest/m.MeanNS
		m.Burstiness = (sd - m.MeanNS) / (sd + m.MeanNS)
	}
	if s.n > 1 && variance > 0 {
		// Σ(x_i − µ)(x_{i+1} − µ) = Σ x_i x_{i+1} − µ(2Σx − first − last) + (n−1)µ², where the first x is 0
		cross := s.lag - float64(mean*(2*s.sum-s.previous)) + float64((n-1)*mean*mean)
		m.Lag1 = cross / (n * variance)
	}
	return m
}

// flattener divides each value by the mean of the window around it. It works in one pass with bounded memory.
type flattener struct {
	recent []float64 // window around the current value, oldest first
	center int       // index of the window's current value in recent
	out    func(float64)
}

func (f *flattener) addValue(v float64) {
	f.recent = append(f.recent, v)
	if len(f.recent) > f.center+trendHalf {
		f.emit()
	}
}

func (f *flattener) emit() {
	mean, flat := meanOf(f.recent), 1.0
	if mean > 0 {
		flat = f.recent[f.center] / mean
	}
	f.out(flat)
	f.center++
	if f.center > trendHalf {
		f.recent = f.recent[:copy(f.recent, f.recent[1:])]
		f.center--
	}
}

// flushRest outputs the last values, whose windows are cut off by the end of the stream.
func (f *flattener) flushRest() {
	for f.center < len(f.recent) {
		f.emit()
	}
}

type workerTally struct {
	cluster, updates int
	lastNS           int64
	reward, steps    float64
	intervals, flat  series
	trend            flattener
}

// dispersionWindows lists the values of k for Statistics.Dispersion.
var dispersionWindows = [...]int{1, 4, 16, 64}

// Statistic computes Statistics incrementally. Add must be called for each update in order, and Result afterwards. The
// memory grows with the number of workers but not with the number of updates.
type Statistic struct {
	workers  []workerTally
	n        uint64
	firstNS  int64
	lastNS   int64
	total    series
	sums     [len(dispersionWindows)]series
	partial  [len(dispersionWindows)]float64
	inWindow [len(dispersionWindows)]int
	rewards  []float64 // every stride-th reward
	stride   uint64
}

// NewStatistic returns a Statistic for a trace with the given number of workers.
func NewStatistic(workers int) *Statistic {
	s := &Statistic{workers: make([]workerTally, workers), stride: 1}
	for i := range s.workers {
		w := &s.workers[i]
		w.trend.out = w.flat.add
	}
	return s
}

// Add adds the next update. Its worker must be in range.
func (s *Statistic) Add(u *Update) {
	if s.n == 0 {
		s.firstNS = u.GenNS
	} else {
		s.addGap(float64(u.GenNS - s.lastNS))
	}
	s.lastNS = u.GenNS
	s.keepReward(u.Reward)
	s.n++

	w := &s.workers[u.Worker]
	if w.updates > 0 {
		d := float64(u.GenNS - w.lastNS)
		w.intervals.add(d)
		w.trend.addValue(d)
	}
	w.cluster, w.lastNS = int(u.Cluster), u.GenNS
	w.updates++
	w.reward += u.Reward
	w.steps += float64(u.EnvSteps)
}

func (s *Statistic) addGap(d float64) {
	s.total.add(d)
	for i, k := range dispersionWindows {
		s.partial[i] += d
		s.inWindow[i]++
		if s.inWindow[i] == k {
			s.sums[i].add(s.partial[i])
			s.partial[i], s.inWindow[i] = 0, 0
		}
	}
}

// keepReward stores a reward. When there are too many, it drops every second stored reward.
func (s *Statistic) keepReward(r float64) {
	const most = 1 << 14
	if s.n%s.stride != 0 {
		return
	}
	s.rewards = append(s.rewards, r)
	if len(s.rewards) == most {
		for i := range most / 2 {
			s.rewards[i] = s.rewards[2*i]
		}
		s.rewards = s.rewards[:most/2]
		s.stride *= 2
	}
}

// Result returns the statistics of all updates that have been added.
func (s *Statistic) Result() Statistics {
	out := Statistics{Updates: s.n, SpanNS: s.lastNS - s.firstNS, Total: s.total.moments(),
		Dispersion: map[int]float64{}}
	for i := range s.workers {
		w := &s.workers[i]
		w.trend.flushRest()
		if w.updates == 0 {
			continue
		}
		n := float64(w.updates)
		out.PerWork = append(out.PerWork, WorkerStatistics{Worker: i, Cluster: w.cluster, Updates: w.updates,
			Intervals: w.intervals.moments(), Detrended: w.flat.moments(), Reward: w.reward / n, EnvSteps: w.steps / n})
	}
	out.Mean = meanMoments(out.PerWork, func(w *WorkerStatistics) *Moments { return &w.Intervals })
	out.MeanFlat = meanMoments(out.PerWork, func(w *WorkerStatistics) *Moments { return &w.Detrended })
	for i, k := range dispersionWindows {
		if m := s.sums[i].moments(); m.Count > 1 && out.Total.MeanNS > 0 {
			out.Dispersion[k] = float64(m.CV*m.CV) * float64(k)
		}
	}
	tenth := max(1, len(s.rewards)/10)
	if len(s.rewards) > 0 {
		out.EarlyMean, out.LateMean = meanOf(s.rewards[:tenth]), meanOf(s.rewards[len(s.rewards)-tenth:])
	}
	return out
}

func meanMoments(workers []WorkerStatistics, of func(*WorkerStatistics) *Moments) Moments {
	var m Moments
	n := 0.0
	for i := range workers {
		w := of(&workers[i])
		if w.Count < 2 {
			continue
		}
		n++
		m.Count += w.Count
		m.MeanNS += w.MeanNS
		m.CV += w.CV
		m.Lag1 += w.Lag1
		m.Burstiness += w.Burstiness
		m.MaxOverAvg += w.MaxOverAvg
	}
	if n > 0 {
		m.MeanNS, m.CV, m.Lag1, m.Burstiness, m.MaxOverAvg = m.MeanNS/n, m.CV/n, m.Lag1/n, m.Burstiness/n,
			m.MaxOverAvg/n
	}
	return m
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// MeasureSource reads all of source and returns its statistics. If the source is truncated or damaged, it returns the
// statistics of the intact part and the error.
func MeasureSource(source Source) (Statistics, error) {
	s := NewStatistic(source.Header().Workers)
	var u Update
	for {
		if err := source.Next(&u); err == io.EOF {
			return s.Result(), nil
		} else if err != nil {
			return s.Result(), err
		}
		s.Add(&u)
	}
}
