// Package system implements 'olafctl system' and 'program', which describe published systems and their switch programs.
package system

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	simulatecmd "github.com/olafctl/olaf/cmd/olafctl/simulate"
	testbedcmd "github.com/olafctl/olaf/cmd/olafctl/testbed"
	traincmd "github.com/olafctl/olaf/cmd/olafctl/train"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
)

func New(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "system",
		Short: "List and describe the published systems and their switch programs",
		Long: `A system is a published way to aggregate in the network: a switch program, a queueing discipline, and the behaviour of
workers and servers. --system selects one in every command that runs something.`,
	}
	cmd.AddCommand(newSystemListCmd(env), newSystemShowCmd(env), NewProgram(env))
	return cmd
}

// place is a place where a system may be able to run: a device, the simulator, or training.
type place struct {
	Name   string `json:"place"`
	Can    string `json:"can"`           // empty if it cannot run there
	Reason string `json:"why,omitempty"` // why it cannot
	// On lists the devices on which training also runs as processes with real packets.
	On []string `json:"on,omitempty"`
}

// listPlaces returns all places. Each place states whether the system can run there or why it cannot.
func listPlaces(env *cli.Env, s *system.System) []place {
	var places []place
	for i := range env.Devices {
		places = append(places, placeOnDevice(env.Devices, &env.Devices[i], s))
	}
	simulate := place{Name: "simulate", Can: "networks of switches, workers that do not wait"}
	if len(s.Modes) > 0 {
		simulate.Can = "--preset " + strings.Join(simulatecmd.JobPresetNames(), "|") + ", modes " +
			strings.Join(s.ModeNames(), " and ")
		if s.Rises() {
			simulate.Can = "networks of switches, and " + simulate.Can
		}
	}
	train := place{Name: "train", Can: "LunarLander"}
	if !slices.Contains(traincmd.TrainSystems(env.Systems), s.Name) {
		train.Can, train.Reason = "", "its integers need gradients to be scaled"
	} else if train.On = trainingDevices(env, s); len(train.On) > 0 {
		train.Can += "; with processes and real packets by -d " + strings.Join(train.On, " or ")
	}
	return append(places, simulate, train)
}

// trainingDevices returns the devices on which a system's workers and server can run as processes that train.
func trainingDevices(env *cli.Env, s *system.System) []string {
	needs := testbed.HasHosts
	if s.OnServers {
		needs |= testbed.AddsModels
	}
	if !slices.Contains(testbedcmd.EndpointSystems(), s.Name) {
		return nil
	}
	return env.Devices.With(needs).Prefixes()
}

func placeOnDevice(all testbed.Devices, d *testbed.Device, s *system.System) place {
	p := place{Name: d.Prefix, Can: "bench"}
	switch {
	case !d.Can(testbed.HasTables):
		p.Can, p.Reason = "", "it has no tables"
	case s.OnServers && d.Can(testbed.AddsModels):
		p.Can = "bench, whole models on servers of a testbed"
	case s.OnServers && d.Can(testbed.BenchesModels):
		p.Can = "bench, whole models on a server in user space"
	case s.OnServers:
		p.Can, p.Reason = "", "there are no servers that add models up"
	case !s.Open() && !d.Can(testbed.ClosesLoop):
		p.Can, p.Reason = "", "it can't "+testbed.ClosesLoop.String()
	case s.Program != nil && !d.Builds(s.Program):
		p.Can, p.Reason = "", "it is not built with the program"
	case !s.Open() && !s.HasFrames() && !d.Can(testbed.TakesLengths):
		p.Can, p.Reason = "", "its packets have no frames, and wires there are real"
	case !s.Open() || s.Program != nil && cli.WaitsThere(d, s):
		p.Can = "bench, workers that wait for answers"
		if !d.Can(testbed.VirtualTime) {
			p.Can += ", in real time"
		}
	case s.Program != nil:
		p.Can = "bench, workers that do not wait, --h"
		if s.CanLoop() && d.Can(testbed.ClosesLoop) {
			p.Can += ", and that wait, --mode " + strings.Join(s.ModeNames(), "|")
		}
		p.Can += remarkAgents(all, d, s)
	}
	return p
}

// remarkAgents returns a remark that lists the devices on which the system cannot run if an agent serves them. It
// returns "" if there are none or if d is not an agent.
func remarkAgents(all testbed.Devices, d *testbed.Device, s *system.System) string {
	if d.Lend != nil {
		return ""
	}
	waits := slices.DeleteFunc(all.LendableOnes(), func(row testbed.Device) bool { return !cli.WaitsThere(&row, s) })
	if len(waits) == 0 {
		return ""
	}
	return "; an agent of " + strings.Join(waits.Prefixes(), " or ") + " can't " + testbed.NeitherWay.String()
}

type systemDocument struct {
	Name       string         `json:"name"`
	Title      string         `json:"title"`
	About      string         `json:"about"`
	Program    string         `json:"program,omitempty"`
	Discipline string         `json:"discipline"`
	Modes      []modeDocument `json:"modes"`
	Places     []place        `json:"places"`
}

type modeDocument struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Options []string `json:"options"`
}

func describeSystem(env *cli.Env, s *system.System) systemDocument {
	d := systemDocument{Name: s.Name, Title: s.Title, About: s.About, Discipline: s.Discipline, Modes: []modeDocument{},
		Places: listPlaces(env, s)}
	if s.Program != nil {
		d.Program = s.Program.Name
	}
	for i := range s.Modes {
		options := s.Modes[i].Takes
		if options == nil {
			options = []string{}
		}
		d.Modes = append(d.Modes, modeDocument{s.Modes[i].Name, s.Modes[i].About, options})
	}
	return d
}

// programOf returns the name of the system's switch program, or "pass" for a switch that only forwards.
func (d *systemDocument) programOf() string {
	return cmp.Or(d.Program, "pass")
}

func newSystemListCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the systems and where each runs",
		Example: "  olafctl system list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			set := env.Systems
			documents := make([]systemDocument, len(set))
			list := cli.Grid{Header: []string{"SYSTEM", "PROGRAM", "PORTS", "MODES", "RUNS ON"}}
			for i := range set {
				d := describeSystem(env, &set[i])
				documents[i] = d
				modes := set[i].ModeNames()
				if set[i].Open() {
					modes = append([]string{"open"}, modes...)
				}
				list.Add(d.Name, d.programOf(), d.Discipline, strings.Join(modes, " "),
					strings.Join(runnablePlaces(d.Places), " "))
			}
			if out == cli.JSON {
				return cli.WriteJSON(env.Stdout, struct {
					cli.Head
					Systems []systemDocument `json:"systems"`
				}{cli.List("systems"), documents})
			}
			return list.Write(env, out)
		},
	}
	cli.AddFormatFlag(cmd, &out)
	return cmd
}

// runnablePlaces returns the names of the places where a system can run.
func runnablePlaces(places []place) []string {
	var names []string
	for _, p := range places {
		if p.Can != "" {
			name := p.Name
			if len(p.On) > 0 {
				name += "(" + strings.Join(p.On, ",") + ")"
			}
			names = append(names, name)
		}
	}
	return names
}

func newSystemShowCmd(env *cli.Env) *cobra.Command {
	var out cli.Format
	cmd := &cobra.Command{
		Use:               "show SYSTEM",
		Short:             "Describe a system: parts, modes, options, and where it runs",
		Example:           "  olafctl system show iswitch",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteArgs(env.Systems.Names),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := env.Systems.Find(args[0])
			if err != nil {
				return err
			}
			d := describeSystem(env, s)
			if out == cli.JSON {
				return cli.WriteJSON(env.Stdout, struct {
					cli.Head
					systemDocument
				}{cli.Info("system"), d})
			}
			return d.write(env.Stdout)
		},
	}
	cli.AddFormatFlag(cmd, &out, cli.Table, cli.JSON)
	return cmd
}

func (d *systemDocument) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "system\t%s, %s: %s\n", d.Name, d.Title, d.About)
	fmt.Fprintf(tw, "program\t%s\n", d.programOf())
	fmt.Fprintf(tw, "ports\t%s\n", d.Discipline)
	for _, m := range d.Modes {
		fmt.Fprintf(tw, "mode %s\t%s\n", m.Name, m.About)
		if len(m.Options) > 0 {
			fmt.Fprintf(tw, "\ttakes --%s\n", strings.Join(m.Options, " --"))
		}
	}
	for _, p := range d.Places {
		says := cmp.Or(p.Can, "no: "+p.Reason)
		fmt.Fprintf(tw, "%s\t%s\n", p.Name, says)
	}
	return tw.Flush()
}
