package main

import (
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/p4ctl/p4"
)

func newTablesP4InfoCmd(env *cli.Env) *cobra.Command {
	var (
		of, path, config string
		lab, force       bool
	)
	cmd := &cobra.Command{
		Use:   "p4info",
		Short: "Print the P4Info of a system's pipeline, for other controllers to push",
		Long: `Print the P4Info of a pipeline as text: that of both blocks, and with --system also the tables by which that system's switch
program is told about jobs and members. Other P4Runtime controllers load it, and with --config the device config that goes with
it; pushing both chooses the pipeline of a running 'olafctl serve'.`,
		Example: `  olafctl tables p4info
  olafctl tables p4info --system iswitch -w isw.p4info.txtpb --config isw.bin`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			programs, err := toldOf(env.Systems, of)
			if err != nil {
				return err
			}
			profile := p4.Twin()
			if lab {
				profile = p4.Lab()
			}
			for _, file := range []string{path, config} {
				if err := cli.RefuseExisting(file, force); err != nil {
					return err
				}
			}
			if config != "" {
				if err := cli.WriteWhole(env, config, profile.DeviceConfig(programs...)); err != nil {
					return err
				}
			}
			if path != "" {
				return cli.WriteWhole(env, path, profile.InfoText(programs...))
			}
			_, err = env.Stdout.Write(profile.InfoText(programs...))
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&of, "system", "", "with this system's tables")
	cli.Complete(cmd, "system", func() []string { return toldSystems(env.Systems) })
	flags.BoolVar(&lab, "lab", false, "in the sizes of a card instead of the twin's")
	flags.StringVarP(&path, "write", "w", "", "write to this file")
	flags.StringVar(&config, "config", "", "write the device config to this file too")
	flags.BoolVar(&force, "force", false, "replace the files")
	return cmd
}
