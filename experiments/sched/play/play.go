package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program/p4inc"
	"github.com/olafctl/olaf/results"
)

// ErrPlay is matched by the error for any plan that cannot be carried out.
var ErrPlay = olaf.NewError(olaf.Usage, "the plan can't be carried out")

// maxPackets is the maximum number of packets that the workers in a simulated plan may send.
const maxPackets = 10_000_000

// windowed is the maximum number of packets in a simulation with congestion windows. It is smaller because hosts store
// the packets that they sent.
const windowed = 1_000_000

// lineBytes is the overhead per frame on the line: preamble, check sequence and gap.
const lineBytes = olaf.Size(24)

// line is the size of a full P4INC frame on the line, including the line's overhead.
var line = frame.P4INC.Size(p4inc.Lanes) + lineBytes

// Options configures PlayPlan.
type Options struct {
	Packets int // maximum sent by workers; 0 means a tenth of maxPackets
	// Segment is the number of aggregators per job; 0 means 256.
	Segment int
	// Delay is the delay of every wire.
	Delay olaf.Duration
	// Paced skips the simulation with windows.
	Paced bool
	// OnProgress, if set, is called as packets are sent.
	OnProgress func(done, total int)
}

// Report contains the results of PlayPlan.
type Report struct {
	Policy string
	// Packets sent by workers in the paced simulation, and the maximum number of wire frames that one of them
	// represents.
	Packets int
	Stands  results.Float
	// Sums completed by switches and servers, and the expected number.
	Sums, Expected int
	CTBTI          Times
	// WorstPct is the largest deviation of a paced job from the fluid model, in per cent of its sending time.
	WorstPct results.Float
	Worst    string
	Jobs     []Played
	// Marked counts fragments that collided in an aggregator; 0 if everything is correct.
	Marked uint64
}

// Times contains completion times of the simulated jobs. Planned is in whole slots. Windowed is nil if it was not
// simulated.
type Times struct {
	Planned, Fluid, Paced olaf.Duration
	Windowed              *olaf.Duration
}

// Played contains the results of one job. Times begin at 0 and include the server's update.
type Played struct {
	Job     string
	INC     string
	Part    bool // the switch sums its unit's workers, the server everything
	Packets int  // per worker
	Times
	DeviationPct results.Float
}

// PlayPlan carries out a valid plan in simulated networks. The error matches ErrPlay or is the context's.
func PlayPlan(ctx context.Context, plan *sched.Plan, o Options) (*Report, error) {
	if err := o.setDefaults(plan); err != nil {
		return nil, err
	}
	in := plan.Problem.Instance(plan.Problem.PartialINC)
	r := &Report{Policy: plan.Policy.Name}
	paced, err := newPlay(in, plan, &o, o.Packets)
	if err != nil {
		return nil, err
	}
	for k := range paced.jobs {
		j := &paced.jobs[k]
		r.Jobs = append(r.Jobs, Played{Job: j.ID, INC: plan.Jobs[k].INC, Part: j.part != nil, Packets: j.packets,
			Times: Times{
				Planned: plan.Jobs[k].Finish, Fluid: olaf.Duration(j.fluid) + j.late}})
		r.Stands = max(r.Stands, results.Float(j.bits/float64(line.Bits())))
		r.Packets += j.packets * j.Workers
		r.Expected += j.packets
	}
	if err := paced.runEvents(ctx, (*play).startPaced); err != nil {
		return nil, err
	}
	if err := r.takePaced(paced, in); err != nil {
		return nil, err
	}
	if o.Paced {
		return r, nil
	}
	free, err := newPlay(in, plan, &o, min(o.Packets, windowed))
	if err != nil {
		return nil, err
	}
	if err := free.runEvents(ctx, (*play).startWindowed); err != nil {
		return nil, err
	}
	r.takeWindowed(free, in)
	return r, nil
}

// setDefaults sets defaults and rejects plans that cannot be carried out.
func (o *Options) setDefaults(plan *sched.Plan) error {
	o.Packets = cmp.Or(o.Packets, maxPackets/10)
	o.Segment = cmp.Or(o.Segment, 256)
	if o.Packets < 1 || o.Packets > maxPackets {
		return fmt.Errorf("%w: %d packets; 1 to %d", ErrPlay, o.Packets, maxPackets)
	}
	if v := sched.CheckPlan(plan); !v.OK() {
		return fmt.Errorf("%w: it breaks rules: %s; 'olafctl schedule check' lists them", ErrPlay, v.Summary())
	}
	if len(plan.Outcome.Unfinished) > 0 {
		return fmt.Errorf("%w: it leaves %d jobs undone, such as %s", ErrPlay, len(plan.Outcome.Unfinished),
			plan.Outcome.Unfinished[0])
	}
	return nil
}

// takePaced adds the results of the paced simulation to the report. It returns an error unless every fragment of every
// job was summed exactly once.
func (r *Report) takePaced(p *play, in *sched.Instance) error {
	var wrong []error
	for k := range p.jobs {
		j, out := &p.jobs[k], &r.Jobs[k]
		r.Sums += j.sums
		if j.sums != j.packets || j.wrong > 0 {
			wrong = append(wrong, fmt.Errorf("%s: %d of %d fragments were summed, %d of them not of every worker", j.ID,
				j.sums, j.packets, j.wrong))
			continue
		}
		out.Paced = olaf.Duration(j.end) + j.late
		out.DeviationPct = results.Float(100 * float64(j.end-j.fluid) / float64(j.fluid-j.start))
		if math.Abs(float64(out.DeviationPct)) >= math.Abs(float64(r.WorstPct)) {
			r.WorstPct, r.Worst = out.DeviationPct, j.ID
		}
		r.CTBTI.Planned, r.CTBTI.Fluid, r.CTBTI.Paced = max(r.CTBTI.Planned, out.Planned),
			max(r.CTBTI.Fluid, out.Fluid), max(r.CTBTI.Paced, out.Paced)
	}
	for _, t := range []*olaf.Duration{&r.CTBTI.Planned, &r.CTBTI.Fluid, &r.CTBTI.Paced} {
		*t -= in.Origin()
	}
	marked, err := p.checkAccounts()
	r.Marked = marked
	return errors.Join(append(wrong, err)...)
}

func (r *Report) takeWindowed(p *play, in *sched.Instance) {
	last, all := olaf.Duration(0), true
	for k := range p.jobs {
		j := &p.jobs[k]
		if j.done < j.Workers {
			all = false
			continue
		}
		at := olaf.Duration(j.end) + j.late
		r.Jobs[k].Windowed = &at
		last = max(last, at)
	}
	if all {
		last -= in.Origin()
		r.CTBTI.Windowed = &last
	}
}
