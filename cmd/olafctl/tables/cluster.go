package tables

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/p4ctl"
)

func NewCluster(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Add, move and remove workers and clusters while traffic runs",
		Long: `Group workers into clusters (training jobs) while traffic runs. A cluster consists of its workers' entries in VNP4-1, an entry
in VNP4-2 and a multicast group. A change of up to 100 updates is one batch that is applied fully or not at all.`,
	}
	cmd.AddCommand(newClusterListCmd(env), newClusterAddCmd(env), newClusterMoveCmd(env), newClusterRemoveCmd(env))
	return cmd
}

func newClusterListCmd(env *cli.Env) *cobra.Command {
	var f cli.ControllerFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List clusters and their workers",
		Example: "  olafctl tables cluster list --target 127.0.0.1:9559",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tables, err := ReadTarget(cmd.Context(), env, f.Target)
			if err != nil {
				return err
			}
			return printClusters(env, tables, f.Out)
		},
	}
	f.AddTarget(cmd)
	cli.AddFormatFlag(cmd, &f.Out)
	return cmd
}

// listedCluster is a row in the list of clusters.
type listedCluster struct {
	Cluster int           `json:"cluster"`
	Group   int           `json:"group"` // 0: no group, so ACKs to the cluster are dropped
	Workers []workerEntry `json:"workers"`
}

func clustersOf(t p4ctl.Tables) []listedCluster {
	rows := map[olaf.ClusterID]*listedCluster{}
	row := func(c olaf.ClusterID) *listedCluster {
		if rows[c] == nil {
			rows[c] = &listedCluster{Cluster: int(c), Workers: []workerEntry{}}
		}
		return rows[c]
	}
	for _, c := range t.Clusters {
		row(c.ID).Group = int(c.Group)
	}
	for _, w := range t.Workers {
		r := row(w.Cluster)
		r.Workers = append(r.Workers, workerEntry{w.Address.String(), int(w.Cluster), int(w.ID)})
	}
	list := []listedCluster{}
	for _, r := range rows {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b listedCluster) int { return a.Cluster - b.Cluster })
	return list
}

func printClusters(env *cli.Env, t p4ctl.Tables, out cli.Format) error {
	clusters := clustersOf(t)
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			Clusters []listedCluster `json:"clusters"`
		}{cli.List("clusters"), clusters})
	}
	list := cli.Grid{Header: []string{"CLUSTER", "GROUP", "WORKERS", "ADDRESSES"}}
	for _, c := range clusters {
		var ids, addresses []string
		for _, w := range c.Workers {
			ids, addresses = append(ids, fmt.Sprint(w.Worker)), append(addresses, w.Address)
		}
		list.Add(fmt.Sprint(c.Cluster), fmt.Sprint(c.Group), cli.OrDash(strings.Join(ids, " ")),
			cli.OrDash(strings.Join(addresses, " ")))
	}
	return list.Write(env, out)
}

func newClusterAddCmd(env *cli.Env) *cobra.Command {
	var (
		f       cli.ControllerFlags
		cluster uint16
		port    uint32
	)
	cmd := &cobra.Command{
		Use:     "add ADDRESS=WORKER…",
		Short:   "Add workers to a cluster and its multicast group",
		Example: "  olafctl tables cluster add --cluster 9 10.1.0.27=27 10.1.0.28=28",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			workers := make([]p4ctl.Worker, len(args))
			for i, arg := range args {
				address, id, _ := strings.Cut(arg, "=")
				a, err := ParseAddress(address)
				if err != nil {
					return err
				}
				n, err := strconv.ParseUint(id, 10, 16)
				if err != nil {
					return cli.UsageError("%q: write ADDRESS=WORKER, such as 10.1.0.27=27", arg)
				}
				workers[i] = p4ctl.Worker{Address: a, Cluster: olaf.ClusterID(cluster), ID: olaf.WorkerID(n)}
			}
			return f.ChangeTables(cmd.Context(), env,
				func(t p4ctl.Tables) (p4ctl.Tables, error) { return t.Add(port, workers...) })
		},
	}
	cmd.Flags().Uint16Var(&cluster, "cluster", 0, "cluster to join")
	cmd.Flags().Uint32Var(&port, "port", 1, "the workers' shell port")
	_ = cmd.MarkFlagRequired("cluster")
	f.AddWrite(cmd)
	return cmd
}

func ParseAddress(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is4() {
		return a, cli.UsageError("%q is no IPv4 address", text)
	}
	return a, nil
}

func parseAddresses(args []string) ([]netip.Addr, error) {
	addresses := make([]netip.Addr, len(args))
	for i, arg := range args {
		var err error
		if addresses[i], err = ParseAddress(arg); err != nil {
			return nil, err
		}
	}
	return addresses, nil
}

func newClusterMoveCmd(env *cli.Env) *cobra.Command {
	var (
		f  cli.ControllerFlags
		to uint16
	)
	cmd := &cobra.Command{
		Use:   "move ADDRESS…",
		Short: "Move workers to another cluster and its multicast group",
		Example: `  olafctl tables cluster move --to 4 10.1.0.0 10.1.0.1 --dry-run
  olafctl tables cluster move --to 4 10.1.0.0`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			addresses, err := parseAddresses(args)
			if err != nil {
				return err
			}
			return f.ChangeTables(cmd.Context(), env,
				func(t p4ctl.Tables) (p4ctl.Tables, error) { return t.Move(olaf.ClusterID(to), addresses...) })
		},
	}
	cmd.Flags().Uint16Var(&to, "to", 0, "cluster to join")
	_ = cmd.MarkFlagRequired("to")
	f.AddWrite(cmd)
	f.AddConfirm(cmd)
	return cmd
}

func newClusterRemoveCmd(env *cli.Env) *cobra.Command {
	var (
		f       cli.ControllerFlags
		cluster int
	)
	cmd := &cobra.Command{
		Use:   "rm [ADDRESS…]",
		Short: "Remove workers, or a cluster with its multicast group",
		Example: `  olafctl tables cluster rm 10.1.0.0
  olafctl tables cluster rm --cluster 9`,
		RunE: func(cmd *cobra.Command, args []string) error {
			addresses, err := parseAddresses(args)
			if err != nil {
				return err
			}
			if (cluster < 0) == (len(args) == 0) || cluster > 65535 {
				return cli.UsageError("name either workers by their addresses or a cluster of 0 to 65535 with " +
					"--cluster")
			}
			return f.ChangeTables(cmd.Context(), env, func(t p4ctl.Tables) (p4ctl.Tables, error) {
				if cluster >= 0 {
					return t.RemoveCluster(olaf.ClusterID(cluster))
				}
				return t.Remove(addresses...)
			})
		},
	}
	cmd.Flags().IntVar(&cluster, "cluster", -1, "cluster to remove with all its workers")
	f.AddWrite(cmd)
	f.AddConfirm(cmd)
	return cmd
}
