package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/experiments/netsim"
)

func newTopologyCmd(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topology",
		Short: "Look at networks to simulate",
	}
	cmd.AddCommand(newTopologyListCmd(env), newTopologyShowCmd(env), newTopologySchemaCmd(env))
	return cmd
}

func newTopologyListCmd(env *environment) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the topologies that come with the program",
		Example: "  olafctl topology list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			type entry struct {
				Name  string `json:"name"`
				About string `json:"about"`
			}
			var entries []entry
			list := grid{header: []string{"NAME", "ABOUT"}}
			for _, p := range netsim.Presets() {
				entries = append(entries, entry{p[0], p[1]})
				list.add(p[0], p[1])
			}
			if out == formatJSON {
				return writeJSON(env.stdout, struct {
					schema
					Topologies []entry `json:"topologies"`
				}{schema{"olafctl.topologies/v1"}, entries})
			}
			return list.write(env.stdout, out)
		},
	}
	addFormatFlag(cmd, &out)
	return cmd
}

func newTopologyShowCmd(env *environment) *cobra.Command {
	const formatYAML format = "yaml"
	var (
		f   topologyFlags
		out format
		dot bool
	)
	cmd := &cobra.Command{
		Use:   "show [TOPOLOGY.yaml]",
		Short: "Check a topology and show it as tables, as a file, or as a drawing",
		Example: `  olafctl topology show topology.yaml
  olafctl topology show --preset multihop -o yaml > topology.yaml
  olafctl topology show --preset fat-tree --dot | dot -Tsvg > fat-tree.svg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := f.load(cmd, args)
			if err != nil {
				return err
			}
			switch {
			case dot:
				_, err = fmt.Fprint(env.stdout, t.Dot())
			case out == formatYAML:
				var text []byte
				if text, err = t.Text(); err == nil {
					_, err = env.stdout.Write(text)
				}
			case out == formatJSON:
				var doc any
				if doc, err = t.Document(); err == nil {
					err = writeJSON(env.stdout, doc)
				}
			default:
				err = t.WriteText(env.stdout)
			}
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&dot, "dot", false, "draw it for Graphviz")
	addFormatFlag(cmd, &out, formatTable, formatJSON, formatYAML)
	return cmd
}

func newTopologySchemaCmd(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON schema of topology files, for editors",
		Example: "  olafctl topology schema > topology.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := netsim.Schema()
			if err == nil {
				_, err = fmt.Fprintf(env.stdout, "%s\n", text)
			}
			return err
		},
	}
}
