package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/sweep"
)

// SpotCheck configures the repetition of results that came through a work queue. Some results are repeated because any
// worker that has the queue's token can invent results.
type SpotCheck struct {
	Share float64 // share of all results, from 0 to 1; 0 repeats none
	Do    func(context.Context, Job) (json.RawMessage, error)
}

// longestCheck is the maximum duration of a job that is repeated for a spot check.
const longestCheck = time.Minute

// remoteResult is a result that another machine computed.
type remoteResult struct {
	unit
	store.Single
	machine int
}

// Check repeats results from other machines in this process. It repeats the given share of all results, and at least
// one result from every worker that has repeatable results. A result that differs is stored next to the first one, and
// its description names both makers.
func (e *Engine) Check(ctx context.Context, c SpotCheck) (machines []sweep.Checked, differences []string, err error) {
	able, machines := e.groupByWorker(c.Share)
	total := int(math.Ceil(c.Share * float64(len(e.foreign))))
	g, limited := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	for _, one := range chooseResults(able, total) {
		g.Go(func() error {
			difference, late, err := e.repeatJob(limited, c, one)
			mu.Lock()
			defer mu.Unlock()
			m := &machines[one.machine]
			switch {
			case err != nil:
				return err
			case late:
				m.NotChecked = "a repetition took longer than a minute"
				return nil
			case difference != "":
				m.Differ++
				differences = append(differences, difference)
			}
			m.Repeated++
			return nil
		})
	}
	err = g.Wait()
	slices.Sort(differences)
	return machines, differences, err
}

// groupByWorker groups the repeatable results by the worker that computed them. It also describes all workers.
func (e *Engine) groupByWorker(share float64) (able [][]remoteResult, machines []sweep.Checked) {
	by := map[string][]remoteResult{}
	for _, one := range e.foreign {
		name := one.By.Host + "\x00" + one.By.Worker
		by[name] = append(by[name], one)
	}
	for i, name := range slices.Sorted(maps.Keys(by)) {
		first := &by[name][0].By
		m := sweep.Checked{Host: first.Host, Worker: first.Worker, Build: first.Build, Results: len(by[name])}
		var here []remoteResult
		for _, one := range by[name] {
			if why := e.notRepeatableReason(&one.By, share); why != "" {
				m.NotChecked = why
				continue
			}
			one.machine = i
			here = append(here, one)
		}
		able, machines = append(able, here), append(machines, m)
	}
	return able, machines
}

// notRepeatableReason returns the reason why a result cannot be repeated here, or "" if it can be.
func (e *Engine) notRepeatableReason(by *store.Maker, share float64) string {
	switch {
	case share <= 0:
		return "turned off"
	case by.Build != e.Plan.Build.String():
		return "a different build or architecture, " + by.Build
	case e.Plan.command.Timed:
		return "depends on wall time"
	case by.Seconds >= longestCheck.Seconds():
		return "took a minute or longer"
	}
	return ""
}

// chooseResults draws results at random, so that no worker can predict the choice. It chooses one result from every
// machine and then others, up to the given total.
func chooseResults(able [][]remoteResult, total int) (chosen []remoteResult) {
	var rest []remoteResult
	for _, one := range able {
		if len(one) == 0 {
			continue
		}
		rand.Shuffle(len(one), func(i, j int) { one[i], one[j] = one[j], one[i] })
		chosen, rest = append(chosen, one[0]), append(rest, one[1:]...)
	}
	rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	return append(chosen, rest[:min(len(rest), max(0, total-len(chosen)))]...)
}

// repeatJob runs a job again and compares the results. difference describes how they differ. late reports whether the
// job took too long.
func (e *Engine) repeatJob(ctx context.Context, c SpotCheck, one remoteResult) (difference string, late bool, err error) {
	short, stop := context.WithTimeout(ctx, longestCheck)
	defer stop()
	where := e.Plan.cellName(&e.Plan.Cells[one.cell])
	begun := e.Now()
	again, err := c.Do(short, e.Plan.Job(one.cell, one.lot))
	switch {
	case ctx.Err() != nil:
		return "", false, ctx.Err()
	case short.Err() != nil:
		return "", true, nil
	case err != nil:
		return fmt.Sprintf("%s: the result of %s (worker %s) can't be repeated here: %v", where, one.By.Host,
			one.By.Worker, err), false, nil
	case bytes.Equal(again, one.Result):
		return "", false, nil
	}
	by := store.Maker{Host: e.Host, Build: e.Plan.Build.String(), Finished: e.Now().UTC().Format(time.RFC3339),
		Seconds: e.Now().Sub(begun).Seconds()}
	err = e.Results.Put(one.Single) // again, as the store may have been full
	if err == nil {
		err = e.Results.Put(store.Single{Key: one.Key, Result: again, By: by})
	}
	return fmt.Sprintf("%s: repeated on %s, the result of %s (worker %s) differs: %v", where, e.Host,
		one.By.Host, one.By.Worker, err), false, nil
}
