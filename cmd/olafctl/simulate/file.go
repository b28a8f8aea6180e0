package simulate

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	sweepcmd "github.com/olafctl/olaf/cmd/olafctl/sweep"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// ClusterNames returns the names of the presets with clusters of closed-loop workers.
func ClusterNames() []string { return append(JobPresetNames(), sharedPreset) }

// readJob reads a job file, if the argument is one, and sets the flags that are not given. Any other argument is
// returned unchanged.
func (f *simulateFlags) readJob(cmd *cobra.Command, args []string) ([]string, error) {
	if len(args) != 1 || f.preset != "" {
		return args, nil
	}
	text, err := os.ReadFile(args[0])
	if err != nil || !job.IsFile(text) {
		return args, nil // the topology parser reports these errors
	}
	file, err := job.ParseFile(args[0], text)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(ClusterNames(), file.Preset) {
		return nil, file.In("preset", fmt.Errorf("unknown cluster for jobs %q; use one of %s", file.Preset,
			strings.Join(ClusterNames(), ", ")))
	}
	f.job.read = file
	return nil, f.takeJob(cmd, file)
}

// takeJob sets the flags that are not given to the values in a job file.
func (f *simulateFlags) takeJob(cmd *cobra.Command, file *job.File) error {
	flags, names := cmd.Flags(), jobOptions(f.waits.set)
	errs := []error{flags.Set("preset", file.Preset)}
	set := func(field, name, value string) {
		if !flags.Changed(name) {
			errs = append(errs, file.In(field, flags.Set(name, value)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Options)) {
		field := "options." + name
		if !slices.Contains(names, name) {
			errs = append(errs, file.In(field,
				fmt.Errorf("a job has no option %q%s", name, yamlfile.Suggest(name, names))))
			continue
		}
		set(field, name, file.Options[name])
	}
	if file.Runs != nil && !flags.Changed("runs") {
		set("runs", "runs", strconv.Itoa(*file.Runs))
		errs = append(errs, file.In("runs", f.checkRuns()))
	}
	if file.Seed != nil {
		set("seed", "seed", strconv.FormatUint(*file.Seed, 10))
	}
	if len(file.Expect) > 0 && len(f.swept.Axes) > 0 {
		errs = append(errs, cli.UsageError("expectations apply only to runs; leave out --sweep, or the "+
			"expectations in %s", file.Name))
	}
	return errors.Join(errs...)
}

// jobOptions returns the names of the flags that a job file can contain as options.
func jobOptions(set system.Set) []string {
	names, _ := sweepcmd.OptionsOf(newJobCells(set).Cmd.Flags(), []string{"preset", "seed", "queue"}, nil)
	return names
}

// jobSchema returns the JSON schema of job files. It includes the usage texts of the flags.
func jobSchema(set system.Set) ([]byte, error) {
	options, flags := map[string]any{}, newJobCells(set).Cmd.Flags()
	for _, name := range jobOptions(set) {
		flag := flags.Lookup(name)
		of := map[string]any{"description": flag.Usage}
		if kind, ok := jsonTypes[flag.Value.Type()]; ok {
			of["type"] = kind
		}
		options[name] = of
	}
	return job.JSONSchema(ClusterNames(), options)
}

// jsonTypes maps the type of a flag to a JSON type. Flags of other types have values that may be strings or numbers.
var jsonTypes = map[string]string{"int": "integer", "uint64": "integer", "float64": "number", "bool": "boolean"}

// expectations returns the expectations in the job file.
func (f *jobFlags) expectations() []string {
	if f.read == nil {
		return nil
	}
	return f.read.Expect
}

// locate adds the line number in the file to an error about an expectation.
func (f *jobFlags) locate(err error) error {
	if field := olaf.FieldOf(err); f.read != nil && field != "" {
		return f.read.In(field, err)
	}
	return err
}

// printJob prints the resolved job in the format of a job file.
func (f *simulateFlags) printJob(cmd *cobra.Command, env *cli.Env, names []string) error {
	file := job.File{Preset: f.preset, Options: job.Options{}, Runs: &f.runs, Seed: &f.seed,
		Expect: slices.Concat(f.job.expectations(), f.expect.Texts)}
	for _, name := range names {
		if value := cmd.Flags().Lookup(name).Value.String(); value != "" {
			file.Options[name] = value
		}
	}
	return cli.PrintText(env, file.Text)
}
