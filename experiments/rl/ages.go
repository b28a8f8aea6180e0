package rl

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/trace"
)

// MeanAge returns the mean Age of Model per cluster in a finished training run, in ns. It computes the effect of c's
// queue on the updates in the learning curves, from a cluster's first arrival to the last update from any worker. It
// returns an error if transmission control is enabled, because the curves do not show which updates were sent.
func MeanAge(c *Config, curves [][]Point) (float64, error) {
	if c.Control != nil {
		return 0, fmt.Errorf("%w: the ages of a training with transmission control do not follow from its curves", ErrConfig)
	}
	type sent struct {
		Point
		worker int
		seq    uint32
	}
	var all []sent
	for w, curve := range curves {
		for i, p := range curve {
			all = append(all, sent{p, w, uint32(i)})
		}
	}
	slices.SortStableFunc(all, func(a, b sent) int { return cmp.Compare(a.AtNS, b.AtNS) })
	ages := make([]age, c.Clusters)
	n, err := newNetwork(c, func(a *arrival) { ages[a.cluster].fallTo(a) })
	if err != nil || len(all) == 0 {
		return math.NaN(), err
	}
	var zeros Weights
	for _, s := range all {
		now := virtualTime(s.AtNS)
		n.advance(now)
		u := olaf.Update{GenNS: uint64(s.AtNS) % olaf.GenModulus, Seq: s.seq, Cluster: c.Cluster(s.worker),
			Worker: olaf.WorkerID(s.worker), Count: 1, Reward: (&trace.Update{Reward: s.Reward}).RewardQ248()}
		n.send(now, &u, s.Reward, &zeros)
	}
	sum, known, end := 0.0, 0.0, float64(all[len(all)-1].AtNS)
	for i := range ages {
		if mean := ages[i].meanUntil(end); mean == mean {
			sum, known = sum+mean, known+1
		}
	}
	return sum / known, nil
}

// age integrates the age sawtooth of one cluster, in ns.
type age struct {
	first, at, born, area float64
	started               bool
}

// fallTo lowers the age to that of the newest update in an arrival.
func (a *age) fallTo(d *arrival) {
	now := float64(d.at) / float64(olaf.Nanosecond)
	newest := uint64(0)
	for _, c := range d.inside {
		newest = max(newest, c.GenNS)
	}
	if !a.started {
		a.first, a.at, a.born, a.started = now, now, float64(newest), true
		return
	}
	a.addUntil(now)
	a.born = max(a.born, float64(newest))
}

// addUntil adds the area below the sawtooth between the last change and now.
func (a *age) addUntil(now float64) {
	a.area += float64((now - a.at) * ((a.at+now)/2 - a.born))
	a.at = now
}

// meanUntil returns the time average of the age until end, or NaN if nothing arrived before end.
func (a *age) meanUntil(end float64) float64 {
	if !a.started || end <= a.at {
		return math.NaN()
	}
	a.addUntil(end)
	return a.area / (a.at - a.first)
}
