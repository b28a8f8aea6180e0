package xagg

import (
	"cmp"
	"slices"

	"github.com/olafctl/olaf"
)

// phase is where a child is within an epoch.
type phase uint8

const (
	computing phase = iota
	sending
	done
)

// rates divides a server's link among its children (paper, §IV-C): what they send together fits in, and what the slowest
// of them lets through fits out and into what the parent grants.
type rates struct {
	in, out olaf.Rate // 0 is without a limit
	granted olaf.Rate // by the parent; 0 before it said anything
	epoch   uint16
	known   bool // an epoch has begun
	phase   []phase
	most    []olaf.Rate // that a child can send
	share   []olaf.Rate
	told    []olaf.Rate
	flow    olaf.Rate // that the parent was asked for
}

func newRates(children int, in, out olaf.Rate) *rates {
	return &rates{
		in: in, out: out, phase: make([]phase, children), most: make([]olaf.Rate, children),
		share: make([]olaf.Rate, children), told: make([]olaf.Rate, children),
	}
}

// ready lets a child begin. The first of a newer epoch ends the last one; who is behind shares as well.
func (r *rates) ready(child int, epoch uint16, most olaf.Rate) {
	if !r.known || int16(epoch-r.epoch) > 0 {
		r.known, r.epoch, r.granted = true, epoch, 0
		clear(r.phase)
	}
	r.phase[child], r.most[child] = sending, most
	if most == 0 {
		r.phase[child] = computing
	}
}

func (r *rates) finish(child int) { r.phase[child] = done }

func (r *rates) grant(rate olaf.Rate) { r.granted = rate }

// divide computes the shares. flow is what can go up: as much as the slowest child that sends, and nothing while one still
// computes, since no sum is complete without it. changed says that it is not what the parent was asked for.
func (r *rates) divide() (flow olaf.Rate, changed bool) {
	var asks []olaf.Rate
	idle := false
	for i, p := range r.phase {
		r.share[i] = 0
		if p == sending {
			asks = append(asks, r.most[i])
		}
		idle = idle || p == computing
	}
	if len(asks) > 0 {
		shares := Shares(r.in, asks)
		if !idle {
			flow = r.through(shares)
		}
		r.give(shares)
	}
	changed = flow != r.flow
	if r.flow = flow; flow == 0 {
		r.granted = 0
	}
	return flow, changed
}

// through is what shares let through to the parent, by what this server's link gives. Shares are cut down to what the parent
// grants of it: what is faster would only wait in the model.
func (r *rates) through(shares []olaf.Rate) olaf.Rate {
	slowest := slices.Min(shares)
	flow := atMost(slowest, r.out)
	if limit := atMost(flow, r.granted); limit < slowest {
		for i := range shares {
			shares[i] = limit
		}
	}
	return flow
}

// atMost is a rate within a limit, 0 being none.
func atMost(rate, limit olaf.Rate) olaf.Rate {
	if limit > 0 && limit < rate {
		return limit
	}
	return rate
}

func (r *rates) give(shares []olaf.Rate) {
	next := 0
	for i, p := range r.phase {
		if p == sending {
			r.share[i] = shares[next]
			next++
		}
	}
}

// tells says whether a child must hear of its share, and notes that it does.
func (r *rates) tells(child int, always bool) bool {
	if r.phase[child] != sending || !always && r.share[child] == r.told[child] {
		return false
	}
	r.told[child] = r.share[child]
	return true
}

// Shares divides a rate among those who ask: nobody gets more than asked for, and nobody could get more without another who
// has no more getting less (max-min, which the paper leaves open and its Fig. 1 agrees with). total 0 gives everybody what
// was asked for.
func Shares(total olaf.Rate, asks []olaf.Rate) []olaf.Rate {
	shares := slices.Clone(asks)
	if total == 0 {
		return shares
	}
	order := make([]int, len(asks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(asks[a], asks[b]) })
	for n, i := range order {
		fair := total / olaf.Rate(len(order)-n)
		shares[i] = min(asks[i], fair)
		total -= shares[i]
	}
	return shares
}
