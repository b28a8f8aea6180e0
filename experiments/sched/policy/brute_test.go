package policy

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/sched"
)

// The brute force enumerates aggregators, the begin and end of every transfer, and all connections of every slot, and
// uses a separate small simplex to test whether rates exist. It shares no code with the model.

// tiny returns a random problem of at most 3 units, 3 jobs and 4 slots. Every feature of the model occurs in some.
func tiny(seed uint64) *sched.Problem {
	random := rand.New(rand.NewPCG(seed, 1))
	pick := func(values ...int) int { return values[random.IntN(len(values))] }
	p := &sched.Problem{
		Slot: olaf.Second, Step: 5 * olaf.Gbps, PortRate: 10 * olaf.Gbps, ServerRate: olaf.Rate(pick(10, 20)) * olaf.Gbps,
		Reconfiguration: olaf.Duration(pick(0, 0, 100, 300)) * olaf.Millisecond,
		HalfDuplex:      random.IntN(6) == 0, PartialINC: random.IntN(4) == 0,
	}
	for v := range pick(2, 2, 3) {
		u := sched.Unit{Name: "u" + strconv.Itoa(v), Ports: pick(1, 1, 2), INC: pick(0, 1, 1)}
		if random.IntN(4) == 0 {
			u.SwitchRate = 25 * olaf.Gbps
		}
		if random.IntN(6) == 0 {
			u.Memory = 3 * olaf.Size(1e6)
		}
		p.Units = append(p.Units, u)
	}
	if random.IntN(4) == 0 {
		p.Connections = []sched.Connection{{Between: []string{"u0", "u1"}, Count: 1}}
	}
	for k := range pick(2, 3, 3) {
		j := sched.Job{
			ID: "j" + strconv.Itoa(k), Arrival: olaf.Duration(pick(0, 0, 400)) * olaf.Millisecond, Volume: olaf.Size(pick(300, 700, 1100, 1500)) * 1e6,
			Update: olaf.Duration(pick(0, 200, 500)) * olaf.Millisecond, Workers: map[string]int{}, Segment: olaf.Size(pick(0, 2)) * 1e6,
		}
		j.Workers[p.Units[random.IntN(len(p.Units))].Name] = pick(1, 2)
		if random.IntN(3) == 0 {
			j.Workers[p.Units[random.IntN(len(p.Units))].Name] = 1
		}
		j.Server = p.Units[random.IntN(len(p.Units))].Name
		p.Jobs = append(p.Jobs, j)
	}
	return p
}

// served is one way to serve one job.
type served struct {
	inc      string // unit that aggregates
	from, to int    // first and last slot
	end      float64
}

// leastByForce returns the least end of a problem within the given number of slots, in s; +Inf if there is none.
func leastByForce(p *sched.Problem, slots int) float64 {
	ways := make([][]served, len(p.Jobs))
	for k := range p.Jobs {
		ways[k] = waysOf(p, &p.Jobs[k], slots)
	}
	combinations := []struct {
		way []served
		end float64
	}{{}}
	for _, options := range ways {
		grown := combinations[:0:0]
		for _, c := range combinations {
			for _, w := range options {
				grown = append(grown, struct {
					way []served
					end float64
				}{append(slices.Clone(c.way), w), max(c.end, w.end)})
			}
		}
		combinations = grown
	}
	slices.SortFunc(combinations, func(a, b struct {
		way []served
		end float64
	}) int {
		return cmp.Compare(a.end, b.end)
	})
	for _, c := range combinations {
		if fits(p, c.way) && ratesExist(p, c.way, slots) {
			return c.end
		}
	}
	return math.Inf(1)
}

// waysOf lists the ways to serve a job. An early begin of a transfer matters only for a place in a switch, so later
// begins are listed only for ways with such a place.
func waysOf(p *sched.Problem, j *sched.Job, slots int) (out []served) {
	arrives := int(math.Ceil(j.Arrival.Seconds() / p.Slot.Seconds()))
	incs := []string{""}
	for unit := range j.Workers {
		if len(j.Workers) == 1 || p.PartialINC {
			incs = append(incs, unit)
		}
	}
	slices.Sort(incs)
	for _, inc := range incs {
		for to := arrives; to < slots; to++ {
			end := float64(to+1) * p.Slot.Seconds()
			if inc == "" || len(j.Workers) > 1 {
				end += j.Update.Seconds()
			}
			for from := arrives; from <= to; from++ {
				out = append(out, served{inc, from, to, end})
				if inc == "" {
					break
				}
			}
		}
	}
	return out
}

// fits checks places and memory in the switches.
func fits(p *sched.Problem, ways []served) bool {
	for _, u := range p.Units {
		for i := range 8 {
			places, memory := 0, olaf.Size(0)
			for k, w := range ways {
				if w.inc == u.Name && w.from <= i && i <= w.to {
					places++
					memory += p.Jobs[k].Segment
				}
			}
			if places > u.INC || u.Memory > 0 && memory > u.Memory {
				return false
			}
		}
	}
	return true
}

// sent returns the number of streams from a job's workers in a unit to its server.
func sent(j *sched.Job, unit, inc string) float64 {
	if unit != inc {
		return float64(j.Workers[unit])
	}
	if len(j.Workers) == 1 {
		return 0
	}
	return 1
}

// ratesExist tries all connections of all slots.
func ratesExist(p *sched.Problem, ways []served, slots int) bool {
	last := 0
	pairs := [][2]string{}
	for k, w := range ways {
		last = max(last, w.to)
		j := &p.Jobs[k]
		for unit := range j.Workers {
			pair := [2]string{min(unit, j.Server), max(unit, j.Server)}
			if unit != j.Server && sent(j, unit, w.inc) > 0 && !slices.Contains(pairs, pair) {
				pairs = append(pairs, pair)
			}
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return cmp.Compare(a[0]+a[1], b[0]+b[1]) })
	options := connections(p, pairs)
	chosen := make([][]int, last+1)
	var try func(i int) bool
	try = func(i int) bool {
		if i > last {
			return feasible(p, ways, pairs, chosen)
		}
		for _, o := range options {
			chosen[i] = o
			if try(i + 1) {
				return true
			}
		}
		return false
	}
	return try(0)
}

// connections lists all possible connections of some pairs in one slot.
func connections(p *sched.Problem, pairs [][2]string) [][]int {
	out := [][]int{{}}
	for range pairs {
		grown := out[:0:0]
		for _, c := range out {
			for n := range 3 {
				grown = append(grown, append(slices.Clone(c), n))
			}
		}
		out = grown
	}
	return slices.DeleteFunc(out, func(c []int) bool {
		for _, u := range p.Units {
			used := 0
			for k, pair := range pairs {
				if pair[0] == u.Name || pair[1] == u.Name {
					used += c[k]
				}
			}
			if used > u.Ports {
				return true
			}
		}
		return false
	})
}

// before returns the connections of a pair before slot 0.
func before(p *sched.Problem, pair [2]string) int {
	for _, c := range p.Connections {
		if min(c.Between[0], c.Between[1]) == pair[0] && max(c.Between[0], c.Between[1]) == pair[1] {
			return c.Count
		}
	}
	return 0
}

// feasible reports whether rates exist for given integers.
func feasible(p *sched.Problem, ways []served, pairs [][2]string, chosen [][]int) bool {
	var lp simplex
	rate := map[[2]int]int{} // by job and slot
	for k, w := range ways {
		for i := w.from; i <= w.to; i++ {
			rate[[2]int{k, i}] = lp.variable()
		}
	}
	slot := p.Slot.Seconds()
	for k, w := range ways {
		j := &p.Jobs[k]
		into := 0.0
		for unit := range j.Workers {
			into += sent(j, unit, w.inc)
		}
		for i := w.from; i <= w.to; i++ {
			lp.atMost(float64(p.ServerRate)/1e9/max(1, into), map[int]float64{rate[[2]int{k, i}]: 1})
		}
		for unit := range j.Workers {
			sum := map[int]float64{}
			for i := w.from; i <= w.to; i++ {
				r := rate[[2]int{k, i}]
				sum[r] -= slot
				n := slices.Index(pairs, [2]string{min(unit, j.Server), max(unit, j.Server)})
				if unit == j.Server || sent(j, unit, w.inc) == 0 {
					continue
				}
				was := before(p, pairs[n])
				if i > 0 {
					was = chosen[i-1][n]
				}
				if chosen[i][n] > was {
					// The lost rate is at least 0 and at least the rise.
					lost := lp.variable()
					rise := map[int]float64{r: 1, lost: -1}
					if i > w.from {
						rise[rate[[2]int{k, i - 1}]] = -1
					}
					lp.atMost(0, rise)
					sum[lost] += p.Reconfiguration.Seconds()
				}
			}
			lp.atMost(-float64(j.Volume.Bits())/1e9, sum)
		}
	}
	for i := range chosen {
		for n, pair := range pairs {
			limit := float64(chosen[i][n]) * float64(p.PortRate) / 1e9
			there, back := map[int]float64{}, map[int]float64{}
			for k, w := range ways {
				r, sends := rate[[2]int{k, i}]
				j := &p.Jobs[k]
				for unit := range j.Workers {
					switch {
					case !sends || unit == j.Server:
					case unit == pair[0] && j.Server == pair[1]:
						there[r] += sent(j, unit, w.inc)
					case unit == pair[1] && j.Server == pair[0]:
						back[r] += sent(j, unit, w.inc)
					}
				}
			}
			if p.HalfDuplex {
				for r, n := range back {
					there[r] += n
				}
			}
			lp.atMost(limit, there)
			lp.atMost(limit, back)
		}
		for _, u := range p.Units {
			moved := map[int]float64{}
			for k, w := range ways {
				r, sends := rate[[2]int{k, i}]
				j := &p.Jobs[k]
				for unit, workers := range j.Workers {
					if sends && unit == u.Name {
						moved[r] += float64(workers)
					}
					if sends && j.Server == u.Name {
						moved[r] += sent(j, unit, w.inc)
					}
				}
			}
			if u.SwitchRate > 0 {
				lp.atMost(float64(u.SwitchRate)/1e9, moved)
			}
		}
	}
	return lp.feasible()
}

// simplex tests whether rows Σ a·x ≤ b have a point x ≥ 0: phase one with Bland's rule over a dense table.
type simplex struct {
	n    int
	rows []map[int]float64
	most []float64
}

func (s *simplex) variable() int { s.n++; return s.n - 1 }

func (s *simplex) atMost(b float64, row map[int]float64) {
	s.rows, s.most = append(s.rows, row), append(s.most, b)
}

func (s *simplex) feasible() bool {
	const eps = 1e-9
	m := len(s.rows)
	width := s.n + m + 1 // variables, slacks, and one artificial variable that every row may borrow from
	table := make([][]float64, m)
	basis := make([]int, m)
	worst := -1
	for i, row := range s.rows {
		table[i] = make([]float64, width+1)
		for k, a := range row {
			table[i][k] = a
		}
		table[i][s.n+i], table[i][width-1], table[i][width] = 1, -1, s.most[i]
		basis[i] = s.n + i
		if s.most[i] < -eps && (worst < 0 || s.most[i] < s.most[worst]) {
			worst = i
		}
	}
	if worst < 0 {
		return true
	}
	cost := make([]float64, width+1)
	cost[width-1] = 1 // minimise the artificial variable
	pivot := func(i, k int) {
		scale := table[i][k]
		for c := range table[i] {
			table[i][c] /= scale
		}
		for r := range table {
			if f := table[r][k]; r != i && f != 0 {
				for c := range table[r] {
					table[r][c] -= f * table[i][c]
				}
			}
		}
		if f := cost[k]; f != 0 {
			for c := range cost {
				cost[c] -= f * table[i][c]
			}
		}
		basis[i] = k
	}
	pivot(worst, width-1)
	for {
		enter := slices.IndexFunc(cost[:width], func(c float64) bool { return c < -eps })
		if enter < 0 {
			return -cost[width] < 1e-7
		}
		leave := -1
		for i := range table {
			if table[i][enter] <= eps {
				continue
			}
			if leave < 0 {
				leave = i
				continue
			}
			a, b := table[i][width]/table[i][enter], table[leave][width]/table[leave][enter]
			if a < b-1e-12 || a < b+1e-12 && basis[i] < basis[leave] {
				leave = i
			}
		}
		if leave < 0 {
			return true // unbounded: cannot be, since the artificial variable is at least 0
		}
		pivot(leave, enter)
	}
}

func TestSimplex(t *testing.T) {
	for _, c := range []struct {
		rows []map[int]float64
		most []float64
		want bool
	}{
		{[]map[int]float64{{0: 1}, {0: -1}}, []float64{2, -1}, true},
		{[]map[int]float64{{0: 1}, {0: -1}}, []float64{1, -2}, false},
		{[]map[int]float64{{0: 1, 1: 1}, {0: -1}, {1: -1}}, []float64{3, -1, -2}, true},
		{[]map[int]float64{{0: 1, 1: 1}, {0: -1}, {1: -1}}, []float64{2.9, -1, -2}, false},
		{[]map[int]float64{{0: 1, 1: -1}, {0: -1}}, []float64{0, -5}, true},
	} {
		if got := (&simplex{n: 2, rows: c.rows, most: c.most}).feasible(); got != c.want {
			t.Errorf("%v <= %v: %v, want %v", c.rows, c.most, got, c.want)
		}
	}
}
