package main

import (
	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/cmd/olafctl/monitor"
)

func newMetricsCmd(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "Watch long runs with Prometheus and Grafana",
		Long: `Watch long runs with Prometheus and Grafana. 'device serve', 'train', 'reproduce', 'simulate' and 'tui' serve OpenMetrics
text under /metrics with --metrics PORT; bench writes a file for the node exporter with --metrics-file FILE.prom. See
docs/guide/monitoring.md.`,
		Example: `  olafctl reproduce --quick --metrics 19100
  olafctl config dashboard -w grafana.json`,
	}
	cmd.AddCommand(newMetricsDashboardCmd(env))
	return cmd
}

func newMetricsDashboardCmd(env *cli.Env) *cobra.Command {
	var path string
	var force bool
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Print a Grafana dashboard to import",
		Example: `  olafctl config dashboard -w grafana.json
  olafctl config dashboard | jq .panels[].title`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if path == "" {
				return cli.PrintText(env, monitor.Dashboard)
			}
			if err := cli.RefuseExisting(path, force); err != nil {
				return err
			}
			text, err := monitor.Dashboard()
			if err != nil {
				return err
			}
			return cli.WriteWhole(env, path, append(text, '\n'))
		},
	}
	cli.AddWrite(cmd.Flags(), &path, "write to this file")
	cli.AddForce(cmd.Flags(), &force, "an existing file")
	return cmd
}
