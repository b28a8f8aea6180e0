package xagg

import (
	"cmp"
	"slices"

	"github.com/olafctl/olaf"
)

// phase is the state of a child within an epoch.
type phase uint8

const (
	computing phase = iota
	sending
	done
)

// rates divides a server's link among its children (paper, §IV-C). Their total fits the link in, and the rate of
// the slowest fits the link out and the parent's grant.
type rates struct {
	in, out olaf.Rate // 0 is unlimited
	granted olaf.Rate // by the parent; 0 before its first grant
	epoch   uint16
	known   bool // an epoch has begun
	phase   []phase
	most    []olaf.Rate // maximum rate of each child
	share   []olaf.Rate
	told    []olaf.Rate
	flow    olaf.Rate // last requested from the parent
}

func newRates(children int, in, out olaf.Rate) *rates {
	return &rates{
		in: in, out: out, phase: make([]phase, children), most: make([]olaf.Rate, children),
		share: make([]olaf.Rate, children), told: make([]olaf.Rate, children),
	}
}

// setReady records that a child begins an epoch. The first child of a newer epoch ends the previous one. Children that
// are behind still share.
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

// computeShares divides the rate. flow is the upward rate: that of the slowest sending child, or 0 while a child
// still computes, since no sum is complete without it. changed reports whether flow differs from the last request
// to the parent.
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
		shares := DivideRate(r.in, asks)
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

// limitShares returns the rate that shares allow upward within this server's link. It reduces the shares to the
// parent's grant, because faster children would only wait in the model.
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

// atMost limits a rate; limit 0 means unlimited.
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

// mustTell reports whether a child must be sent its share, and records it as sent.
func (r *rates) mustTell(child int, always bool) bool {
	if r.phase[child] != sending || !always && r.share[child] == r.told[child] {
		return false
	}
	r.told[child] = r.share[child]
	return true
}

// DivideRate divides a rate by max-min fairness: no child gets more than it requested, and none could get more without
// reducing the share of a child that has no more. The paper does not define the rule; its Fig. 1 agrees with this one.
// If total is 0, all get the rates they requested.
func DivideRate(total olaf.Rate, asks []olaf.Rate) []olaf.Rate {
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
