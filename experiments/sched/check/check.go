// Package check says whether a plan keeps to its network and serves its jobs, whoever made it. It knows the problem and the
// plan and nothing of the planners: every constraint of package sched is computed again here, from names and the plan's own
// rates, and so are the plan's claims.
package check

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
)

// Rule is a constraint of the schedule.
type Rule string

// The rules, in the order in which they are listed.
const (
	Form            Rule = "form"        // the plan speaks of every job once, of slots and units that exist, in numbers
	Arrival         Rule = "arrival"     // nothing is sent before a job arrives
	Aggregator      Rule = "aggregator"  // a switch aggregates only for whom it may
	Capacity        Rule = "inc"         // jobs at a time in a switch
	Memory          Rule = "memory"      // their segments
	ServerRate      Rule = "server_rate" // interface of worker or parameter server
	SwitchRate      Rule = "switch_rate" // a unit's switch
	Ports           Rule = "ports"       // connections of a unit
	PortRate        Rule = "port_rate"   // traffic between two units
	FixedConnection Rule = "fixed"       // connections that can't be changed
	Volume          Rule = "volume"      // every worker's volume, less what reconfigurations cost
	Claim           Rule = "claim"       // what the plan says of itself
)

// tolerance is how far, relative to a limit, sums of floating-point rates may be above it.
const tolerance = 1e-6

// Violation is one rule that a plan breaks. Over a span of slots it stands once, where it is worst.
type Violation struct {
	Rule Rule   `json:"rule"`
	What string `json:"what"` // one sentence
	Slot int    `json:"slot"` // -1 where it is of no slot
	Job  string `json:"job,omitempty"`
	Unit string `json:"unit,omitempty"`
}

// Verdict is what the checker found.
type Verdict struct {
	Violations []Violation   `json:"violations"`
	Outcome    sched.Outcome `json:"outcome"` // computed again; only as good as the plan where there are violations
	// Carried is the bits that each job's slowest worker has sent, in the order of the problem's jobs.
	Carried []float64 `json:"-"`
}

// OK says that every rule is kept.
func (v *Verdict) OK() bool { return len(v.Violations) == 0 }

// Broken counts violations by rule, as text for one line.
func (v *Verdict) Broken() string {
	var order []Rule
	count := map[Rule]int{}
	for _, one := range v.Violations {
		if count[one.Rule] == 0 {
			order = append(order, one.Rule)
		}
		count[one.Rule]++
	}
	var parts []string
	for _, rule := range order {
		parts = append(parts, fmt.Sprintf("%s %d×", rule, count[rule]))
	}
	return strings.Join(parts, ", ")
}

// checking is the state of one check.
type checking struct {
	problem *sched.Problem
	plan    *sched.Plan
	units   map[string]*sched.Unit
	jobs    map[string]*sched.Job
	links   map[[2]string]*link // by pair of names, the smaller first
	verdict Verdict
}

// link is the connections between two units: so many before slot 0, and from the slots at on, which rise, so many.
type link struct {
	before int
	at     []int
	count  []int
}

// in is how many there are in slot i.
func (l *link) in(i int) int {
	if l == nil {
		return 0
	}
	k, found := slices.BinarySearch(l.at, i)
	if !found {
		k--
	}
	if k < 0 {
		return l.before
	}
	return l.count[k]
}

// grown is by how much they become more in slot i.
func (l *link) grown(i int) int {
	if l == nil {
		return 0
	}
	if i == 0 {
		return max(0, l.in(0)-l.before)
	}
	return max(0, l.in(i)-l.in(i-1))
}

// Check judges a plan by its own problem, which must be one that sched.Problem.Check accepts.
func Check(plan *sched.Plan) *Verdict {
	c := &checking{problem: plan.Problem, plan: plan, units: map[string]*sched.Unit{}, jobs: map[string]*sched.Job{}}
	for i := range c.problem.Units {
		c.units[c.problem.Units[i].Name] = &c.problem.Units[i]
	}
	for i := range c.problem.Jobs {
		c.jobs[c.problem.Jobs[i].ID] = &c.problem.Jobs[i]
	}
	if c.form() {
		c.connect()
		c.each()
		c.perSlot()
		c.volumes()
		c.claims()
	}
	slices.SortStableFunc(c.verdict.Violations, func(a, b Violation) int { return a.Slot - b.Slot })
	return &c.verdict
}

func (c *checking) broken(rule Rule, slot int, job, unit, format string, args ...any) {
	c.verdict.Violations = append(c.verdict.Violations, Violation{rule, fmt.Sprintf(format, args...), slot, job, unit})
}

// form checks what everything else rests on; without it nothing more can be said.
func (c *checking) form() bool {
	if c.plan.Slots < 0 || c.plan.Slots > c.problem.Longest() {
		c.broken(Form, -1, "", "", "the plan has %d slots; 0 to %d", c.plan.Slots, c.problem.Longest())
		return false
	}
	seen := map[string]bool{}
	for i := range c.plan.Jobs {
		a := &c.plan.Jobs[i]
		switch {
		case c.jobs[a.Job] == nil:
			c.broken(Form, -1, a.Job, "", "the plan serves %q, which is no job of its problem", a.Job)
		case seen[a.Job]:
			c.broken(Form, -1, a.Job, "", "the plan serves job %s twice", a.Job)
		case a.INC != "" && c.units[a.INC] == nil:
			c.broken(Form, -1, a.Job, a.INC, "job %s is aggregated in %q, which is no unit", a.Job, a.INC)
		case a.Start < 0 || a.Start > c.plan.Slots-len(a.Rates):
			c.broken(Form, -1, a.Job, "", "job %s sends in slots %d to %d; the plan has slots 0 to %d", a.Job, a.Start, a.Start+len(a.Rates)-1, c.plan.Slots-1)
		}
		seen[a.Job] = true
		for k, r := range a.Rates {
			if math.IsNaN(r) || math.IsInf(r, 0) || r < 0 {
				c.broken(Form, a.Start+k, a.Job, "", "job %s has rate %v in slot %d", a.Job, r, a.Start+k)
				break
			}
		}
	}
	for i := range c.problem.Jobs {
		if id := c.problem.Jobs[i].ID; !seen[id] {
			c.broken(Form, -1, id, "", "the plan has no job %s", id)
		}
	}
	for _, k := range c.plan.Connections {
		if c.units[k.Between[0]] == nil || c.units[k.Between[1]] == nil || k.Between[0] == k.Between[1] || k.Count < 0 || k.Slot < 0 || k.Slot >= max(c.plan.Slots, 1) {
			c.broken(Form, k.Slot, "", "", "%d connections between %s and %s from slot %d make no sense", k.Count, k.Between[0], k.Between[1], k.Slot)
		}
	}
	return c.verdict.OK()
}

func pairOf(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

// connect gathers the connections of all pairs.
func (c *checking) connect() {
	c.links = map[[2]string]*link{}
	of := func(a, b string) *link {
		pair := pairOf(a, b)
		if c.links[pair] == nil {
			c.links[pair] = &link{}
		}
		return c.links[pair]
	}
	for _, k := range c.problem.Connections {
		of(k.Between[0], k.Between[1]).before += k.Count
	}
	changes := slices.Clone(c.plan.Connections)
	slices.SortStableFunc(changes, func(a, b sched.Change) int { return a.Slot - b.Slot })
	for _, k := range changes {
		l := of(k.Between[0], k.Between[1])
		if n := len(l.at); n > 0 && l.at[n-1] == k.Slot {
			l.count[n-1] = k.Count // said twice: the last word counts
			continue
		}
		l.at, l.count = append(l.at, k.Slot), append(l.count, k.Count)
	}
	for _, pair := range c.pairs() {
		l := c.links[pair]
		if k := slices.IndexFunc(l.count, func(n int) bool { return n != l.before }); c.problem.Fixed && k >= 0 {
			c.broken(FixedConnection, l.at[k], "", pair[0], "connections between %s and %s become %d in slot %d; they are fixed at %d", pair[0], pair[1], l.count[k], l.at[k], l.before)
		}
	}
}

// pairs lists the pairs that have connections at any time, in order.
func (c *checking) pairs() [][2]string {
	out := make([][2]string, 0, len(c.links))
	for pair := range c.links {
		out = append(out, pair)
	}
	slices.SortFunc(out, func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
	return out
}

// rate is what job a's workers send at in slot i.
func rate(a *sched.Assignment, i int) float64 {
	if k := i - a.Start; k >= 0 && k < len(a.Rates) {
		return a.Rates[k]
	}
	return 0
}

// span is the first and one past the last slot in which a sends; both 0 when it never does.
func span(a *sched.Assignment) (from, to int) {
	from, to = -1, 0
	for k, r := range a.Rates {
		if r > 0 {
			if from < 0 {
				from = a.Start + k
			}
			to = a.Start + k + 1
		}
	}
	return max(from, 0), to
}

// whole says whether all of j's workers are in one unit.
func whole(j *sched.Job) bool { return len(j.Workers) == 1 }

// offloaded says whether a switch does without j's server.
func offloaded(j *sched.Job, inc string) bool { return inc != "" && whole(j) && j.Workers[inc] > 0 }

// streams is how many streams leave j's workers in a unit for the server.
func streams(j *sched.Job, unit, inc string) float64 {
	switch {
	case unit != inc:
		return float64(j.Workers[unit])
	case whole(j):
		return 0
	}
	return 1
}

// each checks what concerns one job alone.
func (c *checking) each() {
	for i := range c.plan.Jobs {
		a := &c.plan.Jobs[i]
		j := c.jobs[a.Job]
		from, to := span(a)
		if arrives := c.arrives(j); to > 0 && from < arrives {
			c.broken(Arrival, from, a.Job, "", "job %s sends in slot %d; it arrives at %v, so slot %d is its first", a.Job, from, j.Arrival, arrives)
		}
		c.aggregator(a, j)
		into := 0.0 // streams into the server's interface
		for unit := range j.Workers {
			into += streams(j, unit, a.INC)
		}
		limit := float64(c.problem.ServerRate)
		for k, r := range a.Rates {
			if r > limit*(1+tolerance) {
				c.broken(ServerRate, a.Start+k, a.Job, "", "workers of %s send at %s in slot %d, above their interfaces' %v", a.Job, gbps(r), a.Start+k, c.problem.ServerRate)
				break
			}
			if r*into > limit*(1+tolerance) {
				c.broken(ServerRate, a.Start+k, a.Job, j.Server, "%g streams of %s come to the server of %s in slot %d, above its interface's %v", into, gbps(r), a.Job, a.Start+k, c.problem.ServerRate)
				break
			}
		}
	}
}

// arrives is the first slot that begins at j's arrival or later.
func (c *checking) arrives(j *sched.Job) int {
	n := j.Arrival / c.problem.Slot
	if n*c.problem.Slot < j.Arrival {
		n++
	}
	return int(n)
}

func (c *checking) aggregator(a *sched.Assignment, j *sched.Job) {
	if a.INC == "" {
		return
	}
	u := c.units[a.INC]
	switch {
	case j.ServerOnly:
		c.broken(Aggregator, a.Start, a.Job, a.INC, "job %s is for its server only, and the switch of %s aggregates it", a.Job, a.INC)
	case j.Workers[a.INC] == 0:
		c.broken(Aggregator, a.Start, a.Job, a.INC, "the switch of %s aggregates job %s, which has no workers there", a.INC, a.Job)
	case !whole(j) && !c.problem.PartialINC:
		c.broken(Aggregator, a.Start, a.Job, a.INC, "the switch of %s aggregates job %s, whose workers are in %d units", a.INC, a.Job, len(j.Workers))
	case u.Memory > 0 && j.Segment > u.Memory:
		c.broken(Memory, a.Start, a.Job, a.INC, "job %s needs a segment of %v, more than the switch of %s has (%v)", a.Job, j.Segment, a.INC, u.Memory)
	}
}

func gbps(r float64) string { return fmt.Sprintf("%.6g Gbps", r/1e9) }

// load is what one unit has to do in one slot.
type load struct {
	jobs    int
	segment olaf.Size
	moved   float64 // bit/s through the switch
	ports   int
}

// perSlot checks what jobs share. Of a rule that a unit or pair breaks in several slots, the first is listed.
func (c *checking) perSlot() {
	said := map[string]bool{}
	once := func(key string) bool {
		first := !said[key]
		said[key] = true
		return first
	}
	active := c.active()
	slots := make([]int, 0, len(active))
	for i := range active {
		slots = append(slots, i)
	}
	slices.Sort(slots)
	for _, i := range slots {
		loads, flows := c.loads(i, active[i])
		c.judgeUnits(i, loads, once)
		c.judgePairs(i, flows, once)
	}
}

// active lists the plan's jobs by the slots from their first to their last in which they send. Slots in which nobody
// sends are in it where connections change, or to begin with.
func (c *checking) active() map[int][]int {
	slots := map[int][]int{0: nil}
	for _, l := range c.links {
		for _, i := range l.at {
			slots[i] = nil
		}
	}
	for k := range c.plan.Jobs {
		from, to := span(&c.plan.Jobs[k])
		for i := from; i < to; i++ {
			slots[i] = append(slots[i], k)
		}
	}
	return slots
}

// loads adds up what the active jobs ask of units and of directions between units in slot i.
func (c *checking) loads(i int, active []int) (map[string]*load, map[[2]string]float64) {
	loads, flows := make(map[string]*load, len(c.units)), map[[2]string]float64{}
	for name := range c.units {
		loads[name] = &load{}
	}
	for _, k := range active {
		a := &c.plan.Jobs[k]
		j, r := c.jobs[a.Job], rate(a, i)
		if a.INC != "" {
			loads[a.INC].jobs++
			loads[a.INC].segment += j.Segment
		}
		for unit, workers := range j.Workers {
			n := streams(j, unit, a.INC)
			loads[unit].moved += float64(float64(workers) * r) // up from the workers
			loads[j.Server].moved += float64(n * r)            // down to the server
			if unit != j.Server {
				flows[[2]string{unit, j.Server}] += float64(n * r)
			}
		}
	}
	for pair, l := range c.links {
		loads[pair[0]].ports += l.in(i)
		loads[pair[1]].ports += l.in(i)
	}
	return loads, flows
}

func (c *checking) judgeUnits(i int, loads map[string]*load, once func(string) bool) {
	for k := range c.problem.Units {
		u := &c.problem.Units[k]
		l := loads[u.Name]
		if l.jobs > u.INC && once("inc "+u.Name) {
			c.broken(Capacity, i, "", u.Name, "the switch of %s aggregates for %d jobs in slot %d; it can for %d", u.Name, l.jobs, i, u.INC)
		}
		if u.Memory > 0 && l.segment > u.Memory && once("memory "+u.Name) {
			c.broken(Memory, i, "", u.Name, "segments in the switch of %s need %v in slot %d; it has %v", u.Name, l.segment, i, u.Memory)
		}
		if u.SwitchRate > 0 && l.moved > float64(u.SwitchRate)*(1+tolerance) && once("switch "+u.Name) {
			c.broken(SwitchRate, i, "", u.Name, "the switch of %s moves %s in slot %d; it can move %v", u.Name, gbps(l.moved), i, u.SwitchRate)
		}
		if l.ports > u.Ports && once("ports "+u.Name) {
			c.broken(Ports, i, "", u.Name, "%s has %d connections in slot %d and %d ports", u.Name, l.ports, i, u.Ports)
		}
	}
}

func (c *checking) judgePairs(i int, flows map[[2]string]float64, once func(string) bool) {
	ways := make([][2]string, 0, len(flows))
	for way := range flows {
		ways = append(ways, way)
	}
	slices.SortFunc(ways, func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
	for _, way := range ways {
		count := c.links[pairOf(way[0], way[1])].in(i)
		flow, limit := flows[way], float64(count)*float64(c.problem.PortRate)
		if c.problem.HalfDuplex {
			flow += flows[[2]string{way[1], way[0]}]
		}
		// A hair for pairs without connections, where nothing is relative to anything.
		if flow > float64(limit*(1+tolerance))+1 && once("pair "+way[0]+" "+way[1]) {
			c.broken(PortRate, i, "", way[0], "%s flow from %s to %s in slot %d over %d connections of %v", gbps(flow), way[0], way[1], i, count, c.problem.PortRate)
		}
	}
}

// volumes adds up what every worker sent, less what was lost while connections were set up.
func (c *checking) volumes() {
	carried := map[string]float64{}
	for k := range c.plan.Jobs {
		a := &c.plan.Jobs[k]
		j := c.jobs[a.Job]
		least, where := math.Inf(1), ""
		for _, unit := range sortedUnits(j) {
			if sum := c.carried(a, j, unit); sum < least {
				least, where = sum, unit
			}
		}
		carried[a.Job] = least
		volume := float64(j.Volume.Bits())
		if served := a.Finish > 0; served && least < volume*(1-tolerance) {
			c.broken(Volume, -1, a.Job, where, "workers of %s in %s send %.6g of %.6g Gb", a.Job, where, least/1e9, volume/1e9)
		}
	}
	for i := range c.problem.Jobs {
		c.verdict.Carried = append(c.verdict.Carried, carried[c.problem.Jobs[i].ID])
	}
}

func sortedUnits(j *sched.Job) []string {
	var names []string
	for name := range j.Workers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// carried is the bits that one worker of a in unit sends.
func (c *checking) carried(a *sched.Assignment, j *sched.Job, unit string) float64 {
	slot, epsilon := c.problem.Slot.Seconds(), c.problem.Reconfiguration.Seconds()
	crosses := unit != j.Server && !offloaded(j, a.INC)
	sum, last := 0.0, 0.0
	for k, r := range a.Rates {
		sum += float64(r * slot)
		if crosses && r > last && c.links[pairOf(unit, j.Server)].grown(a.Start+k) > 0 {
			sum -= float64((r - last) * epsilon)
		}
		last = r
	}
	return sum
}

// claims computes the outcome and compares it with what the plan says.
func (c *checking) claims() {
	out := &c.verdict.Outcome
	origin, end := olaf.Duration(math.MaxInt64), olaf.Duration(0)
	assigned := map[string]*sched.Assignment{}
	for k := range c.plan.Jobs {
		assigned[c.plan.Jobs[k].Job] = &c.plan.Jobs[k]
	}
	for i := range c.problem.Jobs {
		j := &c.problem.Jobs[i]
		a := assigned[j.ID]
		origin = min(origin, c.problem.Slot*olaf.Duration(c.arrives(j)))
		if c.verdict.Carried[i] < float64(j.Volume.Bits())*(1-tolerance) {
			out.Unfinished = append(out.Unfinished, j.ID)
			continue
		}
		finish := c.finish(a, j)
		if a.Finish != finish {
			c.broken(Claim, -1, j.ID, "", "the plan ends job %s at %v; it ends at %v", j.ID, a.Finish, finish)
		}
		end = max(end, finish)
		out.TotalJCT += finish - j.Arrival
	}
	if end > 0 {
		out.CTBTI = end - origin
	}
	for _, l := range c.links {
		for _, i := range l.at {
			out.Reconfigurations += l.grown(i)
		}
	}
	c.compare(&c.plan.Outcome, out)
}

// finish is when a job is done that has sent everything.
func (c *checking) finish(a *sched.Assignment, j *sched.Job) olaf.Duration {
	_, to := span(a)
	end := c.problem.Slot * olaf.Duration(to)
	if offloaded(j, a.INC) {
		return end
	}
	return end + j.Update
}

func (c *checking) compare(said, is *sched.Outcome) {
	for _, claim := range []struct {
		name     string
		said, is any
	}{
		{"a CT-BTI of", said.CTBTI, is.CTBTI},
		{"a total JCT of", said.TotalJCT, is.TotalJCT},
		{"a number of reconfigurations of", said.Reconfigurations, is.Reconfigurations},
		{"unfinished jobs, namely", fmt.Sprint(said.Unfinished), fmt.Sprint(is.Unfinished)},
	} {
		if claim.said != claim.is {
			c.broken(Claim, -1, "", "", "the plan claims %s %v; it is %v", claim.name, claim.said, claim.is)
		}
	}
	if p := c.plan.Proof; p != nil && p.Bound > is.CTBTI && len(is.Unfinished) == 0 {
		c.broken(Claim, -1, "", "", "the plan claims that nothing is below %v, and is itself at %v", p.Bound, is.CTBTI)
	}
}
