package onwire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/testbed/demo"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/internal/tempfolder"
)

// TrainSums trains c with workers that are processes in separate network namespaces, which are removed after the
// training. In every step the kernel sums the gradients of all workers. mode is the hook for the kernel's program;
// empty means native. The error matches ErrInvalid if an accounting identity is violated.
func TrainSums(ctx context.Context, c rl.Config, mode string, o Options) (_ *Summed, err error) {
	text, err := json.Marshal(&c)
	if err != nil {
		return nil, err
	}
	folder, remove, err := tempfolder.MakeFolder()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	config := filepath.Join(folder, "training.json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, err
	}
	mode = cmp.Or(mode, string(dataplane.Native))
	r, err := demo.RunDemo(ctx, demo.Config{
		Job: SumJob(&c), Group: lab.DefaultGroup, Line: sumLine, Rate: sumRate, Mode: dataplane.Mode(mode),
		Progress: func(string, ...any) {},
		Command: func(args ...string) *exec.Cmd {
			if args[0] == workerProgram {
				args = append(args, "--training", config)
			}
			return o.Command(args...)
		},
	})
	if errors.Is(err, demo.ErrWrong) {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err != nil {
		return nil, err
	}
	return readSummed(&c, r, o)
}

// Line rates of a worker and of the aggregator in training by sums, whose vectors are short.
const (
	sumLine = 200 * olaf.Mbps
	sumRate = 400 * olaf.Mbps
)

// workerProgram is the command with which a worker is started.
const workerProgram = "worker"

// readSummed reads the reports of the workers. It returns an error unless all of them have the same weights.
func readSummed(c *rl.Config, r *demo.Report, o Options) (*Summed, error) {
	s := &Summed{Curves: make([][]rl.Point, c.Workers), Kernel: r.Kernel}
	for k := range r.Workers {
		var l Learned
		if err := json.Unmarshal(r.Workers[k].Work, &l); err != nil {
			return nil, fmt.Errorf("%w: worker %d: no report: %w", ErrHost, k, err)
		}
		s.Curves[k], s.Greedy, s.Diverged = l.Curve, l.Greedy, cmp.Or(s.Diverged, l.Diverged)
		if k == 0 {
			s.Digest = l.Digest
		}
		if l.Digest != s.Digest {
			return nil, fmt.Errorf("%w: worker %d ends with other weights than worker 0", ErrInvalid, k)
		}
		if o.OnUpdate != nil {
			for _, p := range l.Curve {
				o.OnUpdate(k, p)
			}
		}
	}
	return s, nil
}
