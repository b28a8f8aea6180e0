package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/sched"
	"github.com/olafctl/olaf/experiments/sched/play"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/p4ctl"
)

// applyFlags are the flags of schedule apply.
type applyFlags struct {
	controller  cli.ControllerFlags
	device      string
	jobs, unit  string
	slot, hosts int
	traffic     bool
	groups      bool // write only groups
}

func newScheduleApplyCmd(env *cli.Env) *cobra.Command {
	f := &applyFlags{controller: cli.ControllerFlags{Atomic: true}}
	cmd := &cobra.Command{
		Use:   "apply PLAN.json",
		Short: "Write one unit's plan to a switch's tables, all or nothing",
		Long: `Write one slot of a plan to a unit's switch: each job's hosts go into its cluster and multicast group, and its workers and
aggregators into the tables p4inc.jobs and p4inc.segments (--groups leaves these out). All changes are one P4Runtime batch,
applied fully or not at all. --traffic applies every slot while the device sends, and checks each frame against the tables
before and after. Exit code 4: a frame matched neither.`,
		Example: `  olafctl schedule apply plan.json --unit r1 -d twin: --hosts 64
  olafctl schedule apply plan.json --unit r1 -d twin: --hosts 64 --traffic
  olafctl schedule apply plan.json --unit r1 --slot 3 -d grpc://127.0.0.1:9559 --for jobs.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, env, args[0]) },
	}
	f.controller.AddWrite(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.device, "device", "d", "", "the unit's switch: an agent's address, or a device such as twin:")
	flags.StringVar(&f.unit, "unit", "", "unit whose switch to write; optional if only one aggregates")
	flags.IntVar(&f.slot, "slot", 0, "slot of the plan to apply")
	flags.IntVar(&f.hosts, "hosts", 0, "if the tables are empty, invent this many hosts, one per port")
	flags.StringVar(&f.jobs, "for", "", "jobs file to check the plan against")
	flags.BoolVar(&f.groups, "groups", false,
		"write only clusters and multicast groups, for switches without P4INC's tables")
	flags.BoolVar(&f.traffic, "traffic", false, "apply all slots to the device under traffic and check every frame")
	return cmd
}

func (f *applyFlags) run(cmd *cobra.Command, env *cli.Env, file string) (err error) {
	plan, err := ReadPlan(file)
	if err != nil {
		return err
	}
	if f.jobs != "" {
		if err := checkPlanFor(plan, file, f.jobs); err != nil {
			return err
		}
	}
	if f.unit == "" {
		if f.unit, err = findUnit(plan); err != nil {
			return err
		}
	}
	if f.traffic {
		return f.writeUnderTraffic(cmd, env, plan)
	}
	closeDevice, err := f.openTarget(cmd, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDevice()) }()
	var orders *play.Orders
	err = f.controller.ChangeTables(cmd.Context(), env, func(actual p4ctl.Tables) (p4ctl.Tables, error) {
		if orders, err = f.planOrders(plan, actual); err != nil {
			return actual, err
		}
		return orders.Tables, nil
	})
	if err != nil || f.controller.Out == cli.JSON {
		return err
	}
	for _, s := range orders.Segments {
		fmt.Fprintf(env.Stdout, "%s slot %d: %s is cluster %d, %d hosts, aggregators %d to %d\n", f.unit, f.slot, s.Job,
			s.Cluster, len(s.Hosts), s.First, s.First+s.Size-1)
	}
	fmt.Fprintf(env.Stdout, "%s slot %d: %d jobs are aggregated, %d hosts are idle\n", f.unit, f.slot,
		len(orders.Segments), orders.Idle)
	return nil
}

// findUnit returns the plan's only unit with an aggregating switch. It is an error if there are none or several.
func findUnit(plan *sched.Plan) (string, error) {
	var units []string
	for i := range plan.Problem.Units {
		if u := &plan.Problem.Units[i]; u.INC > 0 {
			units = append(units, u.Name)
		}
	}
	if len(units) != 1 {
		return "", cli.UsageError("--unit: name the switch's unit: %s", strings.Join(units, ", "))
	}
	return units[0], nil
}

// planOrders returns the entries to write to the unit's switch for the slot. actual contains the switch's current
// tables.
func (f *applyFlags) planOrders(plan *sched.Plan, actual p4ctl.Tables) (*play.Orders, error) {
	if len(actual.Workers) == 0 && f.hosts > 0 {
		made, err := f.inventHosts(plan)
		if err != nil {
			return nil, err
		}
		actual = made
	}
	orders, err := play.PlanOrders(plan, f.unit, f.slot, actual)
	if err == nil && f.groups {
		orders.Tables.Entries = actual.Entries
	}
	return orders, err
}

// inventHosts returns tables with invented hosts in the unit. --hosts sets their number.
func (f *applyFlags) inventHosts(plan *sched.Plan) (p4ctl.Tables, error) {
	at := slices.IndexFunc(plan.Problem.Units, func(u sched.Unit) bool { return u.Name == f.unit })
	return play.MakeUpHosts(max(at, 0), f.hosts)
}

// writeUnderTraffic writes the tables for one slot after another to a device while frames cross it.
func (f *applyFlags) writeUnderTraffic(cmd *cobra.Command, env *cli.Env, plan *sched.Plan) (err error) {
	for _, flag := range []string{"target", "election-id", "dry-run", "groups"} {
		if cmd.Flags().Changed(flag) {
			return cli.UsageError("--%s: --traffic opens its own device; use only -d", flag)
		}
	}
	if f.hosts == 0 {
		return cli.UsageError("--hosts: --traffic needs a number of made-up hosts, such as 64")
	}
	access, err := env.Access()
	if err != nil {
		return err
	}
	if err := access.Devices.Check(f.device, testbed.VirtualTime|testbed.Records); err != nil {
		return err
	}
	hosts, err := f.inventHosts(plan)
	if err != nil {
		return err
	}
	bed, err := testbed.OpenTestbed(cmd.Context(), f.device, testbed.OpenOptions{Access: access, Wire: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	seen, err := play.UnderTraffic(cmd.Context(), bed, plan, f.unit, f.slot, hosts)
	if err != nil {
		return err
	}
	if f.controller.Out == cli.JSON {
		err = cli.WriteJSON(env.Stdout, struct {
			cli.Head
			*play.Traffic
		}{cli.Check("traffic"), seen})
	} else {
		err = writeTraffic(env, seen)
	}
	if err == nil && seen.Mixed > 0 {
		err = &cli.Exit{Kind: olaf.Missed,
			Err: fmt.Errorf("%d frames and answers met tables of no slot, or old tables after new ones; %s", seen.Mixed,
				seen.First)}
	}
	return err
}

// writeTraffic prints how many frames were processed with the tables before and after each change.
func writeTraffic(env *cli.Env, seen *play.Traffic) error {
	fmt.Fprintf(env.Stdout, "%s under traffic: %d frames of %d hosts and %d copies of answers left the switch, %d "+
		"were lost; %d found a mixture of tables\n\n",
		seen.Unit, seen.Frames, seen.Hosts, seen.Copies, seen.Lost, seen.Mixed)
	list := &cli.Grid{Header: []string{"SLOT", "CHANGES", "BATCH", "FOUND BEFORE", "FOUND AFTER"}}
	for _, t := range seen.Batches {
		batch := "done"
		if t.Refused {
			batch = "refused"
		}
		list.Add(strconv.Itoa(t.Slot), strconv.Itoa(t.Changes), batch, strconv.Itoa(t.Before), strconv.Itoa(t.After))
	}
	return list.Write(env, cli.Table)
}

// openTarget sets --target to the address of the device's agent. If the device has no agent, this process serves the
// device on a private socket.
func (f *applyFlags) openTarget(cmd *cobra.Command, env *cli.Env) (closeDevice func() error, err error) {
	nothing := func() error { return nil }
	if f.device == "" {
		return nothing, nil
	}
	if cmd.Flags().Changed("target") {
		return nil, cli.UsageError("-d and --target name the same switch; use one of them")
	}
	access, err := env.Access()
	if err != nil {
		return nil, err
	}
	f.controller.Target, closeDevice, err = testbed.ReachAgent(cmd.Context(), f.device, access)
	return closeDevice, err
}
