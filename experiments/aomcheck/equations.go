package aomcheck

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// Evaluate computes the printed equations of §12.3 on a path whose send decisions are known. It does for the paper's
// models what Replay does for the engine. A path whose departures are too close together is an error, because the
// printed model excludes it.
func (p *Problem) Evaluate(path *Path) (*Run, error) {
	service := int64(p.Service/p.tick()) * path.PerTick
	own := int64(0)
	if p.Model == PaperService {
		own = service
	}
	run := p.newRun(path)
	departs := olaf.Map(path.Arrivals, func(times []int64) []int64 { return make([]int64, len(times)) }) // 0 if not delivered
	for _, ev := range path.events() {
		if !path.Sent[ev.u][ev.k] {
			continue
		}
		queue := presentOthers(path, departs, ev)
		depart := ev.at + int64(queue)*service + own
		run.Fates[ev.u][ev.k] = Merged
		if next, ok := nextSent(path, ev.u, ev.k); !ok || depart < next {
			run.Fates[ev.u][ev.k] = Queued
			departs[ev.u][ev.k] = depart
			run.deliver(ev.u, ev.k, depart)
		}
		if queue >= p.Slots {
			run.Fates[ev.u][ev.k] = Lost
		}
	}
	return run, checkSpacing(p, run, service)
}

// presentOthers counts the other clusters that have an update which arrived before ev and departs after it.
func presentOthers(path *Path, departs [][]int64, ev arrivalEvent) int {
	count := 0
	for v, times := range path.Arrivals {
		if v == ev.u {
			continue
		}
		for n, at := range times {
			if at < ev.at && departs[v][n] > ev.at {
				count++
				break
			}
		}
	}
	return count
}

func nextSent(path *Path, u, k int) (int64, bool) {
	for i := k + 1; i < len(path.Arrivals[u]); i++ {
		if path.Sent[u][i] {
			return path.Arrivals[u][i], true
		}
	}
	return 0, false
}

func checkSpacing(p *Problem, run *Run, service int64) error {
	for u, a := range run.Deliveries {
		for v, b := range run.Deliveries[:u] {
			for _, d := range a {
				for _, e := range b {
					if d.At-e.At < service && e.At-d.At < service {
						return fmt.Errorf("departures of %s and %s are less than p/C apart", p.Clusters[v].Name, p.Clusters[u].Name)
					}
				}
			}
		}
	}
	return nil
}
