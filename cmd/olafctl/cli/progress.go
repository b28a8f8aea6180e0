package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/olafctl/olaf/experiments/bench"
)

// Intervals of progress: a bar on a terminal, lines in a log.
const (
	BarInterval = 100 * time.Millisecond
	LogInterval = 10 * time.Second
	barWidth    = 30
)

// Progress prints the progress of a long operation on stderr.
type Progress struct {
	quit chan struct{}
	wg   sync.WaitGroup
}

// ProgressOf returns a function that reads the progress of a stream.
func ProgressOf(s *bench.Stream) func() (done, total int) {
	return func() (int, int) {
		p := s.Progress()
		return p.Done, p.Total
	}
}

// StartProgress shows the numbers returned by look until Stop is called. On a terminal it draws a bar; otherwise it
// prints a line every ten seconds. It shows nothing if quiet is set or before the first interval.
func StartProgress(env *Env, quiet bool, look func() (done, total int)) *Progress {
	return StartNotedProgress(env, quiet, look, func() string { return "" })
}

// StartNotedProgress is like StartProgress but also shows a note behind the bar.
func StartNotedProgress(env *Env, quiet bool, look func() (done, total int), note func() string) *Progress {
	p := &Progress{quit: make(chan struct{})}
	if quiet {
		return p
	}
	interval := LogInterval
	if env.Interactive {
		interval = BarInterval
	}
	p.wg.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		started, drawn := env.Now(), false
		for {
			select {
			case <-p.quit:
				if drawn {
					env.Redraw("")
				}
				return
			case <-ticker.C:
				done, total := look()
				line := progressLine(done, total, env.Now().Sub(started))
				if more := note(); more != "" {
					line += "  " + more
				}
				if env.Interactive {
					env.Redraw(line)
					drawn = true
				} else {
					fmt.Fprintln(env.Stderr, line)
				}
			}
		}
	})
	return p
}

// Stop stops the progress display and clears the bar.
func (p *Progress) Stop() {
	close(p.quit)
	p.wg.Wait()
}

// progressLine returns a bar with counts and an estimate of the remaining time.
func progressLine(done, total int, elapsed time.Duration) string {
	if total <= 0 {
		return "preparing…"
	}
	filled := barWidth * done / total
	line := fmt.Sprintf("[%s%s] %d/%d", strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), done, total)
	if done > 0 && done < total {
		left := time.Duration(float64(elapsed) / float64(done) * float64(total-done))
		line += fmt.Sprintf("  about %v left", left.Round(time.Second))
	}
	return line
}
