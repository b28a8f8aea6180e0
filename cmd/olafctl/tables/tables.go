// Package tables implements 'olafctl tables' and 'cluster', which read and write match-action tables over P4Runtime.
package tables

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/p4ctl"
)

func New(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tables",
		Short: "Read, write and compare match-action tables over P4Runtime",
	}
	cmd.AddCommand(newTablesShowCmd(env), newTablesGetCmd(env), newTablesDiffCmd(env), newTablesApplyCmd(env),
		newTablesClearCmd(env), newTablesTakeoverCmd(env), newTablesConformanceCmd(env), newTablesP4InfoCmd(env),
		NewCluster(env))
	return cmd
}

func newTablesShowCmd(env *cli.Env) *cobra.Command {
	var (
		out    cli.Format
		device cli.DeviceFlags
		target string
	)
	cmd := &cobra.Command{
		Use:     "show",
		Aliases: []string{"list"},
		Short:   "Print workers, servers, clusters, multicast groups and program entries",
		Long: `Print the tables, read over P4Runtime. Reading needs no election: --target reads a running bench's tables (bench --p4rt). A
software twin starts with empty tables; --after runs an experiment on it first.`,
		Example: `  olafctl tables show --after table1
  olafctl tables show --target 127.0.0.1:9559 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if target != "" {
				tables, err := ReadTarget(cmd.Context(), env, target)
				if err != nil {
					return err
				}
				return printTables(env, tables, out)
			}
			return device.WithTestbed(cmd.Context(), env, func(bed *testbed.Testbed) error {
				tables, err := bed.Tables.Read(cmd.Context())
				if err != nil {
					return err
				}
				return printTables(env, tables, out)
			})
		},
	}
	cmd.Flags().Var((*cli.TargetFlag)(&target), "target",
		"read this P4Runtime server instead of a device: HOST:PORT or unix:PATH")
	cli.AddFormatFlag(cmd, &out)
	device.Add(cmd, env)
	cmd.MarkFlagsMutuallyExclusive("target", "after")
	cmd.MarkFlagsMutuallyExclusive("target", "device")
	return cmd
}

// ReadTarget reads a server's tables without taking part in the election of a primary controller.
func ReadTarget(ctx context.Context, env *cli.Env, target string) (p4ctl.Tables, error) {
	secure, err := env.TLS.Config(env.Now())
	if err != nil {
		return p4ctl.Tables{}, err
	}
	session, err := p4ctl.Dial(ctx, target, p4ctl.Options{ReadOnly: true, TLS: secure, Programs: env.Programs})
	if err != nil {
		return p4ctl.Tables{}, err
	}
	defer session.Close()
	tables, err := session.Read(ctx)
	return tables, cli.ExplainAgent(target, err)
}

// tableDocument is the JSON document olafctl.list/v1 with the table entries, for display. The command tables apply
// reads olafctl.tables/v1 instead.
type tableDocument struct {
	cli.Head
	Hash     string         `json:"sha256"`
	Workers  []workerEntry  `json:"workers"`
	Servers  []string       `json:"servers"`
	Clusters []clusterEntry `json:"clusters"`
	Programs []programEntry `json:"programs,omitempty"` // entries in the tables of switch programs
}

// programEntry is an entry in a table of a switch program.
type programEntry struct {
	Program string            `json:"program"`
	Table   string            `json:"table"`
	Key     map[string]uint32 `json:"key"`
	Action  string            `json:"action"`
	Params  map[string]uint32 `json:"params"`
	Remark  string            `json:"remark,omitempty"` // explains an entry whose numbers alone are unclear
}

type workerEntry struct {
	Address string `json:"address"`
	Cluster int    `json:"cluster"`
	Worker  int    `json:"worker"`
}

type clusterEntry struct {
	Cluster int   `json:"cluster"`
	Group   int   `json:"group"`
	Workers []int `json:"workers"`
}

func describeTables(t p4ctl.Tables) tableDocument {
	d := tableDocument{Head: cli.List("tables"), Hash: t.Hash(), Workers: []workerEntry{}, Servers: []string{},
		Clusters: []clusterEntry{}}
	for _, w := range t.Workers {
		d.Workers = append(d.Workers, workerEntry{w.Address.String(), int(w.Cluster), int(w.ID)})
	}
	for _, s := range t.Servers {
		d.Servers = append(d.Servers, s.String())
	}
	members := map[uint32][]int{}
	for _, g := range t.Groups {
		for _, m := range g.Members {
			members[g.ID] = append(members[g.ID], int(m.Instance))
		}
	}
	for _, c := range t.Clusters {
		d.Clusters = append(d.Clusters, clusterEntry{int(c.ID), int(c.Group), members[c.Group]})
	}
	for _, e := range t.Entries {
		d.Programs = append(d.Programs, programEntry{e.Table.Program.Name, e.Table.Name, mapFields(e.Table.Key, e.Key),
			e.Table.Action, mapFields(e.Table.Params, e.Params), e.Table.Remark(e.Params)})
	}
	return d
}

// mapFields returns a map from field names to values.
func mapFields(fields []program.Field, values []uint32) map[string]uint32 {
	m := make(map[string]uint32, len(fields))
	for i, f := range fields {
		m[f.Name] = values[i]
	}
	return m
}

// joinFields returns the fields and their values as text, such as "cluster 1, worker 2". is is the text between a
// field's name and its value.
func joinFields(fields []program.Field, values []uint32, is string) string {
	words := make([]string, len(fields))
	for i, f := range fields {
		words[i] = fmt.Sprintf("%s%s%d", f.Name, is, values[i])
	}
	return strings.Join(words, ", ")
}

func printTables(env *cli.Env, t p4ctl.Tables, out cli.Format) error {
	d := describeTables(t)
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, d)
	}
	list := cli.Grid{Header: []string{"TABLE", "KEY", "ACTION"}}
	for _, s := range d.Servers {
		list.Add("vnp4_1.servers", s, "set_server()")
	}
	for _, w := range d.Workers {
		list.Add("vnp4_1.workers", w.Address, fmt.Sprintf("set_worker(cluster=%d, worker=%d)", w.Cluster, w.Worker))
	}
	for _, c := range d.Clusters {
		workers := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(c.Workers), "[]")), ",")
		list.Add("vnp4_2.cluster_groups", fmt.Sprintf("cluster %d", c.Cluster),
			fmt.Sprintf("set_group(%d) to workers %s", c.Group, workers))
	}
	for _, e := range t.Entries {
		action := e.Table.Action + "(" + joinFields(e.Table.Params, e.Params, "=") + ")"
		if remark := e.Table.Remark(e.Params); remark != "" {
			action += ", " + remark
		}
		list.Add(e.Table.Name, joinFields(e.Table.Key, e.Key, " "), action)
	}
	if len(list.Rows) == 0 {
		fmt.Fprintln(env.Stderr, "the tables are empty; 'olafctl tables show --after table1' shows what a bench writes")
	}
	return list.Write(env, out)
}
