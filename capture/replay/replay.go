// Package replay sends a capture of OLAF frames through a queue, as if the queue were at the place of the capture. Its
// input is timed arrivals, and its output is timed deliveries and counters.
//
// A replay has no tables. The cluster and the worker of a frame are those in its header, all 65,536 clusters are
// allowed, and no worker can be misidentified. Frames of other kinds, and ACKs, which never pass through the queue,
// count as bypassed. Broken frames count as malformed. Neither kind is delivered.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/ages"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
)

// schema is the schema name of a Result in JSON form.
const schema = "olafctl.replay/v2"

// ErrTruncated is returned if gradients are needed but the capture contains only parts of the frames.
var ErrTruncated = olaf.NewError(olaf.Usage, "the capture did not keep whole frames")

// Config configures the queue.
type Config struct {
	Queue  string        // one of engine.DisciplineNames
	Engine engine.Config // Clusters and LaneMemory are set by the replay
	Output engine.Output // rate and cycles of the output
	// Lanes merges gradients and passes them to the sink, as needed for writing frames. It costs 9 kB per slot.
	Lanes bool
	// ClockErrorNS bounds the difference between the clocks of packets and workers; if nil, the capture's bound is
	// used.
	ClockErrorNS *int64
}

// ClockError returns the bound in ns on the difference between the clocks of packets and workers. The value is missing
// if neither the configuration nor the capture has a bound.
func (c *Config) ClockError(src *capture.Decoder) results.Float {
	if c.ClockErrorNS != nil {
		return results.Float(*c.ClockErrorNS)
	}
	return src.ClockErrorNS()
}

// Delivery is a frame that left the queue. It is valid only during the call.
type Delivery struct {
	olaf.Observation                // At is on the decoder's run clock
	Addresses        olaf.Addresses // addresses from the newest contributor's frame
	Lanes            []int32        // nil unless Config.Lanes is set
}

// Sink receives deliveries in order of time. If it returns an error, the replay ends.
type Sink interface {
	Deliver(d *Delivery) error
}

// declared contains the counters and metrics of a replay. The counter sent includes all packets in the capture.
var declared = func() *metric.Declaration {
	d := metric.OfQueue(engine.FlowLedger(), engine.SumsLedger())
	for name, doc := range map[string]string{"sent": "packets in the capture", "bypassed": "not OLAF, or ACKs",
		"malformed": "broken OLAF frames"} {
		d.Ledger.Counters[d.Ledger.Index(name)].Doc = doc
	}
	return d
}()

// Result is the outcome of a replay. Its counters have the same names and meanings as those in a bench row, but sent
// includes all packets in the capture.
type Result struct {
	Schema        string `json:"schema"`
	Queue         string `json:"queue"`
	OutRateBPS    int64  `json:"out_rate_bps"` // the limiter's rate, nearest to the requested one
	Slots         int    `json:"slots"`
	DequeueCycles int    `json:"dequeue_cycles"`
	MergeCycles   int    `json:"merge_cycles"`
	OverheadBytes int    `json:"overhead_bytes"`

	Counts  olaf.Counts   `json:"*"` // fields of the result itself in JSON
	Lost    int64         `json:"lost"`
	LostPct results.Float `json:"lost_pct"` // share of sent packets
	// CountIn sums the count fields of accepted arrivals. It exceeds their number if an earlier hop merged updates.
	CountIn int64 `json:"count_in"`

	Clusters       int           `json:"clusters"` // number of distinct clusters seen
	Workers        int           `json:"workers"`  // number of distinct pairs of cluster and worker
	FirstArrivalNS int64         `json:"first_arrival_ns"`
	LastDeliveryNS int64         `json:"last_delivery_ns"`
	Utilisation    results.Float `json:"utilisation"` // utilisation of the output, from the first arrival to the last delivery
	// AggregationsCDF gives the share of delivered frames whose newest update absorbed at most 0, 1, 2 … other updates.
	AggregationsCDF []float64 `json:"aggregations_cdf"`
	// StampsNS is the resolution of the capture's stamps. If the queue is faster than that, Withheld lists the fields
	// that depend on the resolution, which are null in JSON, and WithheldWhy gives the reason.
	StampsNS    float64  `json:"stamp_resolution_ns"`
	Withheld    []string `json:"withheld,omitempty"`
	WithheldWhy string   `json:"withheld_reason,omitempty"`
	// SameClock means that arrivals and generation times come from one clock, as ages require.
	SameClock bool `json:"same_clock"`
	// Arriving contains the ages in the capture, Ages those behind the queue.
	Arriving *ages.Ages `json:"ages_arriving"`
	Ages     *ages.Ages `json:"ages"`
	// MergedArrivals counts updates that were merged before the capture, whose contributors are unknown.
	MergedArrivals int64          `json:"merged_arrivals"`
	Capture        capture.Losses `json:"capture"`

	// Valid means that the counters balance and the capture reports no loss; otherwise Reason gives the reason.
	Valid   bool   `json:"valid"`
	Reason  string `json:"reason,omitempty"`
	Partial bool   `json:"partial,omitempty"` // the replay ended before the capture
}

// plain is a Result without methods, which encoding/json can encode without calling MarshalJSON.
type plain Result

// MarshalJSON writes the counters as fields of the result. Withheld counters are null.
func (r Result) MarshalJSON() ([]byte, error) {
	raw, err := metric.Inline(plain(r))
	if err != nil || len(r.Withheld) == 0 {
		return raw, err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	for _, name := range r.Withheld {
		if _, written := members[name]; written {
			members[name] = json.RawMessage("null")
		}
	}
	return json.Marshal(members)
}

// checkEvery is the number of arrivals after which the context is checked again.
const checkEvery = 4096

// Run replays the frames from src and passes deliveries to sink, which may be nil. At the end of the capture, it
// delivers the frames that are still in the queue. If src, sink or ctx returns an error, Run returns it with a partial
// result for the frames before. For configuration errors, which match engine.ErrConfig, there is no result.
func Run(ctx context.Context, src *capture.Decoder, cfg Config, sink Sink) (*Result, error) {
	r, err := newRun(cfg, sink)
	if err != nil {
		return nil, err
	}
	err = r.playCapture(ctx, src)
	if err == nil {
		r.queue.Drain()
		err = r.failed
	}
	result := r.buildResult(src, err != nil)
	var broken *capture.Error
	if errors.As(err, &broken) {
		result.Valid, result.Reason = false, err.Error()
	}
	return result, err
}

// run is a replay in progress.
type run struct {
	cfg       Config
	queue     *engine.Port
	sink      Sink
	delivery  Delivery
	addresses []olaf.Addresses // by slot, grown as slots are used
	lanes     []int32
	failed    error // error returned by the sink

	arriving, leaving *ages.Meter
	stamps            StampCheck

	merges         []int64 // delivered frames by number of merged updates
	seen           map[uint32]struct{}
	arrived        bool
	first, last    olaf.Time
	mergedArrivals int64
	refused        int64 // updates that were rejected, at which the replay ended
}

func newRun(cfg Config, sink Sink) (*run, error) {
	cfg.Engine.Clusters, cfg.Engine.LaneMemory = engine.MaxClusters, 0
	cfg.Engine.Provenance = true // needed for ages
	if cfg.Lanes {
		cfg.Engine.LaneMemory = olaf.MaxLanes
	}
	r := &run{
		cfg: cfg, sink: sink, lanes: make([]int32, olaf.MaxLanes),
		seen: make(map[uint32]struct{}), arriving: ages.New(declared), leaving: ages.New(declared),
	}
	var err error
	if r.queue, err = engine.NewPort(cfg.Queue, cfg.Engine, cfg.Output, r); err != nil {
		return nil, err
	}
	r.stamps = NewStampCheck(r.queue.Output())
	return r, nil
}

func (r *run) playCapture(ctx context.Context, src *capture.Decoder) error {
	var a capture.Arrival
	for n := 0; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch err := src.Next(&a); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case a.Frame.Kind() != olaf.KindUpdate:
			continue
		}
		if a.Truncated && r.cfg.Lanes {
			r.refused++
			return &capture.Error{File: src.Name(), Packet: a.Number, Kind: ErrTruncated,
				Advice: "capture with a snapshot length of 9036 or more, or replay without writing frames"}
		}
		r.offerUpdate(&a, src)
		if r.failed != nil {
			return r.failed
		}
	}
}

func (r *run) offerUpdate(a *capture.Arrival, src *capture.Decoder) {
	var lanes []int32
	if r.cfg.Lanes {
		lanes = r.lanes[:a.Update.Lanes]
		a.Frame.Lanes(lanes)
	}
	if !r.arrived {
		r.arrived, r.first = true, a.At
		origin, sameClock := src.Origin()
		r.arriving.Start(origin, sameClock)
		r.leaving.Start(origin, sameClock)
	}
	r.stamps.Arrive(a.At, a.Update.Size())
	r.arriving.Grain, r.leaving.Grain = src.Grain(), src.Grain()
	clockError := r.cfg.ClockError(src)
	r.arriving.ClockErrorNS, r.leaving.ClockErrorNS = clockError, clockError
	r.arriving.Arrive(a.At, &a.Update)
	r.leaving.Arrive(a.At, &a.Update)
	captured := a.Observation()
	r.arriving.Deliver(&captured)
	r.seen[uint32(a.Update.Cluster)<<16|uint32(a.Update.Worker)] = struct{}{}
	if a.Update.Count > 1 {
		r.mergedArrivals++
	}
	if o := r.queue.Offer(a.At, &a.Update, lanes); o.Slot != engine.NoSlot {
		for int(o.Slot) >= len(r.addresses) {
			r.addresses = append(r.addresses, olaf.Addresses{})
		}
		r.addresses[o.Slot] = a.Frame.Addresses()
	}
}

// Deliver records a frame that left the queue.
func (r *run) Deliver(d *engine.Departure) {
	r.last = d.At
	inside := int(d.Frame.Update.Count) - 1
	for len(r.merges) <= inside {
		r.merges = append(r.merges, 0)
	}
	r.merges[inside]++
	observed := olaf.Observation{At: d.At, Queued: d.Queued, Update: d.Frame.Update, Contributors: d.Frame.Contributors}
	if r.mergedArrivals > 0 {
		observed.Contributors = nil // a contributor may stand for several updates
	}
	r.leaving.Deliver(&observed)
	if r.sink == nil || r.failed != nil {
		return
	}
	r.delivery = Delivery{Observation: observed, Addresses: r.addresses[d.Slot], Lanes: d.Frame.Lanes}
	r.failed = r.sink.Deliver(&r.delivery)
}

func (r *run) buildResult(src *capture.Decoder, partial bool) *Result {
	d := r.queue.Discipline()
	out := r.queue.Output()
	s, losses := d.Stats(), src.Losses()
	frames, updates := d.QueuedCount()
	res := &Result{
		Schema: schema, Queue: r.cfg.Queue, OutRateBPS: int64(out.Rate.Rate()), Slots: r.cfg.Engine.Slots,
		DequeueCycles: out.DequeueCycles, MergeCycles: out.MergeCycles, OverheadBytes: out.OverheadBytes,
		Counts:  olaf.NewCounts(declared.Ledger),
		CountIn: int64(s.SumAccepted),
		Workers: len(r.seen), MergedArrivals: r.mergedArrivals, Capture: losses,
		Utilisation: results.Missing(), AggregationsCDF: cumulativeShares(r.merges, int64(s.Released)),
		Partial: partial,
	}
	s.AddTo(res.Counts, frames, updates)
	for name, n := range map[string]int64{"sent": losses.Packets, "bypassed": losses.Bypassed + losses.Acks,
		"malformed":          losses.Malformed,
		"lost_before_engine": r.refused, "received": int64(s.Released)} {
		res.Counts.Add(name, n)
	}
	res.Arriving, res.Ages = r.arriving.Report(), r.leaving.Report()
	_, res.SameClock = src.Origin()
	res.SameClock = res.SameClock || res.Arriving.Available()
	res.Lost = res.Counts.SumLost()
	res.LostPct = results.Float(100 * float64(res.Lost) / float64(losses.Packets))
	clusters := make(map[uint32]struct{})
	for key := range r.seen {
		clusters[key>>16] = struct{}{}
	}
	res.Clusters = len(clusters)
	if r.arrived {
		res.FirstArrivalNS = r.first.NS()
	}
	if s.Released > 0 {
		res.LastDeliveryNS = r.last.NS()
		res.Utilisation = results.Float(float64(r.queue.Busy()) / float64(r.last.Sub(r.first)))
	}
	res.StampsNS = src.Grain().NS()
	if why := r.stamps.TooCoarse(src.Grain()); why != "" {
		res.withhold(why)
	}
	res.judge()
	return res
}

// judge sets Valid and Reason. If the queue accepted frames, it must have delivered some, unless the replay ended
// early.
func (res *Result) judge() {
	check := res.Counts.Check
	if res.Partial || res.Counts.Of("in") == 0 {
		check = res.Counts.Balance
	}
	switch err := check(); {
	case err != nil:
		res.Reason = err.Error()
	case res.Capture.CaptureDropped > 0:
		res.Reason = "the capture lost " + olaf.Plural(res.Capture.CaptureDropped, "packet")
	case res.Capture.LinkErrors > 0:
		res.Reason = olaf.Plural(res.Capture.LinkErrors, "packet") + " of the capture arrived with a link error"
	default:
		res.Valid = true
	}
}

// cumulativeShares returns the cumulative sums of counts divided by total.
func cumulativeShares(counts []int64, total int64) []float64 {
	out := make([]float64, len(counts))
	sum := int64(0)
	for i, n := range counts {
		sum += n
		out[i] = float64(sum) / float64(total)
	}
	return out
}
