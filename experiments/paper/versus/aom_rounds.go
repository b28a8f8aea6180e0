package versus

import (
	"context"
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/internal/exactmath"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// player is a synchronous system with a column in the comparison. The workers of each cluster form a job.
type player struct {
	name, system string
	links        int // number of links between sending a gradient and receiving the sum
}

// players lists two systems whose switches send the sums themselves, and one system whose sums pass through the job's
// server.
var players = []player{{"iswitch, in rounds", "iswitch", 2}, {"switchml", "switchml", 2}, {"atp p4ml", "atp", 4}}

// meanGap returns a worker's mean time between gradients if it does not wait, in ps. It is the mean gap of the Poisson
// arrivals.
func meanGap() float64 { return float64(offered.TimeToSend(size+overhead)) * workers }

// newJob returns the network and the job for the clusters. A gradient takes one frame and is ready one Poisson gap
// after the worker has received the last sum.
func (p *player) newJob(set system.Set, rate olaf.Rate, updates int, seed uint64) (*closedloop.Network, *closedloop.Job,
	*system.Parts, error) {
	_, mode, err := set.FindMode(p.system, "sync")
	if err != nil {
		return nil, nil, nil, err
	}
	parts, err := mode.Parts(&system.Options{Jobs: clusters})
	if err != nil {
		return nil, nil, nil, err
	}
	parts.Frame, parts.Header = nil, size-olaf.Size(lanes)*olaf.LaneBytes // the same bytes on the wire for all systems
	net := &closedloop.Network{Workers: workers / clusters, Jobs: clusters,
		Link: closedloop.Link{Rate: rate, Overhead: overhead}}
	counted, err := closedloop.CheckRounds(updates)
	if err != nil {
		return nil, nil, nil, err
	}
	j := &closedloop.Job{Updates: counted, Limit: 60 * olaf.Second}
	j.Layout.Values, j.PerPacket = lanes, lanes
	mean := meanGap()
	j.Begin = func(worker int, vector uint32) olaf.Duration {
		unit := (float64(splitmix.MixBits(splitmix.MixBits(splitmix.MixBits(seed)^uint64(worker+1)<<32)+uint64(vector))>>11) +
			0.5) / (1 << 53)
		return olaf.Duration(-mean * exactmath.Log(unit))
	}
	return net, j, &parts, nil
}

// play runs a player at the given rate with one seed.
func (p *player) play(ctx context.Context, set system.Set, rate olaf.Rate, updates int,
	seed uint64) (*closedloop.Result, error) {
	net, j, parts, err := p.newJob(set, rate, updates, seed)
	if err != nil {
		return nil, err
	}
	r, err := closedloop.Run(ctx, *net, *j, *parts, true, seed)
	if err == nil && r.Hung {
		err = fmt.Errorf("%w: %s at %v, seed %d", job.ErrHung, p.name, rate, seed)
	}
	return r, err
}

// predictAge returns the predicted age at the workers, in ns. A round lasts as long as M, the longest of n
// exponentially distributed computing times, plus d, the time for the path there and back. The newest gradient in a sum
// is the slowest worker's, and is d old when all workers have the sum. The mean of the sawtooth is d + E[(M+d)²] / 2
// E[M+d]. The formula ignores that frames of a job may queue behind each other.
func (p *player) predictAge(rate olaf.Rate) results.Float {
	n, mean := workers/clusters, meanGap()/float64(olaf.Nanosecond)
	first, variance := 0.0, 0.0
	for i := 1; i <= n; i++ {
		first += mean / float64(i)
		variance += float64(mean*mean) / float64(i*i)
	}
	d := float64(p.links) * float64(rate.TimeToSend(size+overhead)) / float64(olaf.Nanosecond)
	return results.Float(d + (variance+float64((first+d)*(first+d)))/(2*(first+d)))
}

// near is the largest accepted deviation of a measured age from the formula's, in per cent.
const near = 3

// Blocks of the systems in rounds, in order.
const (
	roundAges = iota
	roundArithmetic
	roundIterations
	roundRepeats
	roundQuietAges
	roundBlocks
)

// roundNames lists the names and units of the blocks for the synchronous systems.
var roundNames = [roundBlocks]struct{ name, unit string }{
	roundAges:       {"AoM, newest", "ns"},
	roundArithmetic: {"AoM, newest, by arithmetic", "ns"},
	roundIterations: {"iteration", "ns"},
	roundRepeats:    {"packets resent, per job and seed", ""},
	roundQuietAges:  {"AoM, newest, over seeds in which nothing was resent", "ns"},
}

// compareRounds fills the blocks for the synchronous systems, with one row per rate, and compares them with the
// expectations. beside contains the ages of systems whose workers do not wait.
func compareRounds(ctx context.Context, set system.Set, t *result.Result, c *config, beside *result.Block,
	done func()) error {
	var blocks [roundBlocks]result.Block
	for b := range blocks {
		blocks[b] = result.Block{Name: "poisson S, in rounds " + roundNames[b].name, Unit: roundNames[b].unit}
		for i := range players {
			blocks[b].Columns = append(blocks[b].Columns, players[i].name)
		}
	}
	for _, rate := range c.Rates {
		var cells [roundBlocks][]results.Statistic
		for i := range players {
			runs := make([]*closedloop.Result, len(c.Seeds))
			err := forEach(ctx, c.Seeds, func(ctx context.Context, k int) (err error) {
				runs[k], err = players[i].play(ctx, set, rate, c.Updates, c.Seeds[k])
				return err
			})
			if err != nil {
				return err
			}
			for b, cell := range players[i].describeRuns(rate, runs) {
				cells[b] = append(cells[b], cell)
			}
			done()
		}
		for b := range blocks {
			blocks[b].Rows = append(blocks[b].Rows, result.Line{Name: rate.String(), Cells: cells[b]})
		}
	}
	judgeRounds(t, &blocks[roundAges], &blocks[roundArithmetic], beside)
	t.Blocks = append(t.Blocks, blocks[:]...)
	return nil
}

// describeRuns returns the statistics of a player's runs at a rate, one per block.
func (p *player) describeRuns(rate olaf.Rate, runs []*closedloop.Result) (blocks [roundBlocks]results.Statistic) {
	var ages, iterations, repeats, quiet []results.Float
	for _, r := range runs {
		again := results.Float(r.Endpoints.Of("packets_resent") + r.Endpoints.Of("control_sent"))
		ages, iterations, repeats = append(ages, r.AoM[0]), append(iterations, r.Iteration),
			append(repeats, again/clusters)
		if again == 0 {
			quiet = append(quiet, r.AoM[0])
		}
	}
	const none = "fewer than two updates"
	return [roundBlocks]results.Statistic{
		roundAges: results.Describe(ages, none), roundArithmetic: {Mean: p.predictAge(rate), N: 1},
		roundIterations: results.Describe(iterations, none),
		roundRepeats:    results.Describe(repeats, none),
		roundQuietAges:  results.Describe(quiet, "something was resent in every seed"),
	}
}

// judgeRounds states the expectations that were written before the first run, and whether they were met.
func judgeRounds(t *result.Result, newest, arithmetic, beside *result.Block) {
	off, ordered, older := 0.0, true, true
	for i := range newest.Rows {
		have, want := newest.Rows[i].Cells, arithmetic.Rows[i].Cells
		for k := range have {
			off = max(off, 100*math.Abs(float64(have[k].Mean/want[k].Mean)-1))
		}
		ordered = ordered && have[1].Mean+have[1].CI95 < have[2].Mean-have[2].CI95
		open := &beside.Rows[i].Cells[roundsColumn]
		older = older && open.Mean+open.CI95 < have[1].Mean-have[1].CI95
	}
	t.Say("expected before the run, in rounds, at every rate: ages within %d %% of the arithmetic: at most %.1f "+
		"%% off, so %s", near, off, formatVerdict(t, off <= near))
	t.Say("expected: ATP, whose sums pass a server, is older than SwitchML, and the 95 %% intervals do not "+
		"overlap: %s", formatVerdict(t, ordered))
	t.Say("expected: SwitchML in rounds is older than %s, whose workers do not wait: %s", beside.Columns[roundsColumn],
		formatVerdict(t, older))
	t.Say("seen after the run: when ATP resent something, a packet had met another job's aggregator and gone to " +
		"the server alone, while the others of its round waited in the switch; for a vector of one packet no " +
		"acknowledgement reveals this, and the first timeout is 50 ms. In SwitchML and iSwitch, jobs share no " +
		"slots")
	t.Say("in rounds an age is that of the model at the workers, which is the same for all workers of a job: it " +
		"contains a gradient of every worker, and the newest is that of the slowest worker. A worker computes " +
		"its next gradient, for one gap of the Poisson load, only after it has the sum, so there are fewer " +
		"gradients than in the other cases; bursts and the recorded training specify when updates leave, which " +
		"rounds decide themselves")
}

// roundsColumn is the column with which the rounds are compared. Its workers do not wait, and its sums contain as many
// gradients as those of a round, H = 3.
const roundsColumn = 1
