package olaf

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/renameio/v2"

	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen/trace"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// storedVersion is part of the file name of stored training runs. It must change when training computes something else.
const storedVersion = "1"

// learned contains the part of a training result that figures use.
type learned struct {
	Curves  [][]rl.Point `json:"curves"` // by worker
	EndNS   int64        `json:"end_ns"`
	Network engine.Stats `json:"network"`
	// Models and Torn are those of rl.Outcome.
	Models uint64 `json:"models,omitempty"`
	Torn   uint64 `json:"torn,omitempty"`
}

// trainAll carries out the training runs one after the other, each on all processors. If o.Trainings is set, it stores
// finished runs there and reuses them, so that an interrupted figure can continue. Results are in the order of jobs.
// After an error or an interrupt, missing results are nil.
func trainAll(ctx context.Context, o *experiments.Options, jobs []rl.Config) ([]*learned, error) {
	out := make([]*learned, len(jobs))
	for i := range jobs {
		l, err := trainOne(ctx, o, jobs[i], &share{o: o, config: &jobs[i], before: i, jobs: len(jobs)})
		if err != nil {
			return out, err
		}
		out[i] = l
		o.ReportProgress((i+1)*perTraining, len(jobs)*perTraining)
	}
	return out, nil
}

// perTraining is the number of progress steps that each training run reports.
const perTraining = 100

// share converts the progress of one training run to the progress of all runs.
type share struct {
	o            *experiments.Options
	config       *rl.Config
	before, jobs int
	done         int
}

// OnUpdate counts one iteration of the training run.
func (s *share) OnUpdate(u *trace.Update, _ *rl.Weights) error {
	s.done++
	part := float64(s.done) / float64(s.config.Workers*s.config.Iterations)
	if s.config.Until > 0 {
		part = float64(u.GenNS) / s.config.Until.NS()
	}
	s.o.ReportProgress(s.before*perTraining+int(part*perTraining), s.jobs*perTraining)
	return nil
}

func trainOne(ctx context.Context, o *experiments.Options, c rl.Config, progress *share) (*learned, error) {
	l := new(learned)
	if found, err := o.FindDone(&c, l); found || err != nil {
		return l, err
	}
	path, err := storedPath(o.Trainings, &c)
	if err != nil {
		return nil, err
	}
	if kept, err := readKept(path); kept != nil || err != nil {
		return kept, err
	}
	if l, err = learn(ctx, c, progress); err != nil || path == "" {
		return l, err
	}
	doc, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("keep a training: %w", err)
	}
	if err := os.MkdirAll(o.Trainings, 0o755); err != nil {
		return nil, err
	}
	return l, renameio.WriteFile(path, doc, 0o644)
}

func learn(ctx context.Context, c rl.Config, progress rl.Observer) (*learned, error) {
	outcome, err := rl.Train(ctx, c, progress)
	if err != nil {
		return nil, err
	}
	return &learned{Curves: outcome.Curves, EndNS: outcome.EndNS, Network: outcome.Network, Models: outcome.Models,
		Torn: outcome.Torn}, nil
}

// trainings divides a figure into parts. Each part trains one scheme with one seed, for the full or the quick number of
// seeds.
func trainings(schemes func(*experiments.Options) []scheme, full, quick int) *experiments.Parts {
	return experiments.NewParts("olaf/training", func(o *experiments.Options, add func(string, rl.Config)) error {
		all := schemes(o)
		runs, seed := o.Seeds(full, quick)
		for i, c := range trainingsOf(all, runs, seed) {
			add(fmt.Sprintf("%s, seed %d", all[i%len(all)].Name, c.Seed), c)
		}
		return nil
	}, func(ctx context.Context, c rl.Config) (*learned, error) { return learn(ctx, c, nil) })
}

// storedPath returns the path at which a training run is stored. It depends on the whole configuration.
func storedPath(folder string, c *rl.Config) (string, error) {
	if folder == "" {
		return "", nil
	}
	doc, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("name a training: %w", err)
	}
	sum := sha256.Sum256(append(doc, storedVersion+runtime.GOARCH...))
	return filepath.Join(folder, "training-"+hex.EncodeToString(sum[:8])+".json"), nil
}

// readKept returns the stored result of a training run, or nil if there is none.
func readKept(path string) (*learned, error) {
	if path == "" {
		return nil, nil
	}
	doc, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var l learned
	if err := json.Unmarshal(doc, &l); err != nil {
		return nil, fmt.Errorf("%s is not a finished training run (%v); delete it to run it again", path, err)
	}
	return &l, nil
}

// overIterations returns a curve of the mean reward over seeds, averaged over blocks of iterations.
func overIterations(name string, seeds []*learned, block int) result.Series {
	var columns [][]float64
	for _, l := range seeds {
		if l != nil {
			columns = append(columns, rl.Blocks(l.Curves, block))
		}
	}
	s := result.Series{Name: name}
	for b := 0; ; b++ {
		var values []float64
		for _, c := range columns {
			if b < len(c) {
				values = append(values, c[b])
			}
		}
		if len(values) == 0 {
			return s
		}
		s.X = append(s.X, float64((b+1)*block))
		s.Y = append(s.Y, result.Describe(values))
	}
}

// overTime returns a curve of the mean reward over seeds in n equal time spans until endNS. Spans after the end of
// training have no value.
func overTime(name string, seeds []*learned, n int, endNS int64, unitNS float64) result.Series {
	s := result.Series{Name: name}
	values := make([][]float64, n)
	for _, l := range seeds {
		if l == nil {
			continue
		}
		for b, v := range rl.Periods(l.Curves, n, endNS) {
			if float64(b)*float64(endNS)/float64(n) < float64(l.EndNS) {
				values[b] = append(values[b], v)
			}
		}
	}
	for b := range values {
		s.X = append(s.X, float64(endNS)*float64(b+1)/float64(n)/unitNS)
		s.Y = append(s.Y, result.Describe(values[b]))
	}
	return s
}

// lastBlock returns the mean reward in the last block iterations of each seed. It is missing for missing seeds.
func lastBlock(seeds []*learned, block int) []results.Float {
	values := make([]results.Float, len(seeds))
	for i, l := range seeds {
		values[i] = results.Missing()
		if l == nil {
			continue
		}
		if blocks := rl.Blocks(l.Curves, block); len(blocks) > 0 {
			values[i] = results.Float(blocks[len(blocks)-1])
		}
	}
	return values
}

func longest(all []*learned) (endNS int64) {
	for _, l := range all {
		if l != nil {
			endNS = max(endNS, l.EndNS)
		}
	}
	return endNS
}
