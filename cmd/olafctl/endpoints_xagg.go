package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/field"
	endpoints "github.com/olafctl/olaf/pktgen/process"
)

// runXAgg is a worker of an aggregator that waits for every sum.
func (f *workerFlags) runXAgg(cmd *cobra.Command, env *cli.Env) error {
	w := endpoints.Worker{Worker: olaf.WorkerID(max(f.number, 0)), Every: f.every, Skip: f.skip}
	var err error
	if w.Aggregator, err = endpointAddress("aggregator", f.aggregator); err != nil {
		return err
	}
	if w.Server, err = endpointAddress("server", f.server); err != nil {
		return err
	}
	conn, _, err := f.bind(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer conn.Close()
	w.Job = f.job
	training, err := f.open.config(env)
	if err != nil {
		return err
	}
	var learner *field.Learner
	if training != nil {
		if learner, err = field.NewLearner(training, f.number); err != nil {
			return err
		}
		w.Job, w.Vectors = field.Job(training), learner
	}
	report, err := w.Run(cmd.Context(), conn)
	if err == nil && learner != nil {
		report.Work, err = json.Marshal(learner.Learned())
	}
	if err != nil {
		return ended(err)
	}
	return cli.WriteDocument(env, f.format, struct {
		cli.Head
		endpoints.WorkerReport
	}{cli.Head{Schema: "olafctl.worker/v1"}, report})
}

// runXAgg is the server above such an aggregator.
func (f *serverFlags) runXAgg(cmd *cobra.Command, env *cli.Env) error {
	s := endpoints.Server{}
	var err error
	if s.Agent, err = endpointAddress("agent", f.agent); err != nil {
		return err
	}
	if s.Workers, err = f.addresses(); err != nil {
		return err
	}
	conn, _, err := f.bind(cmd.Context(), false)
	if err != nil {
		return err
	}
	defer conn.Close()
	s.Job = f.job
	report, err := s.Run(cmd.Context(), conn)
	if err != nil {
		return ended(err)
	}
	return cli.WriteDocument(env, f.format, struct {
		cli.Head
		endpoints.ServerReport
	}{cli.Head{Schema: "olafctl.ps/v1"}, report})
}
