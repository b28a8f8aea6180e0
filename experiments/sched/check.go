package sched

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
)

// Rule is the name of a constraint on schedules.
type Rule string

// The rules, in listing order.
const (
	BadForm           Rule = "form"        // the plan lists every job once, and its slots, units and numbers are valid
	earlyArrival      Rule = "arrival"     // nothing is sent before a job arrives
	badAggregator     Rule = "aggregator"  // a switch aggregates only jobs that it is allowed to
	overCapacity      Rule = "inc"         // concurrent jobs in a switch
	overMemory        Rule = "memory"      // segments of these jobs
	overServerRate    Rule = "server_rate" // interface of worker or parameter server
	overSwitchRate    Rule = "switch_rate" // a unit's switch
	tooManyPorts      Rule = "ports"       // connections of a unit
	overPortRate      Rule = "port_rate"   // traffic between two units
	changedConnection Rule = "fixed"       // connections that must not change
	wrongVolume       Rule = "volume"      // every worker's volume, after the loss by reconfigurations
	wrongClaim        Rule = "claim"       // the plan's own figures
)

// tolerance is the relative amount by which a sum of floating-point rates may exceed a limit.
const tolerance = 1e-6

// Violation is one broken rule. If a unit or a pair of units breaks a rule in several slots, only the first slot is
// listed.
type Violation struct {
	Rule Rule   `json:"rule"`
	What string `json:"what"` // one sentence
	Slot int    `json:"slot"` // -1 if it concerns no slot
	Job  string `json:"job,omitempty"`
	Unit string `json:"unit,omitempty"`
}

// Verdict is the result of checking a plan.
type Verdict struct {
	Violations []Violation `json:"violations"`
	Outcome    Outcome     `json:"outcome"` // recomputed; reliable only without violations
	// Carried contains the bits that each job's slowest worker has sent, in the order of the problem's jobs.
	Carried []float64 `json:"-"`
}

// OK reports whether every rule is satisfied.
func (v *Verdict) OK() bool { return len(v.Violations) == 0 }

// Summary returns one line of text with the number of violations of each rule.
func (v *Verdict) Summary() string {
	var order []Rule
	count := map[Rule]int{}
	for _, one := range v.Violations {
		if count[one.Rule] == 0 {
			order = append(order, one.Rule)
		}
		count[one.Rule]++
	}
	return strings.Join(olaf.Map(order, func(rule Rule) string { return fmt.Sprintf("%s %d×", rule, count[rule]) }), ", ")
}

// checking is the state of checking one plan.
type checking struct {
	problem *Problem
	plan    *Plan
	units   map[string]*Unit
	jobs    map[string]*Job
	links   map[[2]string]*link // by pair of names in alphabetical order
	verdict Verdict
}

// link contains the number of connections between two units, before slot 0 and from each of the slots in at. The slots
// are in ascending order.
type link struct {
	before int
	at     []int
	count  []int
}

// countIn returns the number of connections in slot i.
func (l *link) countIn(i int) int {
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

// increaseIn returns the increase in the number of connections in slot i.
func (l *link) increaseIn(i int) int {
	if l == nil {
		return 0
	}
	if i == 0 {
		return max(0, l.countIn(0)-l.before)
	}
	return max(0, l.countIn(i)-l.countIn(i-1))
}

// CheckPlan checks whether a plan respects its network and serves its jobs. The problem in the plan must satisfy
// Problem.Check. CheckPlan uses only the problem and the plan and shares no code with the planners. From the names and
// the rates in the plan, it recomputes every constraint and everything that the plan claims.
func CheckPlan(plan *Plan) *Verdict {
	c := &checking{problem: plan.Problem, plan: plan, units: map[string]*Unit{}, jobs: map[string]*Job{}}
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

func (c *checking) addViolation(rule Rule, slot int, job, unit, format string, args ...any) {
	c.verdict.Violations = append(c.verdict.Violations, Violation{rule, fmt.Sprintf(format, args...), slot, job, unit})
}

// form checks the form of the plan. If it returns false, nothing else can be checked.
func (c *checking) form() bool {
	if c.plan.Slots < 0 || c.plan.Slots > c.problem.Longest() {
		c.addViolation(BadForm, -1, "", "", "the plan has %d slots; use 0 to %d", c.plan.Slots, c.problem.Longest())
		return false
	}
	seen := map[string]bool{}
	for i := range c.plan.Jobs {
		a := &c.plan.Jobs[i]
		switch {
		case c.jobs[a.Job] == nil:
			c.addViolation(BadForm, -1, a.Job, "", "the plan serves %q, which is not a job in its problem", a.Job)
		case seen[a.Job]:
			c.addViolation(BadForm, -1, a.Job, "", "the plan serves job %s twice", a.Job)
		case a.INC != "" && c.units[a.INC] == nil:
			c.addViolation(BadForm, -1, a.Job, a.INC, "job %s is aggregated in %q, which is not a unit", a.Job, a.INC)
		case a.Start < 0 || a.Start > c.plan.Slots-len(a.Rates):
			c.addViolation(BadForm, -1, a.Job, "", "job %s sends in slots %d to %d, but the plan has slots 0 to %d",
				a.Job, a.Start, a.Start+len(a.Rates)-1, c.plan.Slots-1)
		}
		seen[a.Job] = true
		for k, r := range a.Rates {
			if math.IsNaN(r) || math.IsInf(r, 0) || r < 0 {
				c.addViolation(BadForm, a.Start+k, a.Job, "", "job %s has rate %v in slot %d", a.Job, r, a.Start+k)
				break
			}
		}
	}
	for i := range c.problem.Jobs {
		if id := c.problem.Jobs[i].ID; !seen[id] {
			c.addViolation(BadForm, -1, id, "", "the plan lacks job %s", id)
		}
	}
	for _, k := range c.plan.Connections {
		if c.units[k.Between[0]] == nil || c.units[k.Between[1]] == nil || k.Between[0] == k.Between[1] ||
			k.Count < 0 || k.Slot < 0 || k.Slot >= max(c.plan.Slots, 1) {
			c.addViolation(BadForm, k.Slot, "", "", "%d connections between %s and %s from slot %d are not possible",
				k.Count, k.Between[0], k.Between[1], k.Slot)
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

// connect collects the connections between all pairs of units.
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
	slices.SortStableFunc(changes, func(a, b Change) int { return a.Slot - b.Slot })
	for _, k := range changes {
		l := of(k.Between[0], k.Between[1])
		if n := len(l.at); n > 0 && l.at[n-1] == k.Slot {
			l.count[n-1] = k.Count // for duplicates, the last one counts
			continue
		}
		l.at, l.count = append(l.at, k.Slot), append(l.count, k.Count)
	}
	for _, pair := range sortPairs(c.links) {
		l := c.links[pair]
		if k := slices.IndexFunc(l.count, func(n int) bool { return n != l.before }); c.problem.Fixed && k >= 0 {
			c.addViolation(changedConnection, l.at[k], "", pair[0],
				"the connections between %s and %s change to %d in slot %d, but they are fixed at %d", pair[0], pair[1],
				l.count[k], l.at[k], l.before)
		}
	}
}

// sortPairs returns the pairs of units in a map, sorted by name.
func sortPairs[V any](pairs map[[2]string]V) [][2]string {
	return slices.SortedFunc(maps.Keys(pairs),
		func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
}

// rateIn returns the rate at which each worker of job a sends in slot i.
func rateIn(a *Assignment, i int) float64 {
	if k := i - a.Start; k >= 0 && k < len(a.Rates) {
		return a.Rates[k]
	}
	return 0
}

// sendingSpan returns the first slot in which a sends and the slot after the last one. Both are 0 if a never sends.
func sendingSpan(a *Assignment) (from, to int) {
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

// isWhole reports whether all of j's workers are in one unit.
func isWhole(j *Job) bool { return len(j.Workers) == 1 }

// isOffloaded reports whether the switch named inc replaces j's server.
func isOffloaded(j *Job, inc string) bool { return inc != "" && isWhole(j) && j.Workers[inc] > 0 }

// streamsOf returns the number of streams that j's workers in a unit send to the server.
func streamsOf(j *Job, unit, inc string) float64 {
	switch {
	case unit != inc:
		return float64(j.Workers[unit])
	case isWhole(j):
		return 0
	}
	return 1
}

// each checks the constraints that concern a single job.
func (c *checking) each() {
	for i := range c.plan.Jobs {
		a := &c.plan.Jobs[i]
		j := c.jobs[a.Job]
		from, to := sendingSpan(a)
		if arrives := c.arrives(j); to > 0 && from < arrives {
			c.addViolation(earlyArrival, from, a.Job, "",
				"job %s sends in slot %d, but it arrives at %v, so its first slot is %d", a.Job, from, j.Arrival,
				arrives)
		}
		c.aggregator(a, j)
		into := 0.0 // streams into the server's interface
		for unit := range j.Workers {
			into += streamsOf(j, unit, a.INC)
		}
		limit := float64(c.problem.ServerRate)
		for k, r := range a.Rates {
			if r > limit*(1+tolerance) {
				c.addViolation(overServerRate, a.Start+k, a.Job, "",
					"the workers of %s send at %s in slot %d, above the %v of their interfaces", a.Job, formatGbps(r),
					a.Start+k, c.problem.ServerRate)
				break
			}
			if r*into > limit*(1+tolerance) {
				c.addViolation(overServerRate, a.Start+k, a.Job, j.Server,
					"%g streams of %s arrive at the server of %s in slot %d, above the %v of its interface", into,
					formatGbps(r), a.Job, a.Start+k, c.problem.ServerRate)
				break
			}
		}
	}
}

// arrives returns the first slot that begins when j has arrived.
func (c *checking) arrives(j *Job) int {
	n := j.Arrival / c.problem.Slot
	if n*c.problem.Slot < j.Arrival {
		n++
	}
	return int(n)
}

func (c *checking) aggregator(a *Assignment, j *Job) {
	if a.INC == "" {
		return
	}
	u := c.units[a.INC]
	switch {
	case j.ServerOnly:
		c.addViolation(badAggregator, a.Start, a.Job, a.INC, "job %s is server_only, but the switch of %s aggregates "+
			"it", a.Job, a.INC)
	case j.Workers[a.INC] == 0:
		c.addViolation(badAggregator, a.Start, a.Job, a.INC, "the switch of %s aggregates job %s, which has no "+
			"workers in that unit", a.INC, a.Job)
	case !isWhole(j) && !c.problem.PartialINC:
		c.addViolation(badAggregator, a.Start, a.Job, a.INC,
			"the switch of %s aggregates job %s, whose workers are in %d units", a.INC, a.Job, len(j.Workers))
	case u.Memory > 0 && j.Segment > u.Memory:
		c.addViolation(overMemory, a.Start, a.Job, a.INC,
			"job %s needs a segment of %v, more than the switch of %s has (%v)", a.Job, j.Segment, a.INC, u.Memory)
	}
}

func formatGbps(r float64) string { return fmt.Sprintf("%.6g Gbps", r/1e9) }

// load is the load on one unit in one slot.
type load struct {
	jobs    int
	segment olaf.Size
	moved   float64 // bit/s through the switch
	ports   int
}

// perSlot checks the constraints that several jobs share. If a unit or a pair breaks a rule in several slots, the first
// of them is listed.
func (c *checking) perSlot() {
	said := map[string]bool{}
	once := func(key string) bool {
		first := !said[key]
		said[key] = true
		return first
	}
	active := c.active()
	for _, i := range slices.Sorted(maps.Keys(active)) {
		loads, flows := c.loads(i, active[i])
		c.judgeUnits(i, loads, once)
		c.judgePairs(i, flows, once)
	}
}

// active returns the jobs in each slot, from a job's first slot to its last. Slot 0 and slots in which connections
// change are included even if they have no jobs.
func (c *checking) active() map[int][]int {
	slots := map[int][]int{0: nil}
	for _, l := range c.links {
		for _, i := range l.at {
			slots[i] = nil
		}
	}
	for k := range c.plan.Jobs {
		from, to := sendingSpan(&c.plan.Jobs[k])
		for i := from; i < to; i++ {
			slots[i] = append(slots[i], k)
		}
	}
	return slots
}

// loads adds up the load on each unit, and the traffic in each direction between two units, in slot i.
func (c *checking) loads(i int, active []int) (map[string]*load, map[[2]string]float64) {
	loads, flows := make(map[string]*load, len(c.units)), map[[2]string]float64{}
	for name := range c.units {
		loads[name] = &load{}
	}
	for _, k := range active {
		a := &c.plan.Jobs[k]
		j, r := c.jobs[a.Job], rateIn(a, i)
		if a.INC != "" {
			loads[a.INC].jobs++
			loads[a.INC].segment += j.Segment
		}
		for unit, workers := range j.Workers {
			n := streamsOf(j, unit, a.INC)
			loads[unit].moved += float64(float64(workers) * r) // up from the workers
			loads[j.Server].moved += float64(n * r)            // down to the server
			if unit != j.Server {
				flows[[2]string{unit, j.Server}] += float64(n * r)
			}
		}
	}
	for pair, l := range c.links {
		loads[pair[0]].ports += l.countIn(i)
		loads[pair[1]].ports += l.countIn(i)
	}
	return loads, flows
}

func (c *checking) judgeUnits(i int, loads map[string]*load, once func(string) bool) {
	for k := range c.problem.Units {
		u := &c.problem.Units[k]
		l := loads[u.Name]
		if l.jobs > u.INC && once("inc "+u.Name) {
			c.addViolation(overCapacity, i, "", u.Name, "the switch of %s aggregates for %d jobs in slot %d, but it "+
				"has room for %d", u.Name, l.jobs, i, u.INC)
		}
		if u.Memory > 0 && l.segment > u.Memory && once("memory "+u.Name) {
			c.addViolation(overMemory, i, "", u.Name, "the segments in the switch of %s need %v in slot %d, but it "+
				"has %v", u.Name, l.segment, i, u.Memory)
		}
		if u.SwitchRate > 0 && l.moved > float64(u.SwitchRate)*(1+tolerance) && once("switch "+u.Name) {
			c.addViolation(overSwitchRate, i, "", u.Name, "the switch of %s moves %s in slot %d, but it can move "+
				"only %v", u.Name, formatGbps(l.moved), i, u.SwitchRate)
		}
		if l.ports > u.Ports && once("ports "+u.Name) {
			c.addViolation(tooManyPorts, i, "", u.Name, "%s has %d connections in slot %d, but only %d ports", u.Name,
				l.ports, i, u.Ports)
		}
	}
}

func (c *checking) judgePairs(i int, flows map[[2]string]float64, once func(string) bool) {
	for _, way := range sortPairs(flows) {
		count := c.links[pairOf(way[0], way[1])].countIn(i)
		flow, limit := flows[way], float64(count)*float64(c.problem.PortRate)
		if c.problem.HalfDuplex {
			flow += flows[[2]string{way[1], way[0]}]
		}
		// The margin of 1 is for pairs without connections.
		if flow > float64(limit*(1+tolerance))+1 && once("pair "+way[0]+" "+way[1]) {
			c.addViolation(overPortRate, i, "", way[0], "%s flow from %s to %s in slot %d over %d connections of %v",
				formatGbps(flow), way[0], way[1], i, count, c.problem.PortRate)
		}
	}
}

// volumes records how much each job's workers sent, without the loss while connections were set up. It adds a violation
// for each finished job with a worker that sent less than its volume.
func (c *checking) volumes() {
	carried := map[string]float64{}
	for k := range c.plan.Jobs {
		a := &c.plan.Jobs[k]
		j := c.jobs[a.Job]
		least, where := math.Inf(1), ""
		for _, unit := range sortedUnits(j) {
			if sum := c.carry(a, j, unit); sum < least {
				least, where = sum, unit
			}
		}
		carried[a.Job] = least
		volume := float64(j.Volume.Bits())
		if served := a.Finish > 0; served && least < volume*(1-tolerance) {
			c.addViolation(wrongVolume, -1, a.Job, where, "the workers of %s in %s send %.6g of %.6g Gb", a.Job, where,
				least/1e9, volume/1e9)
		}
	}
	for i := range c.problem.Jobs {
		c.verdict.Carried = append(c.verdict.Carried, carried[c.problem.Jobs[i].ID])
	}
}

func sortedUnits(j *Job) []string { return slices.Sorted(maps.Keys(j.Workers)) }

// carry returns the number of bits that one worker of a in unit sends.
func (c *checking) carry(a *Assignment, j *Job, unit string) float64 {
	slot, epsilon := c.problem.Slot.Seconds(), c.problem.Reconfiguration.Seconds()
	crosses := unit != j.Server && !isOffloaded(j, a.INC)
	sum, last := 0.0, 0.0
	for k, r := range a.Rates {
		sum += float64(r * slot)
		if crosses && r > last && c.links[pairOf(unit, j.Server)].increaseIn(a.Start+k) > 0 {
			sum -= float64((r - last) * epsilon)
		}
		last = r
	}
	return sum
}

// claims computes the outcome of the plan and compares it with the outcome that the plan claims.
func (c *checking) claims() {
	out := &c.verdict.Outcome
	origin, end := olaf.Duration(math.MaxInt64), olaf.Duration(0)
	assigned := map[string]*Assignment{}
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
			c.addViolation(wrongClaim, -1, j.ID, "", "the plan ends job %s at %v, but it ends at %v", j.ID, a.Finish,
				finish)
		}
		end = max(end, finish)
		out.TotalJCT += finish - j.Arrival
	}
	if end > 0 {
		out.CTBTI = end - origin
	}
	for _, l := range c.links {
		for _, i := range l.at {
			out.Reconfigurations += l.increaseIn(i)
		}
	}
	c.compare(&c.plan.Outcome, out)
}

// finish returns the time at which a job whose volume has been sent is done.
func (c *checking) finish(a *Assignment, j *Job) olaf.Duration {
	_, to := sendingSpan(a)
	end := c.problem.Slot * olaf.Duration(to)
	if isOffloaded(j, a.INC) {
		return end
	}
	return end + j.Update
}

func (c *checking) compare(stated, is *Outcome) {
	for _, claim := range []struct {
		name     string
		said, is any
	}{
		{"a CT-BTI of", stated.CTBTI, is.CTBTI},
		{"a total JCT of", stated.TotalJCT, is.TotalJCT},
		{"a number of reconfigurations of", stated.Reconfigurations, is.Reconfigurations},
		{"these unfinished jobs:", fmt.Sprint(stated.Unfinished), fmt.Sprint(is.Unfinished)},
	} {
		if claim.said != claim.is {
			c.addViolation(wrongClaim, -1, "", "", "the plan claims %s %v, but the check gives %v", claim.name,
				claim.said, claim.is)
		}
	}
	if p := c.plan.Proof; p != nil && p.Bound > is.CTBTI && len(is.Unfinished) == 0 {
		c.addViolation(wrongClaim, -1, "", "", "the plan claims that no plan has less than %v, but has less itself: %v",
			p.Bound, is.CTBTI)
	}
}
