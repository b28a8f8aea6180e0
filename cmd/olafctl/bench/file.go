package bench

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
)

// specFlags let a bench be described in a file.
type specFlags struct {
	path   string
	schema bool
	read   *bench.File // nil without one
}

func (f *specFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "file", "f", "", "bench file to run (- for stdin); flags override")
}

// addSchema lets a command explain the file.
func (f *specFlags) addSchema(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.schema, "schema", false, "print the JSON schema of bench files and exit")
}

// load puts what the file says below the flags that were given.
func (f *specFlags) load(cmd *cobra.Command, env *cli.Env, spec *bench.Spec) error {
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
		if _, list := flag.Value.(pflag.SliceValue); !list { // whose values are not in the specification
			err = errors.Join(err, flag.Value.Set(text))
		}
	}
	return err
}

// expected are the rules of the file.
func (f *specFlags) expected() []string {
	if f.read == nil {
		return nil
	}
	return f.read.Expect
}

// print writes what would run, and what would be expected of it.
func (f *specFlags) print(env *cli.Env, spec bench.Spec, expect []string) error {
	return cli.PrintText(env, bench.File{Spec: spec, Expect: expect}.Text)
}
