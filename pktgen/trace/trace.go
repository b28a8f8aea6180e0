// Package trace records and replays training runs. A trace lists which worker had an update ready at which time, and
// the properties of the update. A trace does not depend on the network through which it is replayed, because a recorded
// update ends where it is passed to the network interface.
//
// The format olaftrace/1 is described in docs/reference/trace-format.md. Traces are streamed, so that 100 million
// updates are never in memory at once, and a truncated file is readable up to the place where it ends. The package also
// provides statistics, block-bootstrap scaling to any number of workers, CSV, and the conversion for the packet
// generator. An RxWriter writes the frames that a simulation delivers, for comparison with other simulators.
package trace

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/olafctl/olaf"
)

// Kinds of errors; match them with errors.Is.
var (
	// ErrFormat is the error for data that is not a trace or that is damaged.
	ErrFormat = olaf.NewError(olaf.Usage, "not a readable trace")
	// ErrVersion is the error for a trace that was written by a newer version of olafctl.
	ErrVersion = olaf.NewError(olaf.Usage, "trace is from a newer version")
	// ErrTruncated is the error for a trace that ends before its end mark. The updates before are valid.
	ErrTruncated = olaf.NewError(olaf.Usage, "trace is cut off")
	// ErrInvalid is the error for an update that breaks a rule of the format.
	ErrInvalid = olaf.NewError(olaf.Usage, "invalid update in trace")
	// ErrPayload is the error for a payload file that does not belong to the trace.
	ErrPayload = olaf.NewError(olaf.Usage, "payload does not match the trace")
)

// Update is a finished update from a worker. It does not depend on the network.
type Update struct {
	GenNS       int64 // when the iteration ended and the update was handed over, in ns since the start
	CostNS      int64 // CPU time of the iteration at speed 1; allows re-timing
	BaseVersion uint64
	Digest      uint64  // FNV-1a 64 of the gradients as little-endian float32
	Reward      float64 // mean return of the iteration's episodes
	Seq         uint32  // per worker, from 0, without gaps
	Episodes    uint32
	EnvSteps    uint32
	GradNorm    float32
	Worker      olaf.WorkerID
	Cluster     olaf.ClusterID
}

// Clocks of recordings.
const (
	Virtual = "virtual" // deterministic: a cost model determines the times of iterations
	Wall    = "wall"    // real time on one machine
)

// Header describes the origin of a trace. If the clock is virtual, the same header always means the same updates.
type Header struct {
	Tool      string          `json:"tool"`
	GoVersion string          `json:"go_version,omitempty"`
	GOOS      string          `json:"goos,omitempty"`
	GOARCH    string          `json:"goarch,omitempty"`
	GOAMD64   string          `json:"goamd64,omitempty"` // fused multiply-add changes the last bits of results
	Box2D     string          `json:"box2d,omitempty"`
	Seed      uint64          `json:"seed"`
	Clock     string          `json:"clock"`
	Env       string          `json:"env,omitempty"`
	Workers   int             `json:"workers"`
	Clusters  int             `json:"clusters"`
	Lanes     int             `json:"lanes"` // number of gradients in an update
	Network   string          `json:"network,omitempty"`
	Payload   bool            `json:"payload,omitempty"`         // the trace has a payload file
	Initial   string          `json:"initial_weights,omitempty"` // SHA-256 of the little-endian float32 weights
	Speeds    []float64       `json:"speeds,omitempty"`          // by worker: its time over the fastest possible time
	Job       json.RawMessage `json:"job,omitempty"`             // all training options
	Scaled    *Scaled         `json:"scaled,omitempty"`          // set if the trace was made from another trace
}

// Scaled describes how a trace was made from a recording.
type Scaled struct {
	Source      string    `json:"source"` // SHA-256 over the source's header and updates
	Method      string    `json:"method"` // bootstrap method and shape
	Block       int       `json:"block"`
	Spread      float64   `json:"spread"`      // time of the slowest cluster divided by the fastest's
	Jitter      float64   `json:"jitter"`      // standard deviation of the workers' log speed
	Compression float64   `json:"compression"` // recorded time divided by emulated time
	Rate        olaf.Rate `json:"rate"`
	Averaging   string    `json:"averaging"`
	FrameBytes  olaf.Size `json:"frame_bytes"`
	Active      int       `json:"active_clusters,omitempty"`
	Seed        uint64    `json:"seed"`
}

// maxLanes is the maximum number of values in an update of a trace. An update with more than olaf.MaxLanes values takes
// several frames.
const maxLanes = 1 << 24

// Check validates h. The error matches ErrFormat.
func (h *Header) Check() error {
	switch {
	case h.Workers < 1 || h.Workers > 1<<16:
		return fmt.Errorf("%w: %d workers; there are 1 to 65536", ErrFormat, h.Workers)
	case h.Clusters < 1 || h.Clusters > h.Workers:
		return fmt.Errorf("%w: %d clusters for %d workers; every cluster needs a worker", ErrFormat, h.Clusters,
			h.Workers)
	case h.Lanes < 0 || h.Lanes > maxLanes:
		return fmt.Errorf("%w: updates of %d lanes; a trace holds up to %d", ErrFormat, h.Lanes, maxLanes)
	case h.Clock != Virtual && h.Clock != Wall:
		return fmt.Errorf("%w: unknown clock %q; there are %s and %s", ErrFormat, h.Clock, Virtual, Wall)
	}
	return nil
}

// Source is a stream of updates in order of generation. Next fills u, or returns io.EOF after the last update. Any
// other error ends the stream.
type Source interface {
	Header() *Header
	Next(u *Update) error
}

// order checks rules that concern several updates of a trace: times do not decrease, and each worker counts from 0
// without gaps and stays in its cluster.
type order struct {
	header  *Header
	rows    uint64
	lastNS  int64
	next    []uint32
	cluster []int32
}

func newOrder(h *Header) *order {
	o := &order{header: h, next: make([]uint32, h.Workers), cluster: make([]int32, h.Workers)}
	for i := range o.cluster {
		o.cluster[i] = -1
	}
	return o
}

// checkNext checks the next update. The error matches ErrInvalid and includes the number of the row, counted from 1.
func (o *order) checkNext(u *Update) error {
	var say string
	switch {
	case u.GenNS < o.lastNS:
		say = fmt.Sprintf("its time %d ns is before its predecessor's %d ns", u.GenNS, o.lastNS)
	case int(u.Worker) >= o.header.Workers:
		say = fmt.Sprintf("worker %d is unknown; the header has %d", u.Worker, o.header.Workers)
	case int(u.Cluster) >= o.header.Clusters:
		say = fmt.Sprintf("cluster %d is unknown; the header has %d", u.Cluster, o.header.Clusters)
	case u.Seq != o.next[u.Worker]:
		say = fmt.Sprintf("worker %d has sequence %d where %d is due", u.Worker, u.Seq, o.next[u.Worker])
	case o.cluster[u.Worker] >= 0 && o.cluster[u.Worker] != int32(u.Cluster):
		say = fmt.Sprintf("worker %d is in cluster %d and was in %d", u.Worker, u.Cluster, o.cluster[u.Worker])
	case math.IsNaN(u.Reward) || math.IsInf(u.Reward, 0):
		say = fmt.Sprintf("its reward is %v", u.Reward)
	case u.CostNS < 0:
		say = fmt.Sprintf("its cost is %d ns", u.CostNS)
	default:
		o.rows++
		o.lastNS = u.GenNS
		o.next[u.Worker]++
		o.cluster[u.Worker] = int32(u.Cluster)
		return nil
	}
	return fmt.Errorf("%w: update %d: %s", ErrInvalid, o.rows+1, say)
}

// RewardQ248 returns the reward in the format used in frames, signed Q24.8, limited to its range.
func (u *Update) RewardQ248() int32 {
	v := math.Round(u.Reward * 256)
	return int32(min(max(v, math.MinInt32), math.MaxInt32))
}
