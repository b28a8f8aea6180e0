// Package replay pushes a capture of OLAF frames through a queue, as if the queue had stood where the capture was taken:
// timed arrivals in, timed deliveries and counters out.
//
// There are no tables in a replay: a frame's cluster and worker are what its header claims, any of the 65,536 clusters,
// and nobody can be misidentified. Frames that are not OLAF, and ACKs, which never pass the queue, are bypassed; broken
// frames are malformed; neither is delivered.
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

// Schema names the JSON form of a Result.
const Schema = "olafctl.replay/v2"

// ErrTruncated says that gradients are wanted from a capture that did not keep them.
var ErrTruncated = olaf.NewError(olaf.Usage, "the capture did not keep whole frames")

// Config shapes the queue.
type Config struct {
	Queue  string        // the discipline: one of engine.Names
	Engine engine.Config // Clusters and LaneMemory are set by the replay
	Output engine.Output // the serialiser and the engine's cycles
	// Lanes merges gradients and hands them to the sink, which a sink that writes frames needs. It costs 9 kB a slot.
	Lanes bool
}

// Delivery is one frame that left the queue. It is valid during the call that hands it out.
type Delivery struct {
	olaf.Observation                // At is on the decoder's run clock
	Addresses        olaf.Addresses // of the newest contributor's frame
	Lanes            []int32        // nil without Config.Lanes
}

// Sink takes deliveries in order of time. Its error ends the replay.
type Sink interface {
	Deliver(d *Delivery) error
}

// declared is what a replay counts; sent is every packet of the capture.
var declared = func() *metric.Declaration {
	d := metric.OfQueue(engine.Flow(), engine.Sums())
	for name, doc := range map[string]string{"sent": "packets in the capture", "bypassed": "not OLAF, or ACKs", "malformed": "broken OLAF frames"} {
		d.Ledger.Counters[d.Ledger.Index(name)].Doc = doc
	}
	return d
}()

// Result is what became of a capture's packets. The counters have the names and meanings of a bench row; sent is every
// packet of the capture.
type Result struct {
	Schema        string `json:"schema"`
	Queue         string `json:"queue"`
	OutRateBPS    int64  `json:"out_rate_bps"` // what the limiter holds, nearest to what was asked for
	Slots         int    `json:"slots"`
	DequeueCycles int    `json:"dequeue_cycles"`
	MergeCycles   int    `json:"merge_cycles"`
	OverheadBytes int    `json:"overhead_bytes"`

	Counts  olaf.Counts   `json:"*"` // members of the result itself
	Lost    int64         `json:"lost"`
	LostPct results.Float `json:"lost_pct"` // of what was sent
	// CountIn is the sum of the count field over arrivals that the queue took: more than their number where an earlier
	// hop had merged.
	CountIn int64 `json:"count_in"`

	Clusters       int           `json:"clusters"` // distinct ones seen
	Workers        int           `json:"workers"`  // distinct pairs of cluster and worker
	FirstArrivalNS int64         `json:"first_arrival_ns"`
	LastDeliveryNS int64         `json:"last_delivery_ns"`
	Utilisation    results.Float `json:"utilisation"` // of the output, from the first arrival to the last delivery
	// AggregationsCDF is the share of delivered frames with at most 0, 1, 2 … updates beside the newest one inside.
	AggregationsCDF []float64 `json:"aggregations_cdf"`
	// StampsNS is the resolution of the capture's stamps. Where the queue's work is faster than that, Withheld names the
	// members that depend on it, which are null in JSON, and WithheldWhy is the reason.
	StampsNS    float64  `json:"stamp_resolution_ns"`
	Withheld    []string `json:"withheld,omitempty"`
	WithheldWhy string   `json:"withheld_reason,omitempty"`
	// SameClock says that arrivals and generation times come from one clock, without which ages mean nothing.
	SameClock bool `json:"same_clock"`
	// Arriving are the ages of what was captured, Ages those behind the queue.
	Arriving *ages.Ages `json:"ages_arriving"`
	Ages     *ages.Ages `json:"ages"`
	// MergedArrivals had been merged before they were captured; who is inside of them is unknown.
	MergedArrivals int64          `json:"merged_arrivals"`
	Capture        capture.Losses `json:"capture"`

	// Valid says that the accounts balance and the capture admits no loss of its own; otherwise Reason says what is wrong.
	Valid   bool   `json:"valid"`
	Reason  string `json:"reason,omitempty"`
	Partial bool   `json:"partial,omitempty"` // ended before the capture did
}

// plain is a Result as encoding/json sees it.
type plain Result

// MarshalJSON writes the counters among the result's own members, and null for withheld ones.
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

// checkEvery is how many arrivals pass between two looks at the context.
const checkEvery = 4096

// Run replays everything that src decodes and hands deliveries to sink, which may be nil. The queue is drained at the end
// of the capture. When reading, the sink or the context fails, the result covers what came before and is partial, and the
// error is theirs. Errors of the configuration match engine.ErrConfig and leave no result.
func Run(ctx context.Context, src *capture.Decoder, cfg Config, sink Sink) (*Result, error) {
	r, err := newRun(cfg, sink)
	if err != nil {
		return nil, err
	}
	err = r.play(ctx, src)
	if err == nil {
		r.queue.Drain()
		err = r.failed
	}
	result := r.result(src, err != nil)
	var broken *capture.Error
	if errors.As(err, &broken) {
		result.Valid, result.Reason = false, err.Error()
	}
	return result, err
}

// run is one replay under way.
type run struct {
	cfg       Config
	queue     *engine.Port
	sink      Sink
	delivery  Delivery
	addresses []olaf.Addresses // by slot, as far as slots were used
	lanes     []int32
	failed    error // of the sink

	arriving, leaving *ages.Meter
	stamps            StampCheck

	merges         []int64 // delivered frames by aggregations inside
	seen           map[uint32]struct{}
	arrived        bool
	first, last    olaf.Time
	mergedArrivals int64
	refused        int64 // updates that ended the replay
}

func newRun(cfg Config, sink Sink) (*run, error) {
	cfg.Engine.Clusters, cfg.Engine.LaneMemory = engine.MaxClusters, 0
	cfg.Engine.Provenance = true // whose ages are told
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

func (r *run) play(ctx context.Context, src *capture.Decoder) error {
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
			return &capture.Error{File: src.Name(), Packet: a.Number, Kind: ErrTruncated, Advice: "capture with a snapshot length of 9036 or more, or replay without writing frames"}
		}
		r.offer(&a, src)
		if r.failed != nil {
			return r.failed
		}
	}
}

func (r *run) offer(a *capture.Arrival, src *capture.Decoder) {
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

// Deliver takes a frame from the queue.
func (r *run) Deliver(d *engine.Departure) {
	r.last = d.At
	inside := int(d.Frame.Update.Count) - 1
	for len(r.merges) <= inside {
		r.merges = append(r.merges, 0)
	}
	r.merges[inside]++
	observed := olaf.Observation{At: d.At, Queued: d.Queued, Update: d.Frame.Update, Contributors: d.Frame.Contributors}
	if r.mergedArrivals > 0 {
		observed.Contributors = nil // one of them may stand for several
	}
	r.leaving.Deliver(&observed)
	if r.sink == nil || r.failed != nil {
		return
	}
	r.delivery = Delivery{Observation: observed, Addresses: r.addresses[d.Slot], Lanes: d.Frame.Lanes}
	r.failed = r.sink.Deliver(&r.delivery)
}

func (r *run) result(src *capture.Decoder, partial bool) *Result {
	d := r.queue.Discipline()
	out := r.queue.Output()
	s, losses := d.Stats(), src.Losses()
	frames, updates := d.QueuedCount()
	res := &Result{
		Schema: Schema, Queue: r.cfg.Queue, OutRateBPS: int64(out.Rate.Rate()), Slots: r.cfg.Engine.Slots,
		DequeueCycles: out.DequeueCycles, MergeCycles: out.MergeCycles, OverheadBytes: out.OverheadBytes,
		Counts:  olaf.NewCounts(declared.Ledger),
		CountIn: int64(s.SumAccepted),
		Workers: len(r.seen), MergedArrivals: r.mergedArrivals, Capture: losses,
		Utilisation: results.Missing(), AggregationsCDF: cdf(r.merges, int64(s.Released)),
		Partial: partial,
	}
	s.AddTo(res.Counts, frames, updates)
	for name, n := range map[string]int64{"sent": losses.Packets, "bypassed": losses.Bypassed + losses.Acks, "malformed": losses.Malformed,
		"lost_before_engine": r.refused, "received": int64(s.Released)} {
		res.Counts.Add(name, n)
	}
	res.Arriving, res.Ages = r.arriving.Report(), r.leaving.Report()
	_, res.SameClock = src.Origin()
	res.SameClock = res.SameClock || res.Arriving.Known()
	res.Lost = res.Counts.Lost()
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

// judge sets Valid and Reason. Frames come out of every queue that took some, unless it ended before.
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

// cdf sums counts up to shares of total.
func cdf(counts []int64, total int64) []float64 {
	out := make([]float64, len(counts))
	sum := int64(0)
	for i, n := range counts {
		sum += n
		out[i] = float64(sum) / float64(total)
	}
	return out
}
