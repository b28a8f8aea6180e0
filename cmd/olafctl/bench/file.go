package bench

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
)

// specFlags are the flags for a bench that is described by a file.
type specFlags struct {
	path   string
	schema bool
	read   *bench.File // nil without a file
}

func (f *specFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "file", "f", "", "bench file to run (- for stdin); flags override")
}

// addSchema adds the flag that prints the file's schema.
func (f *specFlags) addSchema(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.schema, "schema", false, "print the JSON schema of bench files and exit")
}

// loadFile reads the file. Flags on the command line take precedence over its values.
func (f *specFlags) loadFile(cmd *cobra.Command, env *cli.Env, spec *bench.Spec) error {
	if f.path == "" {
		return nil
	}
	name, text, err := cli.ReadInput(env, f.path)
	if err != nil {
		return err
	}
	if f.read, err = bench.ParseFile(env.Systems, name, text); err != nil {
		return err
	}
	if _, err := bench.NewPlan(f.read.Spec); err != nil {
		return f.read.Locate(err)
	}
	said := map[*pflag.Flag]string{}
	cmd.Flags().Visit(func(flag *pflag.Flag) { said[flag] = flag.Value.String() })
	*spec = f.read.Spec
	for flag, text := range said {
		if _, list := flag.Value.(pflag.SliceValue); !list { // lists are not part of the specification
			err = errors.Join(err, flag.Value.Set(text))
		}
	}
	return err
}

// expectations returns the expectations in the file.
func (f *specFlags) expectations() []string {
	if f.read == nil {
		return nil
	}
	return f.read.Expect
}

// printFile prints the specification and its expectations in the format of a bench file.
func (f *specFlags) printFile(env *cli.Env, spec bench.Spec, expect []string) error {
	return cli.PrintText(env, bench.File{Spec: spec, Expect: expect}.Text)
}
