package simulate

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/netsim"
)

func NewTopology(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topology",
		Short: "List, check and draw networks for simulate",
	}
	cmd.AddCommand(newTopologyListCmd(env), newTopologyShowCmd(env), newTopologySchemaCmd(env))
	return cmd
}

func newTopologyListCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the built-in networks",
		Example: "  olafctl topology list",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return listTopologies(env, out) },
	}
	cli.AddFormatFlag(cmd, &out)
	return cmd
}

// listTopologies prints the built-in networks as a table, or as JSON.
func listTopologies(env *cli.Env, out cli.Format) error {
	type entry struct {
		Name  string `json:"name"`
		About string `json:"about"`
	}
	var entries []entry
	list := cli.Grid{Header: []string{"NAME", "ABOUT"}}
	for _, p := range allPresets() {
		entries = append(entries, entry{p[0], p[1]})
		list.Add(p[0], p[1])
	}
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			Topologies []entry `json:"topologies"`
		}{cli.List("topologies"), entries})
	}
	return list.Write(env, out)
}

// allPresets returns the names and descriptions of all networks that simulate accepts. Networks of open-loop workers
// can also be printed with topology show.
func allPresets() [][2]string {
	all := netsim.Presets()
	for _, p := range append(jobPresets(), *sharedCluster()) {
		all = append(all, [2]string{p.name, p.about})
	}
	return all
}

func newTopologyShowCmd(env *cli.Env) *cobra.Command {
	var (
		f   topologyFlags
		out cli.Format
		dot bool
	)
	f.waits.set = env.Systems
	cmd := &cobra.Command{
		Use:   "show [TOPOLOGY.yaml]",
		Short: "Check a topology and print it as tables, YAML or a Graphviz drawing",
		Example: `  olafctl topology show topology.yaml
  olafctl topology show --preset multihop -o yaml > topology.yaml
  olafctl topology show --preset fat-tree --dot | dot -Tsvg > fat-tree.svg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := f.loadTopology(cmd, args)
			if err != nil {
				return err
			}
			switch {
			case dot:
				_, err = fmt.Fprint(env.Stdout, t.Dot())
			case out == cli.YAML:
				var text []byte
				if text, err = t.Text(); err == nil {
					_, err = env.Stdout.Write(text)
				}
			case out == cli.JSON:
				var doc any
				if doc, err = t.Document(); err == nil {
					err = cli.WriteJSON(env.Stdout, doc)
				}
			default:
				err = t.WriteText(env.Stdout, env.View(false).Columns())
			}
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&dot, "dot", false, "print a Graphviz drawing")
	cli.AddFormatFlag(cmd, &out, cli.Table, cli.JSON, cli.YAML)
	return cmd
}

func newTopologySchemaCmd(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON schema of topology files, for editors",
		Example: "  olafctl topology schema > topology.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return cli.PrintText(env, func() ([]byte, error) { return netsim.TopologyJSONSchema(env.Systems) })
		},
	}
}
