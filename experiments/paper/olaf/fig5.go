package olaf

import (
	"context"
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// fig5 is the experiment that draws the figures which explain the queue (Figs. 4, 5 and 11) from a run of the engine.
var fig5 = experiments.Experiment{
	Name:     "olaf/fig5",
	Artefact: "Figs. 4, 5 and 11",
	About:    "the sawtooth of an age with a merge and a replacement, and the engine's updates, slots, heads and tails behind it",
	Needs:    "1 s",
	Long:     true, // checks no claim, so 'reproduce' runs it only if it is named
	Run: func(_ context.Context, o experiments.Options) (result.Report, error) {
		return runFig5(&o)
	},
}

// fig5Sends lists the updates in the run. Cluster 1 keeps the output busy. In cluster 0, worker 2's second update
// replaces its first, and worker 1's update is merged.
var fig5Sends = []fig5Send{
	{AtNS: 0, Cluster: 0, Worker: 1}, {AtNS: 1000, Cluster: 1, Worker: 3},
	{AtNS: 2000, Cluster: 0, Worker: 2}, {AtNS: 2600, Cluster: 0, Worker: 2},
	{AtNS: 5000, Cluster: 1, Worker: 3}, {AtNS: 5500, Cluster: 0, Worker: 2}, {AtNS: 6500, Cluster: 0, Worker: 1},
	{AtNS: 11000, Cluster: 0, Worker: 1},
}

// fig5Send is one update in the run for Fig. 5.
type fig5Send struct {
	AtNS    int64          `json:"at_ns"`
	Cluster olaf.ClusterID `json:"cluster"`
	Worker  olaf.WorkerID  `json:"worker"`
}

const (
	fig5Rate     = 256 * olaf.Mbps // an update of 64 bytes takes 2 µs
	fig5End      = 14              // µs, of the drawing
	fig5Clusters = 2
	fig5Fall     = 0.001 // µs that a fall of the age takes in the drawing, as a curve has one value at an instant
)

// fig5Run records the updates of cluster 0 in the engine for Figs. 4, 5 and 11.
type fig5Run struct {
	*result.Result
	port  *engine.Port
	ages  result.Series
	born  float64 // when the newest update at the server was generated, µs; NaN before the first
	steps result.Block
	// inside has a curve for each cluster, with the number of updates in its slots; head and tail have the slots of
	// cluster 0's first and last frame in departure order.
	inside     [fig5Clusters]result.Series
	head, tail result.Series
}

func runFig5(o *experiments.Options) (result.Report, error) {
	r := &fig5Run{Result: experiments.NewResult("olaf/fig5", "Figs. 4, 5 and 11", o, fig5Sends), born: math.NaN(),
		steps: result.Block{Name: "Figs. 4 and 11: cluster 0 in the engine after each step", Columns: []string{"at µs", "slots in use",
			"updates waiting in its slot"}}}
	r.ages.Name, r.head.Name, r.tail.Name = "cluster 0", "cluster_head", "cluster_tail"
	for c := range r.inside {
		r.inside[c].Name = fmt.Sprintf("cluster %d", c)
	}
	rate, err := engine.FromRate(fig5Rate)
	if err != nil {
		return nil, fmt.Errorf("olaf/fig5: %w", err)
	}
	port, err := engine.NewPort("olaf", engine.Config{Slots: 4, Clusters: fig5Clusters}, engine.Output{Rate: rate}, r)
	if err != nil {
		return nil, fmt.Errorf("olaf/fig5: %w", err)
	}
	r.port = port
	for i, s := range fig5Sends {
		at := olaf.Time(s.AtNS) * olaf.Time(olaf.Nanosecond)
		port.Advance(at)
		u := olaf.Update{GenNS: uint64(s.AtNS), Seq: uint32(i), Cluster: s.Cluster, Worker: s.Worker, Count: 1}
		class := port.Offer(at, &u, nil).Class
		r.drawState(float64(s.AtNS)/1000, false)
		r.addStep(fmt.Sprintf("worker %d of cluster %d: %s", s.Worker, s.Cluster, class), float64(s.AtNS)/1000)
	}
	port.Drain()
	r.addPoint(fig5End, fig5End-r.born)
	r.Panels = []result.Panel{
		{Name: "Fig. 4: updates in the engine, merged ones counted", XLabel: "µs", YLabel: "updates", Series: r.inside[:]},
		{Name: "Fig. 5: Age of Model of cluster 0", XLabel: "µs", YLabel: "age [µs]", Series: []result.Series{r.ages}},
		{Name: "Fig. 11: slots of cluster 0's head and tail, from 1; 0 is none", XLabel: "µs", YLabel: "slot", Series: []result.Series{r.head, r.tail}},
	}
	r.Blocks = []result.Block{r.steps}
	r.Say("a delivered update lowers the age to its own age; a merged or replaced update is as young as its " +
		"newest part")
	r.Say("the engine here is a ring of slots and a table of clusters; the paper's four pointers and cluster_head and cluster_tail (§12.1) decide the same")
	return r.Result, nil
}

// Deliver implements engine.Sink. The age of cluster 0 falls to the age of the newest update in the frame.
func (r *fig5Run) Deliver(d *engine.Departure) {
	now, u := float64(d.At)/float64(olaf.Microsecond), &d.Frame.Update
	r.drawState(now, true)
	r.addStep(fmt.Sprintf("cluster %d leaves with %s", u.Cluster, olaf.Plural(int(u.Count), "update")), now)
	if u.Cluster != 0 {
		return
	}
	if r.born == r.born { // not NaN: there was an age before
		r.addPoint(now, now-r.born)
	}
	r.born = float64(u.GenNS) / 1000
	r.addPoint(now+fig5Fall, now-r.born)
}

// addStepTo extends a curve: it stays flat until the instant at, in µs, and then has the given value.
func addStepTo(s *result.Series, at, value float64) {
	if n := len(s.Y); n > 0 {
		s.X, s.Y = append(s.X, at), append(s.Y, s.Y[n-1])
		at += fig5Fall
	}
	s.X, s.Y = append(s.X, at), append(s.Y, result.Describe([]float64{value}))
}

// drawState extends the curves of Figs. 4 and 11. left means that the frame on the wire has just left; its slot is
// still in use at that time.
func (r *fig5Run) drawState(at float64, left bool) {
	var inside [fig5Clusters]float64
	var head, tail float64
	d := r.port.Discipline()
	d.Queued(func(s engine.Slot, locked bool) bool {
		if left && locked {
			return true
		}
		var f engine.Frame
		d.View(s, &f)
		inside[f.Update.Cluster] += float64(f.Update.Count)
		if f.Update.Cluster == 0 {
			if tail = float64(s) + 1; head == 0 {
				head = tail
			}
		}
		return true
	})
	for c, n := range inside {
		addStepTo(&r.inside[c], at, n)
	}
	addStepTo(&r.head, at, head)
	addStepTo(&r.tail, at, tail)
}

// addPoint adds a point to the sawtooth. at and age are in µs.
func (r *fig5Run) addPoint(at, age float64) {
	r.ages.X = append(r.ages.X, at)
	r.ages.Y = append(r.ages.Y, result.Describe([]float64{age}))
}

// addStep records a step of the run, the occupied slots after it, and the number of updates in cluster 0's waiting
// frame.
func (r *fig5Run) addStep(what string, at float64) {
	inside := results.Describe(nil, "none waits")
	d := r.port.Discipline()
	d.Queued(func(s engine.Slot, locked bool) bool {
		var f engine.Frame
		if d.View(s, &f); f.Update.Cluster == 0 && !locked {
			inside = result.Describe([]float64{float64(f.Update.Count)})
		}
		return true
	})
	r.steps.Rows = append(r.steps.Rows, result.Line{Name: what, Cells: []results.Statistic{result.Describe([]float64{at}),
		result.Describe([]float64{float64(d.Occupancy())}), inside}})
}
