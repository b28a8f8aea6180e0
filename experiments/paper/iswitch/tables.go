package iswitch

import (
	"context"
	"math"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
)

// sayBasis adds a statement to t about the basis of the times in the tables.
func sayBasis(t *result.Result) {
	t.Say("a gradient's time is the interval of asynchronous iSwitch (Table 5), which hides everything else: 4 calibrated numbers")
	t.Say("the hosts' time for a message, a fixed part and one per MiB for each approach, was fitted to DQN and " +
		"PPO in Table 4: 6 numbers to 6; A2C and DDPG are predicted")
	t.Say("assumed: the same gradient time in all approaches, no stragglers, and iterations as printed; a server " +
		"is one thread, which also does its updates")
}

func runTable4(ctx context.Context, l *lab, o experiments.Options) (result.Report, error) {
	t := experiments.NewResult("iswitch/table4", "Table 4", &o, Models())
	approaches := []approach{syncPS, allReduce, syncSwitch}
	times, err := l.grid(ctx, "iteration", approaches, false)
	if err != nil {
		return nil, err
	}
	wires, err := l.grid(ctx, "iteration with links and switches alone, nothing fitted", approaches, true)
	if err != nil {
		return nil, err
	}
	hours := result.Block{Name: "training, iterations as printed", Unit: "h", Columns: times.Columns}
	printed := result.Block{Name: "the paper's iteration: its hours divided by its iterations", Unit: "ms", Columns: times.Columns}
	published, ours := paper.ClaimsByID(), paper.Ours{}
	for i, m := range Models() {
		line, theirs := result.Line{Name: m.Name}, result.Line{Name: m.Name}
		for k, a := range approaches {
			id, hour := claim("table4", m.Name, a.paper), 3.6e6/m.Sync // ms per iteration
			trained := results.Scale(times.Rows[i].Cells[k], results.Float(1/hour))
			ours[id] = paper.Of(trained)
			line.Cells = append(line.Cells, trained)
			theirs.Cells = append(theirs.Cells, results.Exactly(published[id].Value*hour))
		}
		hours.Rows, printed.Rows = append(hours.Rows, line), append(printed.Rows, theirs)
	}
	t.Blocks = append(t.Blocks, times, hours, wires, printed)
	t.Compare(ours)
	sayBasis(t)
	t.Say("with links and switches alone an iteration is %.0f %% off the paper's on average, with the hosts' "+
		"time %.0f %%: one to two milliseconds per message in hosts dominate PPO and DDPG, not the network",
		100*meanDeviation(&wires, &printed), 100*meanDeviation(&times, &printed))
	return t, nil
}

// meanDeviation returns the mean relative deviation between the cells of b and the cells of by.
func meanDeviation(b, by *result.Block) float64 {
	sum, n := 0.0, 0.0
	for i := range b.Rows {
		for k := range b.Rows[i].Cells {
			is, of := float64(b.Rows[i].Cells[k].Mean), float64(by.Rows[i].Cells[k].Mean)
			sum, n = sum+math.Abs(is-of)/of, n+1
		}
	}
	return sum / n
}

func runTable5(ctx context.Context, l *lab, o experiments.Options) (result.Report, error) {
	t := experiments.NewResult("iswitch/table5", "Table 5", &o, Models())
	approaches := []approach{asyncPS, asyncSwitch}
	times, err := l.grid(ctx, "interval of updates", approaches, false)
	if err != nil {
		return nil, err
	}
	stale := result.Block{Name: "staleness when applied", Unit: "updates", Columns: times.Columns}
	hours := result.Block{Name: "training, iterations as printed", Unit: "h", Columns: times.Columns}
	ours := paper.Ours{}
	for i, m := range Models() {
		old, long := result.Line{Name: m.Name}, result.Line{Name: m.Name}
		for k, a := range approaches {
			run, err := l.run(ctx, a, m, LabWorkers, false)
			if err != nil {
				return nil, err
			}
			ours[claim("table5", m.Name, a.paper)] = paper.Of(times.Rows[i].Cells[k])
			old.Cells = append(old.Cells, results.Exactly(float64(run.Number("staleness_updates").Mean)))
			long.Cells = append(long.Cells, results.Scale(times.Rows[i].Cells[k], results.Float(m.async(a)/3.6e6)))
		}
		stale.Rows, hours.Rows = append(stale.Rows, old), append(hours.Rows, long)
	}
	t.Blocks = append(t.Blocks, times, stale, hours)
	t.Compare(ours)
	sayBasis(t)
	t.Say("the server's time for an update was fitted to DQN and PPO in this table: 2 numbers to 2")
	t.Say("an asynchronous iteration applies 1 gradient with the server and 4 with iSwitch: counted in " +
		"gradients, DQN trained on 6.3 M against 14.0 M, A2C on 1.2 M against 1.6 M, PPO on 0.54 M against 0.48 " +
		"M, DDPG on 3.0 M against 6.0 M")
	t.Say("according to the paper's hours, asynchronous iSwitch is slower than synchronous iSwitch for all four " +
		"models: 11.74, 1.39, 0.27, 6.20 h against 8.66, 1.12, 0.22, 4.40 h")
	return t, nil
}

// async returns the number of iterations that the paper reports for an asynchronous approach.
func (m *Model) async(a approach) float64 {
	if a == asyncPS {
		return m.AsyncPS
	}
	return m.AsyncISwitch
}

func runTable3(ctx context.Context, l *lab, o experiments.Options) (result.Report, error) {
	t := experiments.NewResult("iswitch/table3", "Table 3", &o, Models())
	ours := paper.Ours{}
	for _, s := range []struct {
		block    string
		base     approach
		others   []approach
		rows     []string // ids of the claims' rows
		training func(*Model, approach) float64
	}{
		{"synchronous", syncPS, []approach{allReduce, syncSwitch}, []string{"allreduce_speedup_over_ps", "sync_speedup_over_ps"},
			func(m *Model, _ approach) float64 { return m.Sync }},
		{"asynchronous, iterations as printed", asyncPS, []approach{asyncSwitch}, []string{"async_speedup_over_ps"}, (*Model).async},
	} {
		b := result.Block{Name: s.block, Unit: "×", Columns: columnsOf(s.others)}
		for _, m := range Models() {
			base, err := l.iteration(ctx, s.base, m, LabWorkers, false)
			if err != nil {
				return nil, err
			}
			line := result.Line{Name: m.Name}
			for k, a := range s.others {
				time, err := l.iteration(ctx, a, m, LabWorkers, false)
				if err != nil {
					return nil, err
				}
				speedup := results.Exactly(float64(base.Mean) * s.training(&m, s.base) / (float64(time.Mean) * s.training(&m, a)))
				line.Cells = append(line.Cells, speedup)
				ours[claim("table3", s.rows[k], m.Name)] = paper.Of(speedup)
			}
			b.Rows = append(b.Rows, line)
		}
		t.Blocks = append(t.Blocks, b)
	}
	t.Compare(ours)
	sayBasis(t)
	return t, nil
}

func runText(_ context.Context, _ *lab, o experiments.Options) (result.Report, error) {
	t := experiments.NewResult("iswitch/text", "§§2 to 6", &o, nil)
	t.Compare(paper.Ours{})
	t.Say("Table 1's sizes are in binary units, because that matches the sum of the named networks' layers; the " +
		"board's chip is an XC7VX690T")
	return t, nil
}
