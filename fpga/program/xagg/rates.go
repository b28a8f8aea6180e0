package xagg

import (
	"cmp"
	"slices"

	"github.com/olafctl/olaf"
)

// phase is a child's progress in an epoch.
type phase uint8

const (
	computing phase = iota
	sending
	done
)

// rates divides a server's link among its children (paper, §IV-C). The sum of their rates must not exceed the link's
// capacity for input. The slowest rate must not exceed the capacity for output or the rate granted by the parent.
type rates struct {
	in, out  olaf.Rate // 0 means unlimited
	granted  olaf.Rate // rate granted by the parent; 0 before its first grant
	epoch    uint16
	known    bool // an epoch has begun
	phase    []phase
	most     []olaf.Rate // maximum rate of each child
	share    []olaf.Rate
	assigned []olaf.Rate
	flow     olaf.Rate // rate last requested from the parent
}

func newRates(children int, in, out olaf.Rate) *rates {
	return &rates{
		in: in, out: out, phase: make([]phase, children), most: make([]olaf.Rate, children),
		share: make([]olaf.Rate, children), assigned: make([]olaf.Rate, children),
	}
}

// setReady records that a child begins an epoch and can send at most at the given rate. The first child in a newer
// epoch ends the previous epoch. Children that have not reached the new epoch still have a share.
func (r *rates) setReady(child int, epoch uint16, most olaf.Rate) {
	if !r.known || int16(epoch-r.epoch) > 0 {
		r.known, r.epoch, r.granted = true, epoch, 0
		clear(r.phase)
	}
	r.phase[child], r.most[child] = sending, most
	if most == 0 {
		r.phase[child] = computing
	}
}

func (r *rates) setDone(child int) { r.phase[child] = done }

func (r *rates) setGranted(rate olaf.Rate) { r.granted = rate }

// computeShares divides the rate among the children that send. flow is the rate of sums to the parent. It is the rate
// of the slowest sending child, limited by limitShares, or 0 while any child still computes, because no sum is complete
// without it. changed reports whether flow differs from the last request to the parent.
func (r *rates) computeShares() (flow olaf.Rate, changed bool) {
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
		shares := divideRate(r.in, asks)
		if !idle {
			flow = r.limitShares(shares)
		}
		r.assignShares(shares)
	}
	changed = flow != r.flow
	if r.flow = flow; flow == 0 {
		r.granted = 0
	}
	return flow, changed
}

// limitShares returns the rate of sums to the parent that the shares and this server's link allow. It reduces the
// shares to the rate granted by the parent, because faster children would only wait in the model.
func (r *rates) limitShares(shares []olaf.Rate) olaf.Rate {
	slowest := slices.Min(shares)
	flow := atMost(slowest, r.out)
	if limit := atMost(flow, r.granted); limit < slowest {
		for i := range shares {
			shares[i] = limit
		}
	}
	return flow
}

// atMost returns the smaller of rate and limit. A limit of 0 means unlimited.
func atMost(rate, limit olaf.Rate) olaf.Rate {
	if limit > 0 && limit < rate {
		return limit
	}
	return rate
}

func (r *rates) assignShares(shares []olaf.Rate) {
	next := 0
	for i, p := range r.phase {
		if p == sending {
			r.share[i] = shares[next]
			next++
		}
	}
}

// mustTell reports whether a child's share must be sent to it, and records the share as sent. The share must be sent if
// it changed, or if always is set.
func (r *rates) mustTell(child int, always bool) bool {
	if r.phase[child] != sending || !always && r.share[child] == r.assigned[child] {
		return false
	}
	r.assigned[child] = r.share[child]
	return true
}

// divideRate divides a rate by max-min fairness. No child gets more than it requested, and no child could get more
// without reducing a share that is not larger. The paper does not define a rule, but its Fig. 1 agrees with this rule.
// If total is 0, all children get the rates that they requested.
func divideRate(total olaf.Rate, asks []olaf.Rate) []olaf.Rate {
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
