package aomcheck

import (
	"fmt"
	"testing"
	"time"

	"github.com/olafctl/olaf"
)

// question is one row of the tables in docs/guide/proofs.md.
type question struct {
	name string
	p    Problem
}

func alike(clusters, horizon int, interval olaf.Duration, objective Objective) Problem {
	p := Problem{Service: 2 * ms, Horizon: horizon, Objective: objective}
	for range clusters {
		p.Clusters = append(p.Clusters, Cluster{Interval: interval, EveryPhase: true})
	}
	return p
}

func fair(epsilon olaf.Duration) Objective { return Objective{Kind: Fairness, Bound: epsilon} }
func peak(bound olaf.Duration) Objective   { return Objective{Kind: MaxPeak, Bound: bound} }

func controlled(p Problem) Problem {
	p.Control = Control{DeltaT: 400 * ms, Active: 16}
	return p
}

func questions() []question {
	var out []question
	add := func(name string, p Problem) { out = append(out, question{name, p}) }
	for _, k := range []int{20, 40, 80} {
		add(fmt.Sprintf("100-100-progression-eps0.1/K=%d", k), twoClusters(k, 100*ms, 100*ms))
		add(fmt.Sprintf("100-300-progression-eps0.1/K=%d", k), twoClusters(k, 100*ms, 300*ms))
		add(fmt.Sprintf("100-100-every-eps0.1/K=%d", k), alike(2, k, 100*ms, fair(ms/10)))
		add(fmt.Sprintf("100-100-every-eps5/K=%d", k), alike(2, k, 100*ms, fair(5*ms)))
	}
	for _, f := range []int{2, 3, 4, 5, 6, 7, 8} {
		bound := olaf.Duration(f-1) * 2 * ms
		add(fmt.Sprintf("every-tight/F=%d,K=10", f), alike(f, 10, 100*ms, fair(bound)))
		add(fmt.Sprintf("every-just-broken/F=%d,K=10", f), alike(f, 10, 100*ms, fair(bound-ms/10)))
	}
	add("every-tight/F=8,K=20", alike(8, 20, 100*ms, fair(14*ms)))
	add("every-just-broken/F=8,K=20", alike(8, 20, 100*ms, fair(14*ms-ms/10)))
	for _, f := range []int{3, 4, 5} {
		add(fmt.Sprintf("congested-5ms-peak15/F=%d,K=10", f), alike(f, 10, 5*ms, peak(15*ms)))
	}
	add("congested-5ms-peak15/F=4,K=20", alike(4, 20, 5*ms, peak(15*ms)))
	for _, k := range []int{8, 12, 16, FreeLimit} {
		add(fmt.Sprintf("control-free-eps610/K=%d", k), controlled(alike(2, k, 100*ms, fair(610*ms))))
		add(fmt.Sprintf("control-free-eps100/K=%d", k), controlled(alike(2, k, 100*ms, fair(100*ms))))
	}
	for _, k := range []int{20, 40, 80} {
		p := controlled(alike(2, k, 100*ms, peak(705*ms)))
		p.Control.Sends = SendsSeeded
		add(fmt.Sprintf("control-seeded-peak705/K=%d", k), p)
	}
	return out
}

// BenchmarkVerify times every question on each solver alone and on the portfolio, without simulation. The metric holds
// is 1, 0 for violated, −1 for no answer within a minute.
func BenchmarkVerify(b *testing.B) {
	verdicts := map[Answer]float64{Holds: 1, Violated: 0, Unknown: -1}
	for _, q := range questions() {
		for _, name := range []string{"z3", "cvc5", "portfolio"} {
			solvers := map[string][]Solver{"z3": {Z3()}, "cvc5": {cvc5()}}[name]
			b.Run(q.name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					v, err := Verify(b.Context(), q.p, Options{Solvers: solvers, Limit: time.Minute})
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(verdicts[v.Answer], "holds")
				}
			})
		}
	}
}

// BenchmarkReplay replays and judges one path of 8 clusters with 20 updates each.
func BenchmarkReplay(b *testing.B) {
	p := alike(8, 20, 10*ms, peak(40*ms))
	p = p.WithDefaults()
	path := p.findPath()
	for b.Loop() {
		run, err := p.Replay(path, nil)
		if err != nil {
			b.Fatal(err)
		}
		p.Judge(run)
	}
}
