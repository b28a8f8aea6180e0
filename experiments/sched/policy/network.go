package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/olafctl/olaf/experiments/sched"
)

// network contains the connections between units and the rates that are allocated in a slot.
type network struct {
	in      *sched.Instance
	n       int       // units
	half    bool      // both directions share a connection
	fixed   bool      // connections never change
	printed bool      // Eq. (7) as printed: connections that stay count as reconfigured
	nic     float64   // rate of a server's network card; +Inf for none
	load    []float64 // bit/s from v to u at v·n+u
	need    []int     // connections that the loads need, in both orders
	live    []int     // existing connections, in both orders
	risen   []bool
	used    []int     // ports that need takes, by unit
	moved   []float64 // bit/s through the switches
	loaded  [][2]int  // pairs with a load in this slot, v < u
	wired   [][2]int  // pairs with connections, v < u
	// unchanged counts pairs whose connections did not change in the last slot.
	unchanged int
}

// unlimited is the limit on a server's interface, as a multiple of its rate, where the printed text has none. Some
// limit is needed for traffic within a unit, because lines 19–31 end only when nothing more fits.
const unlimited = 100

func (w *network) init(in *sched.Instance, r sched.Repairs) {
	n := len(in.Units)
	*w = network{
		in: in, n: n, half: in.Problem.HalfDuplex || !r.Has(sched.Duplex), fixed: in.Problem.Fixed, printed: !r.Has(sched.Rise), nic: in.Server,
		load: make([]float64, n*n), need: make([]int, n*n), live: make([]int, n*n), risen: make([]bool, n*n),
		used: make([]int, n), moved: make([]float64, n),
	}
	if !r.Has(sched.ServerRate) {
		w.nic *= unlimited
	}
	for pair, count := range in.Initial {
		w.live[pair[0]*n+pair[1]] = count
		if pair[0] < pair[1] {
			w.wired = append(w.wired, pair)
		}
	}
	slices.SortFunc(w.wired, byUnits)
}

func byUnits(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) }

// clear removes all loads.
func (w *network) clear() {
	for _, p := range w.loaded {
		a, b := p[0]*w.n+p[1], p[1]*w.n+p[0]
		w.load[a], w.load[b], w.need[a], w.need[b] = 0, 0, 0, 0
	}
	w.loaded = w.loaded[:0]
	clear(w.used)
	clear(w.moved)
}

// rose reports whether the number of connections between two units increased in this slot.
func (w *network) rose(v, u int) bool { return w.risen[v*w.n+u] }

// crossing calls f for every share of a task that sends streams to a server in another unit.
func crossing(t *task, f func(unit, streams int)) {
	for _, s := range t.Shares {
		if n := t.Streams(s, t.inc); s.Unit != t.Server && n > 0 {
			f(s.Unit, n)
		}
	}
}

// into returns the number of streams that arrive at the task's server.
func into(t *task) (n int) {
	for _, s := range t.Shares {
		n += t.Streams(s, t.inc)
	}
	return n
}

// headroom returns how much more each worker of a task can send, in bit/s. It is want or 0 or, if parts is set, the
// part of want that fits.
func (w *network) headroom(t *task, want float64, parts bool) float64 {
	limit := min(want, w.ends(t))
	if limit < want && !parts || limit <= 0 {
		return 0
	}
	if w.fits(t, limit) {
		return limit
	}
	if !parts {
		return 0
	}
	// Use the capacity of the present connections or, if they are full, of one more.
	if present := w.slack(t, 0); present > 1 {
		return min(limit, present)
	}
	if more := min(limit, w.slack(t, 1)); more > 1 && w.fits(t, more) {
		return more
	}
	return 0
}

// ends returns the rate that is still free for each worker of a task at the interfaces of the workers and the server
// and at the units' switches.
func (w *network) ends(t *task) float64 {
	streams := into(t)
	limit := w.nic/float64(max(1, streams)) - t.rate
	at := func(unit, streams int) {
		if cap := float64(w.in.Units[unit].SwitchRate); cap > 0 && streams > 0 {
			limit = min(limit, (cap-w.moved[unit])/float64(streams))
		}
	}
	beside := 0
	for _, s := range t.Shares {
		if s.Unit == t.Server {
			beside = s.Workers
			continue
		}
		at(s.Unit, s.Workers)
	}
	at(t.Server, streams+beside)
	return limit
}

// pairNeed returns the number of connections that two units need if v sends more bit/s to u than it does now.
func (w *network) pairNeed(v, u int, more float64) int {
	there, back := w.load[v*w.n+u]+float64(more), w.load[u*w.n+v]
	if w.half {
		there += back
	}
	return int(math.Ceil(max(there, back)/w.in.Port - 1e-9))
}

// fits reports whether each worker of a task can send more bit/s over existing connections or over connections for
// which ports are free.
func (w *network) fits(t *task, more float64) bool {
	ok, atServer := true, 0
	crossing(t, func(v, streams int) {
		k := v*w.n + t.Server
		need := w.pairNeed(v, t.Server, more*float64(streams))
		if w.fixed {
			ok = ok && need <= w.live[k]
			return
		}
		extra := need - w.need[k]
		atServer += extra
		ok = ok && w.used[v]+extra <= w.in.Units[v].Ports
	})
	return ok && w.used[t.Server]+atServer <= w.in.Units[t.Server].Ports
}

// slack returns how much more each worker of a task can send, in bit/s, over the connections that this slot's loads
// already need and over extra additional connections. Fixed connections cannot be extended.
func (w *network) slack(t *task, extra int) float64 {
	least := math.Inf(1)
	crossing(t, func(v, streams int) {
		k := v*w.n + t.Server
		there := w.load[k]
		if w.half {
			there += w.load[t.Server*w.n+v]
		}
		count := w.need[k]
		if w.fixed {
			count = w.live[k]
		}
		room := float64(float64(count)*w.in.Port) - there
		if room <= 1 {
			room += float64(float64(extra) * w.in.Port)
		}
		least = min(least, room/float64(streams))
	})
	return least
}

// take allocates more bit/s to each worker of a task.
func (w *network) take(t *task, more float64) {
	crossing(t, func(v, streams int) {
		u := t.Server
		a, b := v*w.n+u, u*w.n+v
		if w.load[a] == 0 && w.load[b] == 0 {
			w.loaded = append(w.loaded, [2]int{min(v, u), max(v, u)})
		}
		need := w.pairNeed(v, u, more*float64(streams))
		w.load[a] += float64(more * float64(streams))
		w.used[v] += need - w.need[a]
		w.used[u] += need - w.need[a]
		w.need[a], w.need[b] = need, need
	})
	for _, s := range t.Shares {
		w.moved[s.Unit] += float64(more * float64(s.Workers))
	}
	w.moved[t.Server] += float64(more * float64(into(t)))
}

// settle sets up the connections that the loads need. It keeps other connections as long as no other pair needs their
// ports. It calls changed for every pair whose number of connections changes.
func (w *network) settle(changed func(v, u, was, is int)) {
	if w.fixed && !w.printed {
		return
	}
	pairs := append(slices.Clone(w.wired), w.loaded...)
	slices.SortFunc(pairs, byUnits)
	pairs = slices.Compact(pairs)
	w.unchanged = 0
	for _, p := range pairs {
		a, b := p[0]*w.n+p[1], p[1]*w.n+p[0]
		was, is := w.live[a], w.need[a]
		if w.fixed {
			is = was
		} else if idle := was - is; idle > 0 {
			keep := min(idle, w.in.Units[p[0]].Ports-w.used[p[0]], w.in.Units[p[1]].Ports-w.used[p[1]])
			is += keep
			w.used[p[0]] += keep
			w.used[p[1]] += keep
		}
		w.live[a], w.live[b] = is, is
		stays := is == was && is > 0
		w.risen[a] = is > was || w.printed && stays
		w.risen[b] = w.risen[a]
		if stays {
			w.unchanged++
		}
		if is != was {
			changed(p[0], p[1], was, is)
		}
	}
	w.wired = slices.DeleteFunc(pairs, func(p [2]int) bool { return w.live[p[0]*w.n+p[1]] == 0 })
}
