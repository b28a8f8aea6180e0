package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

func newConfigCmd(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show per-user settings, and print a Grafana dashboard",
		Long: `Show what is set for all commands. What belongs to a place or a person rather than to a run (the device, the store, how an
agent is trusted, how the dashboard looks) can be said once: in the environment, as OLAFCTL_DEVICE says --device, or in a
file of lines such as

  device: grpc://lab:9559
  tls-ca: lab.pem

A flag goes before the environment, and that before the file. The file is olafctl/config.yaml in the user's configuration
folder, or what OLAFCTL_CONFIG names; paths in it are relative to its folder. What runs stands in files of its own: see
'olafctl bench -f'.`,
		Example: "  olafctl config show",
	}
	cmd.AddCommand(newConfigShowCmd(env), newMetricsDashboardCmd(env))
	return cmd
}

func newConfigShowCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print every setting and its source",
		Example: `  olafctl config show
  OLAFCTL_THEME=light olafctl config show -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, file, err := cli.Settings(env, cmd.Root())
			if err != nil {
				return err
			}
			if out == cli.JSON {
				return cli.WriteJSON(env.Stdout, struct {
					cli.Head
					File     string        `json:"file"`
					Settings []cli.Setting `json:"settings"`
				}{cli.Head{Schema: "olafctl.config/v1"}, file, all})
			}
			list := cli.Grid{Header: []string{"SETTING", "VALUE", "FROM", "WHERE"}}
			for _, s := range all {
				list.Add(s.Name, s.Value, s.From, s.Where)
			}
			if file != "" && out != cli.CSV {
				fmt.Fprintf(env.Stderr, "file: %s\n", file)
			}
			return list.Write(env, out)
		},
	}
	cli.AddFormatFlag(cmd, &out)
	return cmd
}
