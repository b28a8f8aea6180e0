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
		Long: `Show the settings that apply to all commands. Put per-machine settings in a config file (olafctl/config.yaml in your
configuration folder, or the file named by OLAFCTL_CONFIG) or in the environment:

  device: grpc://lab:9559      # the same as OLAFCTL_DEVICE
  tls-ca: lab.pem

A flag overrides the environment, and the environment overrides the file. Paths in the file are relative to its folder.`,
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
			all, file, err := cli.ListSettings(env, cmd.Root())
			if err != nil {
				return err
			}
			if out == cli.JSON {
				return cli.WriteJSON(env.Stdout, struct {
					cli.Head
					File     string        `json:"file"`
					Settings []cli.Setting `json:"settings"`
				}{cli.Info("config"), file, all})
			}
			list := cli.Grid{Header: []string{"SETTING", "VALUE", "FROM", "WHERE"}}
			for _, s := range all {
				list.Add(s.Name, s.Value, s.From, s.Location)
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
