package onwire

import (
	"context"
	"errors"
	"os/exec"
	"strconv"

	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/bench/wired"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
)

// OpenSwitch starts the job's switch; see wired.OpenStand.
func (w *WireJob) OpenSwitch(interfaces []string, logf func(format string, args ...any)) (*wired.Stand, error) {
	parts := w.parts
	if parts.Program == nil {
		parts.Program, parts.Passes = w.spec.System.SwitchProgram(), true
	}
	parts.Root = parts.Program.New
	return wired.OpenStand(w.network, w.job, parts, interfaces, logf)
}

// runAnswered trains with one seed through a system whose server answers each update. Workers and server are daemons in
// namespaces around a switch in this process.
func (p *Program) runAnswered(ctx context.Context, spec *job.Spec, seed uint64) (_ *ProgramRun, err error) {
	w, err := BuildWireJob(func(o system.Options) (*job.Spec, error) {
		own := *spec
		own.Options = o
		return &own, nil
	}, spec.Options, p.Workers, p.Values, 0)
	if err != nil {
		return nil, err
	}
	bed, err := w.OpenSwitch(nil, p.Progress)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, failed := bed.Close()
		err = errors.Join(err, failed)
	}()
	s := &stand{computes: true, common: []string{"--workers", strconv.Itoa(p.Workers), "--mode", spec.Mode.Name,
		"--interface", wired.HostInterface}, worker: func(int) []string { return nil }}
	for i, name := range bed.Names {
		at := place{name: name, start: func(cmd *exec.Cmd) (testbed.Process, error) { return bed.Start(i, cmd) }}
		if s.workers = append(s.workers, at); i == p.Workers {
			s.workers, s.server = s.workers[:i], at
		}
	}
	s.end = func(context.Context) (map[string]uint64, error) {
		c, err := bed.Stop()
		return map[string]uint64{"frames": c["arrived"], "lost": c["arrived"] - min(c["left"]+c["strange"], c["arrived"])}, err
	}
	return p.run(ctx, s, spec.System.Name, seed)
}
