package policy

import (
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
)

// mode is one way in which a job can be served: by its server, or by the switch of a unit.
type mode struct {
	unit int     // unit whose switch aggregates, or NoSwitch
	late float64 // seconds after the transfer
	most float64 // maximum useful rate per worker, Gbit/s
	free bool    // has nothing to send, by the printed Eqs. (4) and (8)
}

// program is the model of an instance, with the indexes of its variables. Volumes are in Gbit, rates in Gbit/s, and
// times in s.
type program struct {
	Model
	in      *sched.Instance
	repairs sched.Repairs
	slots   int
	end     int   // variable: time when the last job is done
	busy    []int // by slot: a job sends in it or later
	jobs    []columns
	pairs   []pair
	pairOf  map[[2]int]int
	// least is a lower bound on the time of any schedule, from each job alone.
	least float64
}

// columns contains the indexes of the variables that belong to one job.
type columns struct {
	modes  []mode
	chosen []int          // by mode: the mode serves the job; nil if there is only one mode
	sends  []int          // by slot: the slot is within the transfer; -1 before the arrival
	rates  [][]int        // by mode and slot, -1 before the arrival
	held   [][]int        // by mode and slot: the switch has a place for the job; nil for the server
	lost   map[[3]int]int // by mode, share and slot: increase of the rate over connections being set up
}

// pair describes two units between which there may be traffic.
type pair struct {
	v, u   int
	count  []int // by slot: connections; nil if they are fixed
	rises  []int // by slot: the number of connections increases
	before int
	most   int
}

// giga is the factor by which volumes and rates in a model are divided. The resulting numbers suit the tolerances of
// solvers.
const giga = 1e9

// buildModel returns a model of the problem over the given number of slots. The model excludes schedules that end after
// cutoff.
func buildModel(in *sched.Instance, repairs sched.Repairs, slots int, cutoff olaf.Duration) *program {
	b := &program{in: in, repairs: repairs, slots: slots, pairOf: map[[2]int]int{}}
	b.notes()
	b.end = b.add("t_end", 0, cutoff.Seconds(), false)
	b.Objective = []Term{{b.end, 1}}
	for i := range slots {
		b.busy = append(b.busy, b.add(fmt.Sprintf("busy_s%d", i), 0, 1, true))
	}
	for k := range in.Jobs {
		b.jobs = append(b.jobs, b.columns(k))
	}
	for _, c := range in.Problem.Connections { // unneeded connections occupy ports until they are torn down
		b.pair(in.Unit(c.Between[0]), in.Unit(c.Between[1]))
	}
	b.connections()
	for k := range in.Jobs {
		b.serve(k)
	}
	b.switches()
	b.links()
	b.time()
	// The cutoff is also a row, for solvers that treat bounds of continuous variables loosely.
	b.row("t_cutoff", AtMost, cutoff.Seconds(), Term{b.end, 1})
	return b
}

// notes adds comments to the LP file that explain the short names.
func (b *program) notes() {
	p := b.in.Problem
	b.Notes = append(b.Notes,
		"Minimise the end of the last transfer and its update, in s. Rates are Gbit/s of each worker, volumes Gbit.",
		fmt.Sprintf("Slots s of %v, reconfiguration %v, ports of %v, interfaces of %v. Repairs: %v.", p.Slot,
			p.Reconfiguration, p.PortRate, p.ServerRate, b.repairs))
	for v := range b.in.Units {
		b.Notes = append(b.Notes, fmt.Sprintf("u%d: unit %s", v, b.in.Units[v].Name))
	}
	for k := range b.in.Jobs {
		b.Notes = append(b.Notes, fmt.Sprintf("j%d: job %s", k, b.in.Jobs[k].ID))
	}
}

func (b *program) has(r sched.Repairs) bool { return b.repairs.Has(r) }

// first returns the first slot in which the model allows a job to send.
func (b *program) first(m *sched.Member) int {
	if b.has(sched.ArrivalSlot) {
		return m.Arrival
	}
	return 0
}

// modesOf returns the ways in which a job can be served. The server comes first.
func (b *program) modesOf(m *sched.Member) []mode {
	var out []mode
	for _, unit := range append([]int{sched.NoSwitch}, m.Switches...) {
		one := mode{unit: unit, late: m.Update, most: b.most(m, unit)}
		if m.IsOffloaded(unit) {
			one.late = 0
			one.free = !b.has(sched.Volume) && m.Server != unit
		}
		out = append(out, one)
	}
	return out
}

// most returns the rate above which a worker gains nothing. It is the rate that interfaces, switches and ports can
// carry if the job is alone, or the rate that moves the job's volume within one slot.
func (b *program) most(m *sched.Member, unit int) float64 {
	in := b.in
	slot := in.Slot
	streams := 0
	limit := math.Inf(1)
	for _, s := range m.Shares {
		n := m.Streams(s, unit)
		streams += n
		if s.Unit != m.Server && n > 0 {
			ports := min(in.Units[s.Unit].Ports, in.Units[m.Server].Ports)
			limit = min(limit, float64(ports)*in.Port/float64(n))
			slot = in.Slot - in.Epsilon
		}
	}
	if slot <= 0 {
		slot = in.Slot
	}
	limit = min(limit, m.Volume/slot)
	if b.has(sched.ServerRate) {
		limit = min(limit, in.Server/float64(max(1, streams)))
	}
	for v := range in.Units {
		if cap, n := float64(in.Units[v].SwitchRate), movedStreams(m, v, unit); cap > 0 && n > 0 {
			limit = min(limit, cap/n)
		}
	}
	return limit / giga
}

// movedStreams returns the number of a job's streams that pass through the switch of unit v, up and down (Eq. (5)).
func movedStreams(m *sched.Member, v, unit int) (n float64) {
	for _, s := range m.Shares {
		if s.Unit == v {
			n += float64(s.Workers)
		}
		if m.Server == v {
			n += float64(m.Streams(s, unit))
		}
	}
	return n
}

// columns creates the variables of job k.
func (b *program) columns(k int) columns {
	m := &b.in.Jobs[k]
	c := columns{modes: b.modesOf(m), lost: map[[3]int]int{}}
	for i := range b.slots {
		if i < b.first(m) {
			c.sends = append(c.sends, -1)
			continue
		}
		c.sends = append(c.sends, b.add(fmt.Sprintf("x_j%d_s%d", k, i), 0, 1, true))
	}
	for n, way := range c.modes {
		name := "ps"
		if way.unit != sched.NoSwitch {
			name = fmt.Sprintf("u%d", way.unit)
		}
		if len(c.modes) > 1 {
			c.chosen = append(c.chosen, b.add(fmt.Sprintf("k_j%d_%s", k, name), 0, 1, true))
		}
		rates, held := make([]int, b.slots), make([]int, b.slots)
		for i := range b.slots {
			rates[i], held[i] = -1, -1
			if c.sends[i] < 0 {
				continue
			}
			rates[i] = b.add(fmt.Sprintf("r_j%d_%s_s%d", k, name, i), 0, way.most, false)
			if way.unit != sched.NoSwitch {
				held[i] = b.add(fmt.Sprintf("h_j%d_%s_s%d", k, name, i), 0, 1, false)
			}
		}
		if way.unit == sched.NoSwitch {
			held = nil
		}
		c.rates, c.held = append(c.rates, rates), append(c.held, held)
		b.pairsOf(m, n, &c)
	}
	return c
}

// pairsOf records the pairs of units between which one mode of a job has traffic.
func (b *program) pairsOf(m *sched.Member, n int, c *columns) {
	for _, s := range m.Shares {
		if s.Unit != m.Server && m.Streams(s, c.modes[n].unit) > 0 {
			b.pair(s.Unit, m.Server)
		}
	}
}

// pair records a pair of units that has connections or may get connections.
func (b *program) pair(v, u int) {
	key := [2]int{min(v, u), max(v, u)}
	if _, known := b.pairOf[key]; known {
		return
	}
	b.pairOf[key] = len(b.pairs)
	b.pairs = append(b.pairs, pair{v: key[0], u: key[1], before: b.in.Initial[key],
		most: min(b.in.Units[key[0]].Ports, b.in.Units[key[1]].Ports)})
}

// connections creates the variables for connections and the constraints on ports (Eqs. (6), (7)).
func (b *program) connections() {
	if b.in.Problem.Fixed {
		return
	}
	for k := range b.pairs {
		p := &b.pairs[k]
		for i := range b.slots {
			p.count = append(p.count, b.add(fmt.Sprintf("p_u%d_u%d_s%d", p.v, p.u, i), 0, float64(p.most), true))
			if b.in.Epsilon > 0 {
				p.rises = append(p.rises, b.add(fmt.Sprintf("a_u%d_u%d_s%d", p.v, p.u, i), 0, 1, true))
				b.rise(p, i)
			}
		}
	}
	for v := range b.in.Units {
		for i := range b.slots {
			var terms []Term
			for k := range b.pairs {
				if p := &b.pairs[k]; p.v == v || p.u == v {
					terms = append(terms, Term{p.count[i], 1})
				}
			}
			if len(terms) > 0 {
				b.row(fmt.Sprintf("ports_u%d_s%d", v, i), AtMost, float64(b.in.Units[v].Ports), terms...)
			}
		}
	}
}

// rise adds the constraints that detect an increase in a pair's connections in slot i. An increase means more than 0
// or, as the paper prints it, more than −1.
func (b *program) rise(p *pair, i int) {
	grown, big := 0.0, float64(p.most)
	if !b.has(sched.Rise) {
		grown, big = 1, big+1
	}
	name := fmt.Sprintf("rise_u%d_u%d_s%d", p.v, p.u, i)
	if i == 0 {
		b.row(name, AtMost, float64(p.before)-grown, Term{p.count[0], 1}, Term{p.rises[0], -big})
		return
	}
	b.row(name, AtMost, -grown, Term{p.count[i], 1}, Term{p.count[i-1], -1}, Term{p.rises[i], -big})
}

// serve adds the constraints on job k: it has one mode and one transfer without a gap, and sends its complete volume.
func (b *program) serve(k int) {
	m, c := &b.in.Jobs[k], &b.jobs[k]
	if c.chosen != nil {
		terms := olaf.Map(c.chosen, func(v int) Term { return Term{v, 1} })
		b.row(fmt.Sprintf("one_j%d", k), Equal, 1, terms...)
	}
	b.span(k, m, c)
	for n := range c.modes {
		b.use(k, n, c)
		b.carry(k, n, m, c)
	}
}

// span limits the rates to the slots of the transfer, and limits the transfer by its length. Gaps matter only for a job
// that occupies a place in a switch. For other jobs an idle slot within the transfer costs nothing.
func (b *program) span(k int, m *sched.Member, c *columns) {
	var all, starts []Term
	for i, x := range c.sends {
		if x < 0 {
			continue
		}
		all = append(all, Term{x, 1})
		terms := []Term{{x, -1}}
		for n, way := range c.modes {
			if way.most > 0 {
				terms = append(terms, Term{c.rates[n][i], 1 / way.most})
			}
		}
		b.row(fmt.Sprintf("within_j%d_s%d", k, i), AtMost, 0, terms...)
		b.row(fmt.Sprintf("busy_j%d_s%d", k, i), AtMost, 0, Term{x, 1}, Term{b.busy[i], -1})
		if len(c.modes) == 1 {
			continue
		}
		s := b.add(fmt.Sprintf("b_j%d_s%d", k, i), 0, 1, false)
		starts = append(starts, Term{s, 1})
		begins := []Term{{x, 1}, {s, -1}}
		if i > 0 && c.sends[i-1] >= 0 {
			begins = append(begins, Term{c.sends[i-1], -1})
		}
		b.row(fmt.Sprintf("begin_j%d_s%d", k, i), AtMost, 0, begins...)
	}
	if len(starts) > 0 {
		b.row(fmt.Sprintf("once_j%d", k), AtMost, 1, starts...)
	}
	b.row(fmt.Sprintf("length_j%d", k), AtLeast, float64(b.shortest(m, c)), all...)
}

// shortest returns the minimum number of slots that a job needs if it is alone.
func (b *program) shortest(m *sched.Member, c *columns) int {
	least := math.MaxInt
	for _, way := range c.modes {
		if need := b.slotsOf(m, way); need > 0 {
			least = min(least, need)
		}
	}
	if least == math.MaxInt {
		return b.slots + 1 // no mode works: infeasible
	}
	return least
}

// slotsOf returns the minimum number of slots that a job needs in a mode if it is alone, or 0 if it cannot be served in
// that mode.
func (b *program) slotsOf(m *sched.Member, way mode) int {
	switch {
	case way.free:
		return 1
	case way.most <= 0:
		return 0
	}
	return max(1, int(math.Ceil(m.Volume/giga/(way.most*b.in.Slot)-1e-9)))
}

// use allows mode n of job k to send only if the mode is chosen. The job keeps its place in the switch from its first
// slot to its last.
func (b *program) use(k, n int, c *columns) {
	for i, r := range c.rates[n] {
		if r < 0 || c.chosen == nil {
			continue
		}
		most := c.modes[n].most
		name := fmt.Sprintf("j%d_m%d_s%d", k, n, i)
		if c.held[n] == nil {
			b.row("use_"+name, AtMost, 0, Term{r, 1}, Term{c.chosen[n], -most})
			continue
		}
		h := c.held[n][i]
		b.row("use_"+name, AtMost, 0, Term{r, 1}, Term{h, -most})
		b.row("may_"+name, AtMost, 0, Term{h, 1}, Term{c.chosen[n], -1})
		b.row("hold_"+name, AtLeast, -1, Term{h, 1}, Term{c.chosen[n], -1}, Term{c.sends[i], -1})
	}
}

// carry adds Eqs. (8) to (10). The workers of each share must send their volume in addition to the loss by
// reconfigurations.
func (b *program) carry(k, n int, m *sched.Member, c *columns) {
	way := c.modes[n]
	if way.free {
		return
	}
	direct := false // some worker sends over no connection
	for s, share := range m.Shares {
		var lost []Term
		if share.Unit != m.Server && m.Streams(share, way.unit) > 0 {
			lost = b.losses(k, n, s, m, c)
		}
		if lost == nil {
			direct = true
			continue
		}
		b.volume(fmt.Sprintf("volume_j%d_m%d_v%d", k, n, s), n, m, c, lost)
	}
	if direct {
		b.volume(fmt.Sprintf("volume_j%d_m%d", k, n), n, m, c, nil)
	}
}

func (b *program) volume(name string, n int, m *sched.Member, c *columns, lost []Term) {
	var terms []Term
	for _, r := range c.rates[n] {
		if r >= 0 {
			terms = append(terms, Term{r, b.in.Slot})
		}
	}
	terms = append(terms, lost...)
	volume := m.Volume / giga
	if c.chosen == nil {
		b.row(name, AtLeast, volume, terms...)
		return
	}
	b.row(name, AtLeast, 0, append(terms, Term{c.chosen[n], -volume})...)
}

// losses creates the variables for a share's loss by reconfigurations. In a slot in which the connections of the
// share's pair increase, the loss is the increase of the rate multiplied by the time of the reconfiguration.
func (b *program) losses(k, n, s int, m *sched.Member, c *columns) []Term {
	share := m.Shares[s]
	p := &b.pairs[b.pairOf[[2]int{min(share.Unit, m.Server), max(share.Unit, m.Server)}]]
	if p.rises == nil {
		return nil
	}
	var out []Term
	most := c.modes[n].most
	for i, r := range c.rates[n] {
		if r < 0 {
			continue
		}
		name := fmt.Sprintf("j%d_m%d_v%d_s%d", k, n, s, i)
		y := b.add("y_"+name, 0, most, false)
		c.lost[[3]int{n, s, i}] = y
		terms := []Term{{y, 1}, {r, -1}, {p.rises[i], -most}}
		if i > 0 && c.rates[n][i-1] >= 0 {
			terms = append(terms, Term{c.rates[n][i-1], 1})
		}
		b.row("lost_"+name, AtLeast, -most, terms...)
		out = append(out, Term{y, -b.in.Epsilon})
	}
	return out
}

// switches adds the constraints on units: places and memory (Eq. (3)), and bandwidth (Eq. (5)). A limit applies only
// while a job sends, which tightens the relaxation.
func (b *program) switches() {
	for v := range b.in.Units {
		u := &b.in.Units[v]
		for i := range b.slots {
			var places, memory, bandwidth []Term
			for k := range b.jobs {
				m, c := &b.in.Jobs[k], &b.jobs[k]
				for n, way := range c.modes {
					if c.rates[n][i] < 0 {
						continue
					}
					if way.unit == v {
						places = append(places, Term{c.held[n][i], 1})
						memory = append(memory, Term{c.held[n][i], float64(m.Segment) / 1e6})
					}
					if through := movedStreams(m, v, way.unit); through > 0 {
						bandwidth = append(bandwidth, Term{c.rates[n][i], through})
					}
				}
			}
			b.within(fmt.Sprintf("inc_u%d_s%d", v, i), i, float64(u.INC), len(places) > u.INC, places)
			b.within(fmt.Sprintf("memory_u%d_s%d", v, i), i, float64(u.Memory)/1e6, u.Memory > 0, memory)
			b.within(fmt.Sprintf("switch_u%d_s%d", v, i), i, float64(u.SwitchRate)/giga, u.SwitchRate > 0, bandwidth)
		}
	}
}

// within limits a sum of terms in slot i. The limit is 0 if no job sends in the slot.
func (b *program) within(name string, i int, limit float64, binds bool, terms []Term) {
	if binds && len(terms) > 0 {
		b.row(name, AtMost, 0, append(slices.Clone(terms), Term{b.busy[i], -limit})...)
	}
}

// links adds the constraints on traffic between units (Eq. (6)) and on each unit's total traffic. The constraints on
// the total follow from the others and from the ports, but they make the relaxation account for busy ports.
func (b *program) links() {
	for i := range b.slots {
		flows := b.flows(i)
		for k := range b.pairs {
			p := &b.pairs[k]
			there, back := flows[[2]int{p.v, p.u}], flows[[2]int{p.u, p.v}]
			if b.in.Problem.HalfDuplex || !b.has(sched.Duplex) {
				there, back = append(there, back...), nil
			}
			b.link(fmt.Sprintf("link_u%d_u%d_s%d", p.v, p.u, i), p, i, there)
			b.link(fmt.Sprintf("link_u%d_u%d_s%d", p.u, p.v, i), p, i, back)
		}
		for v := range b.in.Units {
			var out, in []Term
			for k := range b.pairs { // in order, so that the model is the same every time
				p := &b.pairs[k]
				switch v {
				case p.v:
					out, in = append(out, flows[[2]int{p.v, p.u}]...), append(in, flows[[2]int{p.u, p.v}]...)
				case p.u:
					out, in = append(out, flows[[2]int{p.u, p.v}]...), append(in, flows[[2]int{p.v, p.u}]...)
				}
			}
			limit := float64(b.in.Units[v].Ports) * b.in.Port / giga
			b.within(fmt.Sprintf("out_u%d_s%d", v, i), i, limit, true, out)
			b.within(fmt.Sprintf("in_u%d_s%d", v, i), i, limit, true, in)
		}
	}
}

// flows returns the terms for the traffic from each unit to each other unit in slot i.
func (b *program) flows(i int) map[[2]int][]Term {
	flows := map[[2]int][]Term{}
	for k := range b.jobs {
		m, c := &b.in.Jobs[k], &b.jobs[k]
		for n, way := range c.modes {
			for _, s := range m.Shares {
				if streams := m.Streams(s, way.unit); c.rates[n][i] >= 0 && s.Unit != m.Server && streams > 0 {
					key := [2]int{s.Unit, m.Server}
					flows[key] = append(flows[key], Term{c.rates[n][i], float64(streams)})
				}
			}
		}
	}
	return flows
}

func (b *program) link(name string, p *pair, i int, terms []Term) {
	switch {
	case len(terms) == 0:
	case p.count == nil:
		b.row(name, AtMost, float64(p.before)*b.in.Port/giga, terms...)
	default:
		b.row(name, AtMost, 0, append(slices.Clone(terms), Term{p.count[i], -b.in.Port / giga})...)
	}
}

// time adds Eq. (11): the end is not before the last slot of any job, plus the update of the job's server.
func (b *program) time() {
	slot := b.in.Slot
	all := []Term{{b.end, 1}}
	for i, v := range b.busy {
		all = append(all, Term{v, -slot})
		if i > 0 {
			b.row(fmt.Sprintf("still_s%d", i), AtMost, 0, Term{v, 1}, Term{b.busy[i-1], -1})
		}
	}
	b.row("t_busy", AtLeast, -slot*float64(1-b.endOffset()), all...)
	for k := range b.jobs {
		m, c := &b.in.Jobs[k], &b.jobs[k]
		if m.Update == 0 {
			continue
		}
		for i, x := range c.sends {
			if x < 0 {
				continue
			}
			terms := []Term{{b.end, 1}, {x, -slot * float64(i+b.endOffset())}}
			if c.chosen == nil {
				b.row(fmt.Sprintf("t_j%d_s%d", k, i), AtLeast, 0, append(terms, Term{x, -c.modes[0].late})...)
				continue
			}
			for n, way := range c.modes {
				terms = append(terms, Term{c.chosen[n], -way.late})
			}
			b.row(fmt.Sprintf("t_j%d_s%d", k, i), AtLeast, 0, terms...)
		}
	}
	for k := range b.jobs {
		b.boundEnd(&b.in.Jobs[k], &b.jobs[k])
	}
	b.row("t_least", AtLeast, b.least, Term{b.end, 1})
}

// endOffset returns 1 if a slot counts until its end, and 0 if, as printed in the paper, it counts until its start.
func (b *program) endOffset() int {
	if b.has(sched.SlotEnd) {
		return 1
	}
	return 0
}

// boundEnd raises the lower bound on the end to the time that the job needs alone.
func (b *program) boundEnd(m *sched.Member, c *columns) {
	alone := math.Inf(1)
	for _, way := range c.modes {
		if need := b.slotsOf(m, way); need > 0 {
			alone = min(alone, float64(b.in.Slot*float64(b.first(m)+need-1+b.endOffset()))+way.late)
		}
	}
	if !math.IsInf(alone, 1) {
		b.least = max(b.least, alone)
	}
}
