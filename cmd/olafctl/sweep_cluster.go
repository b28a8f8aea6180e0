package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results/store"
)

// clusterFlags write scripts for clusters that have a scheduler of their own.
type clusterFlags struct {
	slurm, k8s string
	shards     int
	image      string
	claim      string
}

func (f *clusterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.slurm, "slurm", "", "of a FILE.yaml: write a job array for Slurm to this file")
	flags.StringVar(&f.k8s, "k8s", "", "of a FILE.yaml: write an indexed Job for Kubernetes to this file")
	flags.IntVar(&f.shards, "shards", 0, "in how many shares; 0 tries a result of the sweep and chooses so that each takes half a minute or more")
	flags.StringVar(&f.image, "image", "olafctl", "with --k8s: the image that has olafctl")
	flags.StringVar(&f.claim, "claim", "olaf-store", "with --k8s: the claim of the volume that all shares keep results in")
}

func (f *clusterFlags) asked() bool { return f.slurm != "" || f.k8s != "" }

// share is how long a task of a cluster should take at least: starting one costs seconds.
const share = 30 * time.Second

// script is what the templates are filled with.
type script struct {
	Name, File    string
	Files         []scriptFile // that every share reads
	Cells, Shards int
	Image, Claim  string
}

// scriptFile is a file in a ConfigMap, its text below its name.
type scriptFile struct{ Name, Text string }

// mostConfig is how much a ConfigMap holds, in bytes.
const mostConfig = 1 << 20

var slurmScript = template.Must(template.New("slurm").Parse(`#!/bin/bash
# {{.Cells}} cells of {{.File}} in {{.Shards}} shares, made by 'olafctl sweep export'. Submit it with sbatch; what is done is not done again, so that it
# may be submitted again after whatever ended it. OLAFCTL_HOME is a folder that all nodes share.
# Afterwards 'olafctl sweep run {{.File}}' finds all results there, and prints and keeps the sweep.
#SBATCH --job-name={{.Name}}
#SBATCH --array=1-{{.Shards}}
#SBATCH --cpus-per-task=1
#SBATCH --output={{.Name}}-%A_%a.log
set -euo pipefail
: "${OLAFCTL_HOME:?say which folder all nodes share}"
exec olafctl sweep work {{.File}} --shard "${SLURM_ARRAY_TASK_ID}/{{.Shards}}" --processes "${SLURM_CPUS_PER_TASK:-1}" --quiet
`))

var k8sScript = template.Must(template.New("k8s").Parse(`# {{.Cells}} cells of {{.File}} in {{.Shards}} shares, made by 'olafctl sweep export'. Apply it with kubectl; a pod that ends is started again and goes on.
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{.Name}}
data:
{{range .Files}}  {{.Name}}: |
{{.Text}}
{{end}}---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{.Name}}
spec:
  completionMode: Indexed
  completions: {{.Shards}}
  parallelism: {{.Shards}}
  backoffLimitPerIndex: 3
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: olafctl
          image: {{.Image}}
          command: ["/bin/sh", "-c"]
          args: ['exec olafctl sweep work /sweep/sweep.yaml --shard "$((JOB_COMPLETION_INDEX + 1))/{{.Shards}}" --processes 1 --quiet']
          env:
            - {name: OLAFCTL_HOME, value: /store}
          resources:
            requests: {cpu: "1"}
          volumeMounts:
            - {name: sweep, mountPath: /sweep}
            - {name: store, mountPath: /store}
      volumes:
        - name: sweep
          configMap: {name: {{.Name}}}
        - name: store
          persistentVolumeClaim: {claimName: {{.Claim}}}
`))

// write writes the scripts that were asked for.
func (f *clusterFlags) write(cmd *cobra.Command, env *cli.Env, path string, force bool) error {
	if err := cli.Distinct(f.slurm, f.k8s); err != nil {
		return err
	}
	if err := cli.RefuseAnyExisting(force, f.slurm, f.k8s); err != nil {
		return err
	}
	if path == "-" {
		return cli.UsageError("every node reads the sweep again; name a file that all of them see")
	}
	plan, err := resolveFile(env, path, true)
	if err != nil {
		return err
	}
	shards, err := f.divided(cmd, env, plan)
	if err != nil {
		return err
	}
	s := script{Name: kubernetesName(path), File: path, Cells: len(plan.Cells), Shards: shards, Image: f.image, Claim: f.claim}
	if f.k8s != "" {
		if s.Files, err = configured(path); err != nil {
			return err
		}
	}
	for _, to := range []struct {
		path string
		of   *template.Template
	}{{f.slurm, slurmScript}, {f.k8s, k8sScript}} {
		if to.path == "" {
			continue
		}
		var out bytes.Buffer
		if err := to.of.Execute(&out, &s); err != nil {
			return err
		}
		if err := cli.WriteWhole(env, to.path, out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// divided is into how many shares a sweep goes: no more than it has cells.
func (f *clusterFlags) divided(cmd *cobra.Command, env *cli.Env, plan *sweep.Plan) (int, error) {
	switch {
	case f.shards < 0:
		return 0, cli.UsageError("--shards %d: use 1 or more, or 0 to choose", f.shards)
	case min(f.shards, len(plan.Cells)) == 0:
		return chooseShards(cmd, env, plan)
	}
	return min(f.shards, len(plan.Cells)), nil
}

// configured are the files that a pod has to have: the sweep, and the one that its command reads.
func configured(path string) ([]scriptFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files, size := []scriptFile{{"sweep.yaml", indented(string(text))}}, len(text)
	spec, err := sweep.Parse(path, text)
	if err != nil {
		return nil, err
	}
	if spec.File != "" {
		if filepath.Dir(spec.File) != filepath.Dir(path) || filepath.Base(spec.File) == files[0].Name {
			return nil, cli.UsageError("the sweep reads %s, which pods find beside it only, and not as sweep.yaml; put it into the folder of %s", spec.File, path)
		}
		if text, err = os.ReadFile(spec.File); err != nil {
			return nil, err
		}
		files, size = append(files, scriptFile{filepath.Base(spec.File), indented(string(text))}), size+len(text)
	}
	if size > mostConfig {
		return nil, cli.UsageError("%s is too long for a ConfigMap, which holds 1 MiB; write a grid (sweep) in place of a list", path)
	}
	return files, nil
}

// chooseShards carries out one result of the sweep, keeps it, and says how many shares take half a minute each.
func chooseShards(cmd *cobra.Command, env *cli.Env, plan *sweep.Plan) (int, error) {
	var err error
	if plan.Build, err = thisBuild(env); err != nil {
		return 0, err
	}
	began := env.Now()
	job := plan.Job(0, 0)
	commands := sweepCommands(env)
	result, err := commands.Do(cmd.Context(), job)
	if err := errors.Join(err, commands.Close()); err != nil {
		return 0, err
	}
	took := env.Now().Sub(began)
	by := store.Maker{Host: presence(env, "", plan.Build).Host, Build: plan.Build.String(), Finished: env.Now().UTC().Format(time.RFC3339), Seconds: took.Seconds()}
	err = cli.StoreFlagOf(cmd).With(env, func(s *store.Store) error { return s.Singles().Put(store.Single{Key: job.Key, Result: result, By: by}) })
	whole := took * time.Duration(len(plan.Cells)*plan.Lots())
	shards := max(1, min(len(plan.Cells), int(math.Floor(whole.Seconds()/share.Seconds()))))
	fmt.Fprintf(env.Stderr, "a result took %v here, all about %v: %d shares\n", took.Round(time.Millisecond), whole.Round(time.Second), shards)
	return shards, err
}

// mostName leaves room for the number of a share in 63 characters, which is what names of Kubernetes have.
const mostName = 50

// kubernetesName is a name for jobs, of what names of Kubernetes may have in them.
func kubernetesName(path string) string {
	base := strings.ToLower(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	name := "olaf-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, base)
	return strings.Trim(name[:min(len(name), mostName)], "-")
}

// indented puts a file below a key of YAML.
func indented(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = "    " + l
		}
	}
	return strings.Join(lines, "\n")
}
