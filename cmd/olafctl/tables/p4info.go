package tables

import (
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// p4infoFlags are the flags of tables p4info.
type p4infoFlags struct {
	system, path, config string
	lab, force           bool
}

func newTablesP4InfoCmd(env *cli.Env) *cobra.Command {
	f := new(p4infoFlags)
	cmd := &cobra.Command{
		Use:   "p4info",
		Short: "Print a system's P4Info for other controllers",
		Long: `Print the P4Info of both table blocks as text; --system adds the tables of that system's switch program. Other P4Runtime
controllers push it, with the device config from --config, to select the pipeline of a running 'olafctl device serve'.`,
		Example: `  olafctl tables p4info
  olafctl tables p4info --system iswitch -w isw.p4info.txtpb --config isw.bin`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.write(env) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.system, "system", "", "include this system's tables")
	cli.Complete(cmd, "system", func() []string { return cli.TableSystems(env.Systems) })
	flags.BoolVar(&f.lab, "lab", false, "use a card's table sizes instead of the twin's")
	cli.AddWrite(flags, &f.path, "write to this file")
	flags.StringVar(&f.config, "config", "", "also write the device config to this file")
	cli.AddForce(flags, &f.force, "existing files")
	return cmd
}

// write prints the P4Info or writes it to a file. With --config, it also writes the device config.
func (f *p4infoFlags) write(env *cli.Env) error {
	programs, err := cli.TablePrograms(env.Systems, f.system)
	if err != nil {
		return err
	}
	profile := p4.Twin()
	if f.lab {
		profile = p4.Lab()
	}
	if err := cli.RefuseAnyExisting(f.force, f.path, f.config); err != nil {
		return err
	}
	if f.config != "" {
		if err := cli.WriteWhole(env, f.config, profile.DeviceConfig(programs...)); err != nil {
			return err
		}
	}
	if f.path != "" {
		return cli.WriteWhole(env, f.path, profile.InfoText(programs...))
	}
	_, err = env.Stdout.Write(profile.InfoText(programs...))
	return err
}
