package pktgen

import (
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/exactmath"
)

// Distributions of burst lengths and gaps between bursts.
const (
	Fixed       = "fixed"
	Geometric   = "geometric"
	Exponential = "exp"
)

// Burst is a workload that consists of bursts at the line rate. The gaps between them result in the mean rate. For
// every update, a cluster is drawn by weight and then one of its workers uniformly. A worker that has sent all its
// updates is not drawn again.
type Burst struct {
	Placement
	UpdatesPerWorker int       `json:"updates_per_worker"`
	Size             olaf.Size `json:"size"` // layer 2 size of every frame
	// Values is the number of 32-bit gradients per update; 0 means as many as fit into a frame. More values take
	// several consecutive frames, each a segment of the vector; the last one may be shorter.
	Values   int       `json:"values,omitempty"`
	LineRate olaf.Rate `json:"line_rate"` // rate within a burst
	MeanRate olaf.Rate `json:"mean_rate"` // mean rate over bursts and gaps, at most LineRate
	// BurstPackets is the (mean) length of a burst in updates; 1 means smooth traffic.
	BurstPackets int    `json:"burst_packets"`
	BurstDist    string `json:"burst_dist"` // Fixed or Geometric
	GapDist      string `json:"gap_dist"`   // Fixed or Exponential
	// ClusterSigma is the spread of the log-normal cluster weights; 0 makes all clusters equal. Weights are redrawn
	// every HoldBursts bursts.
	ClusterSigma float64 `json:"cluster_sigma"`
	HoldBursts   int     `json:"weights_hold_bursts"`
	// ClusterRunProb is the probability that a packet has the same cluster as the packet before it in the burst,
	// without a draw.
	ClusterRunProb float64 `json:"cluster_run_prob"`
	// ActiveClusters is the number of clusters per burst, drawn uniformly for each; 0 means all.
	ActiveClusters int `json:"active_clusters"`
}

// Table1Burst returns the workload of the paper's micro-benchmarks (§8.1). Its traffic shape was fitted to Table 1 in the
// paper.
func Table1Burst() Burst {
	return Burst{
		Placement: Placement{Workers: 27, Clusters: 9}, UpdatesPerWorker: 500, Size: 256,
		LineRate: 100 * olaf.Gbps, MeanRate: 60 * olaf.Gbps,
		BurstPackets: 135, BurstDist: Fixed, GapDist: Fixed,
		ClusterSigma: 1, HoldBursts: 3,
	}
}

// Limits of a workload. A device may support less, which is checked when it is programmed.
const (
	maxWorkers   = 1 << 16
	maxUpdates   = 10_000_000
	maxPackets   = 1 << 29 // 8 words per packet, with 32-bit word addresses
	maxValues    = 1 << 28
	maxFlows     = 1 << 16
	maxBurst     = 100_000
	maxSigma     = 10
	busRate      = 128 * olaf.Gbps // 64 bytes per cycle
	clockSeconds = 1 << 48 / float64(clockHz)
)

// Validate returns an error for the first invalid field. The error matches ErrWorkload.
func (w *Burst) Validate() error {
	checks := []struct {
		field string
		bad   bool
		say   string
	}{
		{"workers", w.Workers < 1 || w.Workers > maxWorkers,
			fmt.Sprintf("%d workers; use 1 to %d", w.Workers, maxWorkers)},
		{"clusters", w.Clusters < 1, fmt.Sprintf("%d clusters; at least one is needed", w.Clusters)},
		{"clusters", w.Clusters > w.Workers,
			fmt.Sprintf("%s cannot fill %s; every cluster needs one", olaf.Plural(w.Workers, "worker"),
				olaf.Plural(w.Clusters, "cluster"))},
		{"updates_per_worker", w.UpdatesPerWorker < 1 || w.UpdatesPerWorker > maxUpdates,
			fmt.Sprintf("%d updates per worker; use 1 to %d", w.UpdatesPerWorker, maxUpdates)},
		{"updates_per_worker", w.Total() > maxPackets,
			fmt.Sprintf("%d updates in all; at most %d can be addressed", w.Total(), maxPackets)},
		{"size", w.Size < olaf.HeaderBytes || w.Size > olaf.MaxFrame,
			fmt.Sprintf("size %v; a frame has %v to %v", w.Size, olaf.FrameSize(0), olaf.MaxFrame)},
		{"size", (w.Size-olaf.HeaderBytes)%olaf.LaneBytes != 0,
			fmt.Sprintf("size %v is not a whole number of lanes; use %d + 4 n bytes", w.Size, olaf.HeaderBytes)},
		{"values", w.Values < 0 || w.Values > maxValues,
			fmt.Sprintf("vectors of %d values; use 1 to %d", w.Values, maxValues)},
		{"values", w.Values > 0 && w.Values < w.Lanes(),
			fmt.Sprintf("a vector of %d values in frames of %v, which hold %d; make frames of %v", w.Values, w.Size,
				w.Lanes(), olaf.FrameSize(w.Values))},
		{"values", w.Values > 0 && w.Lanes() == 0, fmt.Sprintf("frames of %v hold no values", w.Size)},
		{"values", w.Flows() > maxFlows, fmt.Sprintf(
			"%d workers with %d segments of a vector each; together there can be %d, one a flow of the generator",
			w.Workers, w.Segments(), maxFlows)},
		{"values", w.Frames() > maxPackets,
			fmt.Sprintf("%d frames of updates in all; at most %d can be addressed", w.Frames(), maxPackets)},
		{"line_rate", w.LineRate <= 0, fmt.Sprintf("line rate %v must be positive", w.LineRate)},
		{"line_rate", w.LineRate > busRate,
			fmt.Sprintf("line rate %v is above the %v that the data path moves", w.LineRate, busRate)},
		{"mean_rate", w.MeanRate <= 0, fmt.Sprintf("rate %v must be positive", w.MeanRate)},
		{"mean_rate", w.MeanRate > w.LineRate,
			fmt.Sprintf("rate %v is above the line rate %v", w.MeanRate, w.LineRate)},
		{"burst_packets", w.BurstPackets < 1 || w.BurstPackets > maxBurst,
			fmt.Sprintf("burst of %d packets; use 1 (smooth) to %d", w.BurstPackets, maxBurst)},
		{"burst_dist", !slices.Contains([]string{Fixed, Geometric}, w.BurstDist),
			fmt.Sprintf("unknown burst distribution %q; use fixed or geometric", w.BurstDist)},
		{"gap_dist", !slices.Contains([]string{Fixed, Exponential}, w.GapDist),
			fmt.Sprintf("unknown gap distribution %q; use fixed or exp", w.GapDist)},
		{"cluster_sigma", !(w.ClusterSigma >= 0 && w.ClusterSigma <= maxSigma),
			fmt.Sprintf("cluster sigma %v; use 0 to %d", w.ClusterSigma, maxSigma)},
		{"weights_hold_bursts", w.HoldBursts < 1,
			fmt.Sprintf("weights held for %d bursts; at least 1 is needed", w.HoldBursts)},
		{"cluster_run_prob", !(w.ClusterRunProb >= 0 && w.ClusterRunProb < 1),
			fmt.Sprintf("cluster run probability %v; use 0 to below 1", w.ClusterRunProb)},
		{"active_clusters", w.ActiveClusters < 0 || w.ActiveClusters > w.Clusters,
			fmt.Sprintf("%d active clusters of %d; use 0 for all", w.ActiveClusters, w.Clusters)},
	}
	for _, c := range checks {
		if c.bad {
			return olaf.InField(c.field, fmt.Errorf("%w: %s", ErrWorkload, c.say))
		}
	}
	// Random gaps may exceed the mean, so half of the clock's range is reserved for them.
	if s := w.Seconds(); s > clockSeconds/2 {
		return olaf.InField("updates_per_worker",
			fmt.Errorf("%w: at %v it lasts %.0f s, more than half the range of the generator's clock (%.0f s)",
				ErrWorkload, w.MeanRate, s, clockSeconds))
	}
	return nil
}

// Total returns the total number of updates from all workers.
func (w *Burst) Total() int { return w.Workers * w.UpdatesPerWorker }

// Lanes returns the number of gradients in a frame.
func (w *Burst) Lanes() int { return lanesOf(w.Size) }

// Segments returns the number of frames in an update.
func (w *Burst) Segments() int { return countSegments(w.Values, w.Size) }

// Frames returns the total number of frames from all workers.
func (w *Burst) Frames() int { return w.Total() * w.Segments() }

// Flows returns the number of generator flows that the workload needs.
func (w *Burst) Flows() int { return w.Workers * w.Segments() }

// countSegments returns the number of frames that a vector with the given number of values needs.
func countSegments(values int, frame olaf.Size) int {
	lanes := lanesOf(frame)
	if lanes == 0 {
		return 1
	}
	return max(1, (values+lanes-1)/lanes)
}

// lanesOf returns the number of gradients in a frame.
func lanesOf(frame olaf.Size) int { return int(frame-olaf.HeaderBytes) / olaf.LaneBytes }

// segmentSize returns the length of the frame for a segment. The last segment contains the rest of the vector.
func segmentSize(segment, values int, frame olaf.Size) olaf.Size {
	last := countSegments(values, frame) - 1
	if segment < last || last == 0 {
		return frame
	}
	return olaf.FrameSize(values - last*lanesOf(frame))
}

// vectorSize returns the total length of all frames in an update.
func (w *Burst) vectorSize() olaf.Size {
	last := w.Segments() - 1
	return olaf.Size(last)*w.Size + segmentSize(last, w.Values, w.Size)
}

// Seconds returns the duration of the workload at its mean rate.
func (w *Burst) Seconds() float64 {
	return float64(w.Total()) * float64(w.vectorSize().Bits()) / float64(w.MeanRate)
}

// burstLength draws the number of packets in a burst. It is fixed or has a geometric distribution on 1, 2, … with the
// same mean. uniform is a random number.
func (w *Burst) burstLength(uniform float64) int {
	if w.BurstDist == Fixed || w.BurstPackets == 1 {
		return w.BurstPackets
	}
	return 1 + int(math.Floor(exactmath.Log(1-uniform)/exactmath.Log(1-1/float64(w.BurstPackets))))
}
