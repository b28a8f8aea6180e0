package olaf

import (
	"context"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// fig7 is the experiment that reproduces the speed-up of Olaf over FIFO by output rate (§8.2, Fig. 7).
var fig7 = experiments.Experiment{
	Name:     "olaf/fig7",
	Artefact: "Fig. 7",
	About: "time until 200 updates from each of 300 workers are delivered, FIFO divided by Olaf, by output " +
		"rate",
	Needs:  "10 s",
	Run:    runFig7,
	Inputs: experiments.InputsByTenth(experiments.OfferedRate, experiments.OutputRate, experiments.FrameSize),
}

// fig7Config is the configuration of Fig. 7. docs/notes/trainings.md describes the parameters that the paper does not
// give.
type fig7Config struct {
	Trace string `json:"trace"`
	pktgen.Placement
	Updates  int            `json:"updates"` // N, of each worker
	Slots    int            `json:"slots"`
	Frame    olaf.Size      `json:"frame"`
	Rate     olaf.Rate      `json:"rate"` // offered by all workers in total
	OutRates []olaf.Rate    `json:"out_rates"`
	Active   []int          `json:"active_clusters"` // clusters that send at once; 0 means all
	Profile  engine.Profile `json:"profile"`
	Jitter   float64        `json:"jitter"`
	// AckDelay and Timeout are for the closed loop.
	AckDelay olaf.Duration `json:"ack_delay"`
	Timeout  olaf.Duration `json:"timeout"`
	Seeds    []uint64      `json:"seeds"`
}

// Fig7 returns the configuration of Fig. 7.
func Fig7(runs int, seed uint64) fig7Config {
	return fig7Config{Trace: trace.Builtin + "lander8", Placement: pktgen.Placement{Workers: 300, Clusters: 100},
		Updates: 200, Slots: 8,
		Frame: 256, Rate: 60 * olaf.Gbps, Active: []int{0, 20, 9}, Profile: engine.Calibrated, Jitter: 0.1,
		AckDelay: olaf.Microsecond, Timeout: 20 * olaf.Microsecond, Seeds: experiments.SeedsFrom(seed, runs),
		OutRates: olaf.Map([]olaf.Rate{5, 10, 20, 30, 40, 50}, func(r olaf.Rate) olaf.Rate { return r * olaf.Gbps })}
}

// fig7Point is the result of replaying the same traffic through both queues.
type fig7Point struct {
	speedup, half          float64
	tFIFO, tOlaf           float64 // µs
	lostFIFO, lostOlaf     float64
	resentFIFO, resentOlaf float64 // share of updates sent
}

func runFig7(ctx context.Context, o experiments.Options) (result.Report, error) {
	runs, seed := o.Seeds(5, 2)
	c := Fig7(runs, seed)
	if o.Quick {
		c.Updates = 50
	}
	c.Rate = experiments.ScaleInput(&o, experiments.OfferedRate, c.Rate)
	c.Frame = experiments.ScaleInput(&o, experiments.FrameSize, c.Frame)
	for i := range c.OutRates {
		c.OutRates[i] = experiments.ScaleInput(&o, experiments.OutputRate, c.OutRates[i])
	}
	recording, err := loadTrace(c.Trace)
	if err != nil {
		return nil, err
	}
	f := experiments.NewResult("olaf/fig7", "Fig. 7", &o, &c)
	variants := c.variants()
	total, done := len(variants)*len(c.OutRates)*len(c.Seeds), 0
	points := make([][][]fig7Point, len(variants)) // by variant, output rate, seed
	for v, variant := range variants {
		points[v] = make([][]fig7Point, len(c.OutRates))
		for r, rate := range c.OutRates {
			for _, s := range c.Seeds {
				if err := ctx.Err(); err != nil {
					f.Partial = true
					c.draw(f, variants[:v], points[:v])
					return f, err
				}
				p, err := c.replay(recording, variant, rate, s)
				if err != nil {
					return nil, fmt.Errorf("fig7, %s, %v out, seed %d: %w", c.name(variant), rate, s, err)
				}
				points[v][r] = append(points[v][r], p)
				done++
				o.ReportProgress(done, total)
			}
		}
	}
	c.draw(f, variants, points)
	c.judge(f, &o, variants, points)
	return f, nil
}

func loadTrace(name string) (r *trace.Recording, err error) {
	reader, closer, err := trace.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	return trace.LoadRecording(reader)
}

// fig7Variant is one curve in Fig. 7. It has a number of clusters that send at the same time, or is a closed loop.
type fig7Variant struct {
	active int
	closed bool
}

// variants returns the curves in the figure: one for each number of simultaneously active clusters, and the closed
// loop.
func (c *fig7Config) variants() (variants []fig7Variant) {
	for _, active := range c.Active {
		variants = append(variants, fig7Variant{active: active})
	}
	return append(variants, fig7Variant{closed: true})
}

func (c *fig7Config) name(v fig7Variant) string {
	switch {
	case v.closed:
		return "closed loop"
	case v.active == 0:
		return fmt.Sprintf("all %d active", c.Clusters)
	}
	return fmt.Sprintf("%d active", v.active)
}

// replay replays the same traffic through both queues.
func (c *fig7Config) replay(recording *trace.Recording, v fig7Variant, rate olaf.Rate, seed uint64) (fig7Point, error) {
	one := func(queue string) (*replayResult, error) {
		s := trace.DefaultScaling()
		s.Placement, s.Updates, s.Rate, s.Frame, s.Jitter, s.Seed = c.Placement, 0, c.Rate, c.Frame, c.Jitter, seed
		s.ActiveClusters = v.active
		scaler, err := trace.NewScaler(recording, s)
		if err != nil {
			return nil, err
		}
		b := fig7Queue{Queue: queue, Slots: c.Slots, OutRate: rate, Profile: c.Profile, Frame: c.Frame}
		if v.closed {
			return replayClosed(scaler, b, replayLoop{AckDelay: c.AckDelay, Timeout: c.Timeout, Limit: 1e9}, c.Updates)
		}
		return replayOpen(scaler, b, c.Updates)
	}
	fifo, err := one("fifo")
	if err != nil {
		return fig7Point{}, err
	}
	merged, err := one("olaf")
	if err != nil {
		return fig7Point{}, err
	}
	return fig7Point{
		speedup: fifo.T.Seconds() / merged.T.Seconds(), half: fifo.Half.Seconds() / merged.Half.Seconds(),
		tFIFO: fifo.T.Seconds() * 1e6, tOlaf: merged.T.Seconds() * 1e6,
		lostFIFO: 100 * fifo.LostFraction(), lostOlaf: 100 * merged.LostFraction(),
		resentFIFO: 100 * float64(fifo.Resent) / float64(fifo.Sent), resentOlaf: 100 * float64(merged.Resent) / float64(merged.Sent),
	}, nil
}

// draw adds the panels to the figure.
func (c *fig7Config) draw(f *result.Result, variants []fig7Variant, points [][][]fig7Point) {
	curve := func(name string, v int, of func(*fig7Point) float64) result.Series {
		s := result.Series{Name: name}
		for r, rate := range c.OutRates {
			var values []float64
			for i := range points[v][r] {
				values = append(values, of(&points[v][r][i]))
			}
			s.X = append(s.X, float64(rate)/1e9)
			s.Y = append(s.Y, result.Describe(values))
		}
		return s
	}
	add := func(group, name, y string, series ...result.Series) {
		f.Panels = append(f.Panels, result.Panel{Name: name, Group: group, XLabel: "output rate [Gbps]", YLabel: y,
			Series: series})
	}
	every := func(of func(*fig7Point) float64) (series []result.Series) {
		for v, variant := range variants {
			series = append(series, curve(c.name(variant), v, of))
		}
		return series
	}
	over := fmt.Sprintf(": T(%d) of FIFO divided by T(%d) of Olaf", c.Updates, c.Updates)
	add("speed-up", "Every worker"+over, "speed-up", every(func(p *fig7Point) float64 { return p.speedup })...)
	add("speed-up", "Half of the workers"+over, "speed-up", every(func(p *fig7Point) float64 { return p.half })...)
	for v, variant := range variants {
		add("time", c.name(variant), fmt.Sprintf("T(%d) [µs]", c.Updates),
			curve("FIFO", v, func(p *fig7Point) float64 { return p.tFIFO }),
			curve("Olaf", v, func(p *fig7Point) float64 { return p.tOlaf }))
	}
	for v, variant := range variants {
		add("loss", c.name(variant), "lost [%]", curve("FIFO", v, func(p *fig7Point) float64 { return p.lostFIFO }),
			curve("Olaf", v, func(p *fig7Point) float64 { return p.lostOlaf }))
		if variant.closed {
			add("loss", c.name(variant)+", sent again", "resent [% of sent]",
				curve("FIFO", v, func(p *fig7Point) float64 { return p.resentFIFO }),
				curve("Olaf", v, func(p *fig7Point) float64 { return p.resentOlaf }))
		}
	}
	f.Say("%d clusters × %d workers at %v offered through %d slots, traces of %s, %d seeds; a merged update "+
		"counts for every worker inside, a replaced one for none",
		c.Clusters, c.Workers/c.Clusters, c.Rate, c.Slots, c.Trace, len(c.Seeds))
	f.Say("the speed-up depends on how many clusters send at once, which the paper does not state")
}

// judge compares the curve for which all clusters are active to the paper's claims. It shows the other curves next to
// it.
func (c *fig7Config) judge(f *result.Result, o *experiments.Options, variants []fig7Variant, points [][][]fig7Point) {
	grows, least := paper.Falls(speedups(points[0])), smallest(points[0])
	for v := 1; v < len(variants); v++ {
		falls := paper.Falls(speedups(points[v]))
		grows.Others = append(grows.Others,
			paper.Other{Assumption: c.name(variants[v]), Statistic: falls.Statistic, Breaks: falls.Breaks,
				Judged: true})
		least.Others = append(least.Others,
			paper.Other{Assumption: c.name(variants[v]), Statistic: smallest(points[v]).Statistic, Judged: true})
	}
	ours := paper.Ours{"olaf/fig7.speedup.grows_as_capacity_shrinks": grows, "olaf/fig7.speedup.smallest": least}
	if o.Quick {
		ours.MarkShortened(fmt.Sprintf("%d of %d updates", c.Updates, Fig7(1, 1).Updates))
	}
	f.Compare(ours)
}

// speedups returns the speed-ups in a curve, by output rate and seed.
func speedups(curve [][]fig7Point) [][]results.Float {
	values := make([][]results.Float, len(curve))
	for r := range curve {
		for i := range curve[r] {
			values[r] = append(values[r], results.Float(curve[r][i].speedup))
		}
	}
	return values
}

// smallest returns the speed-up at the output rate with the smallest mean.
func smallest(curve [][]fig7Point) paper.Measured {
	var least results.Statistic
	for r, values := range speedups(curve) {
		if s := results.Describe(values, ""); r == 0 || s.Mean < least.Mean {
			least = s
		}
	}
	return paper.Of(least)
}
