package wired

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results/metric"
)

// meter records when the rounds and hosts of a run finish.
type meter struct {
	rounds      int         // number of rounds with sums of all workers; 0 for asynchronous workers
	ready, have []olaf.Time // by job and round: when the last gradient was ready, and when the last worker had the sum
	served      bool        // a server stores the weights
	stale       staleness
	left        []int       // unfinished hosts per job
	ends        []olaf.Time // per job, when the last worker finished
	done        int         // hosts that are done
	last        olaf.Time   // when the last host finished
	hung        bool
}

// staleness adds up the staleness of all contributions. The staleness of a contribution is the number of updates
// between reading the weights and applying the gradient.
type staleness struct{ updates, vectors, contributions metric.Float }

func newMeter(r *run) meter {
	m := meter{left: make([]int, r.net.Jobs), ends: make([]olaf.Time, r.net.Jobs), served: r.parts.Server != nil &&
		r.parts.Window == 0}
	if r.inside == nil {
		m.rounds = int(r.job.Updates)
	}
	m.ready, m.have = make([]olaf.Time, r.net.Jobs*m.rounds), make([]olaf.Time, r.net.Jobs*m.rounds)
	for i := range r.hostCount() {
		m.left[r.jobOf(i)]++
	}
	return m
}

// jobOf returns the index of the job to which a host belongs.
func (r *run) jobOf(host int) int {
	if all := r.net.Jobs * r.net.Workers; host >= all {
		return host - all
	}
	return host / r.net.Workers
}

// recordLatest stores now as the time of a job's round, unless a later time is already stored.
func (m *meter) recordLatest(times []olaf.Time, job int, round uint32, now olaf.Time) {
	if int(round) < m.rounds {
		at := &times[job*m.rounds+int(round)]
		*at = max(*at, now)
	}
}

// recordReady records the time at which a host's gradient is ready.
func (m *meter) recordReady(h *host, now olaf.Time) { m.recordLatest(m.ready, h.job, h.vector, now) }

// recordApply records that a host received an update, and how stale the weights used for it were.
func (m *meter) recordApply(h *host, a *endpoint.Aggregate, now olaf.Time) {
	if h.updates > 0 {
		h.gradients += uint64(a.Vectors)
	}
	if !h.server {
		m.recordLatest(m.have, h.job, a.Number, now)
	}
	if t := &a.Trace; t.Vectors > 0 && m.rounds == 0 && h.server == m.served {
		n := metric.Float(t.Vectors)
		late := metric.Float(n*metric.Float(a.Number)) - metric.Float(t.ReadSum)
		m.stale.updates, m.stale.vectors, m.stale.contributions = m.stale.updates+late,
			m.stale.vectors+metric.Float(late*n), m.stale.contributions+n
	}
}

// recordDone records the time at which a host is done.
func (m *meter) recordDone(h *host, now olaf.Time) {
	m.done++
	m.left[h.job]--
	m.last = max(m.last, now)
	if !h.server {
		m.ends[h.job] = max(m.ends[h.job], now)
	}
}

// makeResult computes the result of the run.
func (r *run) makeResult() (*Played, error) {
	m := &r.meter
	end := m.last
	if m.hung {
		end = r.runTime()
	}
	c := &closedloop.Result{Hung: m.hung, Duration: nanoseconds(end), Busiest: metric.Missing()}
	played := &Played{Result: c, Pacing: r.links.Pacing()}
	if err := r.sumCounts(c, end); err != nil {
		return nil, err
	}
	r.computeTimes(c)
	return played, r.addFaults(played)
}

func nanoseconds(t olaf.Time) metric.Float { return metric.Float(t) / metric.Float(olaf.Nanosecond) }

// sumCounts adds up the counts from hosts, program and links. The error matches olaf.ErrAccounting if an accounting
// identity is violated.
func (r *run) sumCounts(c *closedloop.Result, end olaf.Time) error {
	c.Endpoints = olaf.NewCounts(endpoint.Describe())
	for _, h := range r.hosts {
		one := olaf.NewCounts(c.Endpoints.Ledger())
		for i, n := range h.end.Counts() {
			one.SetAt(i, int64(n))
			c.Endpoints.SetAt(i, c.Endpoints.At(i)+int64(n))
		}
		if err := one.Balance(); err != nil {
			return fmt.Errorf("%s: %w", r.names[h.number], err)
		}
		if r.inside == nil {
			c.Endpoints.Add("packets_inexact", int64(h.wrong))
			c.Endpoints.Add("updates_torn", int64(h.torn))
		}
	}
	c.Program = r.parts.Program.CountsOf(r.program)
	if err := c.Program.Balance(); err != nil {
		return fmt.Errorf("the switch: %w", err)
	}
	sw, links := r.sw.Counts(), r.links.Counts()
	c.Frames, c.Bytes, c.Lost, c.Underway, c.Arrived, c.Switched = links.Frames, links.Bytes, links.Lost, links.Waits,
		r.countArrived(), sw.Switched
	c.Slots, c.Memory, c.HeldLast = r.program.Slots(), r.program.Memory(), r.program.CountOccupied()
	c.OccupiedSlotsPeak, c.OccupiedSlots, c.OccupiedBytes = metric.Float(sw.Most), metric.Missing(), metric.Missing()
	if end > 0 {
		c.OccupiedSlots = metric.Float((sw.SlotIntegral + float64(float64(sw.Slots)*float64(max(end.Sub(sw.Since), 0)))) / float64(end))
		if c.Slots > 0 {
			c.OccupiedBytes = c.OccupiedSlots * metric.Float(c.Memory) / metric.Float(c.Slots)
		}
	}
	return nil
}

// computeTimes computes the mean times over workers, rounds and jobs.
func (r *run) computeTimes(c *closedloop.Result) {
	var iteration, gradient, goodput, aggregation, completion metric.Series
	c.Updates = ^uint64(0)
	served := uint64(0)
	for _, h := range r.hosts {
		if h.server {
			served += h.arrived.Load()
			continue
		}
		c.Updates = min(c.Updates, h.updates)
		if h.updates > 1 {
			iteration.Add(nanoseconds(olaf.Time(h.last.Sub(h.first))) / metric.Float(h.updates-1))
			if h.gradients > 0 {
				gradient.Add(nanoseconds(olaf.Time(h.last.Sub(h.first))) / metric.Float(h.gradients))
			}
		}
		if h.last > 0 {
			bits := metric.Float(h.updates) * metric.Float(r.job.Layout.Values) * 8 * olaf.LaneBytes
			goodput.Add(bits / (metric.Float(h.last) / metric.Float(olaf.Second)))
		}
	}
	for i, whole := range r.meter.have {
		if whole > 0 {
			aggregation.Add(nanoseconds(olaf.Time(whole.Sub(r.meter.ready[i]))))
		}
	}
	for job, left := range r.meter.left {
		if left == 0 {
			completion.Add(nanoseconds(r.meter.ends[job]))
		}
	}
	c.Gradient = gradient.Mean()
	c.Iteration, c.Goodput, c.Aggregation, c.Completion = iteration.Mean(), goodput.Mean(), aggregation.Mean(),
		completion.Mean()
	c.StaleUpdates, c.StaleVectors = metric.Missing(), metric.Missing()
	if s := &r.meter.stale; s.contributions > 0 {
		c.StaleUpdates, c.StaleVectors = s.updates/s.contributions, s.vectors/s.contributions
	}
	c.Served = metric.Missing()
	if r.parts.Server != nil && c.Updates > 0 {
		c.Served = metric.Float(served) / metric.Float(r.net.Jobs*r.job.Packets()*int(r.job.Updates))
	}
}

// addFaults adds the faults of wires and sockets to the result. Simulated links do not have such faults.
func (r *run) addFaults(p *Played) error {
	addFault := func(format string, a ...any) { p.Faults = append(p.Faults, fmt.Sprintf(format, a...)) }
	links := r.links.Counts()
	if links.Unsent > 0 {
		addFault("interfaces refused %s: %v", olaf.Plural(links.Unsent, "frame"), links.FirstError)
	}
	for i, s := range r.sockets {
		switch lost, err := s.TakeLost(); {
		case err != nil:
			return err
		case lost > 0:
			at := r.names[i/2]
			if i%2 == 1 {
				at = "the switch's port to " + at
			}
			addFault("%s found no room in the socket of %s", olaf.Plural(int64(lost), "frame"), at)
		}
	}
	if came := r.countArrived(); came != links.Sent && !p.Hung {
		addFault("%s went into cables, and %d came out", olaf.Plural(links.Sent, "frame"), came)
	}
	r.addUnproved(addFault)
	strange := r.sw.Counts().Strange
	for _, h := range r.hosts {
		strange += h.strange.Load()
	}
	if strange > 0 {
		addFault("%s of other systems came through the cables", olaf.Plural(strange, "frame"))
	}
	return nil
}

// addUnproved reports packets whose contents do not match the recorded gradients, and frames without a known sender. It
// does nothing if contents were not recorded.
func (r *run) addUnproved(addFault func(format string, a ...any)) {
	if r.inside == nil {
		return
	}
	wrong := 0
	for _, h := range r.hosts {
		wrong += h.wrong
	}
	if wrong > 0 {
		addFault("%s received by hosts do not contain the gradients that were added", olaf.Plural(wrong, "packet"))
	}
	if n := r.inside.unproved; n > 0 {
		addFault("%s of sums left the switch that do not follow from its input", olaf.Plural(n, "packet"))
	}
	if n := r.inside.unnoted; n > 0 {
		addFault("%s arrived without a known sender", olaf.Plural(n, "frame"))
	}
}
