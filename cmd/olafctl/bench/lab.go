package bench

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	testbedcmd "github.com/olafctl/olaf/cmd/olafctl/testbed"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
)

// isLab reports whether a device name refers to a testbed file.
func isLab(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// settleLab sets the flags that are equivalent to a testbed file with a queue, given as xdp:FILE. It does not change
// flags from the command line.
func (f *Flags) settleLab(cmd *cobra.Command, env *cli.Env) error {
	device, name, err := env.Devices.Lookup(f.Device)
	if err != nil || !isLab(name) || !device.Can(testbed.AddsModels) {
		return err // a device that interprets files differently or takes none
	}
	if f.file.path != "" {
		return cli.UsageError("--file %s and --device %s each describe what to run; use one of them", f.file.path,
			f.Device)
	}
	_, p, err := testbedcmd.ReadLab(env, name)
	if err != nil {
		return err
	}
	if p.Switch == nil {
		return cli.UsageError("%s sums models and has no queue; use --system %s", name,
			strings.Join(serverSystems(env.Systems), ", "))
	}
	says, err := labFlags(name, p)
	if err != nil {
		return err
	}
	for _, s := range says {
		if flag := cmd.Flags().Lookup(s.flag); !flag.Changed && !(s.flag == "system" && cmd.Flags().Changed("queue")) {
			if err := cmd.Flags().Set(s.flag, s.value); err != nil {
				return err
			}
		}
	}
	f.Device = device.Prefix
	if p.Switch.Mode != lab.Native {
		f.Device += p.Switch.Mode
	}
	if f.wires, err = labWires(name, p); err != nil {
		return err
	}
	f.notes = append(f.notes, labNotes(name, p, &f.wires)...)
	return testbedcmd.CheckReserved(env, p)
}

// labNotes returns notes on the differences between a bench and the testbed's own workers.
func labNotes(name string, p *lab.Plan, wires *testbed.Wires) []string {
	notes := p.LocalCables()
	if wires.Workers != nil && len(p.Workers()) > 1 {
		notes = append(notes, "interface "+wires.Workers.Host+" sends the updates of all workers")
	}
	for _, node := range p.Workers() {
		if n := &p.Nodes[node]; n.TC > 0 {
			return append(notes, fmt.Sprintf("%s: only workers as programs have transmission control ('olafctl "+
				"testbed up'); a bench's senders send every update", name))
		}
	}
	return notes
}

// labWires returns the cables of a testbed's switch that connect to interfaces of this machine. A bench sends all
// updates over a single cable.
func labWires(name string, p *lab.Plan) (w testbed.Wires, err error) {
	sends := ""
	for _, one := range p.HostWires() {
		wire := &testbed.Wire{Host: one.Host, Hub: one.Hub, Virtual: one.Virtual}
		switch host := &p.Nodes[one.Node]; {
		case host.Role == lab.Server:
			w.Server = wire
		case w.Workers != nil:
			return w, cli.UsageError("%s: the cables of %s and %s both connect interfaces, but the bench of a queue "+
				"sends all updates over one cable; leave out the interfaces of one", name, sends, host.Name)
		default:
			sends, w.Workers = host.Name, wire
		}
	}
	return w, nil
}

// requireLocal rejects a testbed with nodes on other machines, and names the alternatives.
func requireLocal(name string, p *lab.Plan) error {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Device == "" && n.Host != "" {
			return cli.UsageError("%s: %s %s is on host %s, but a bench runs all ends on this machine; use 'olafctl testbed up %[1]s'", name,
				n.Role, n.Name, n.Host)
		}
		if n.Device == "" {
			continue
		}
		cable := n.Up
		if cable < 0 {
			cable = n.Down[0]
		}
		child, parent := p.Nodes[p.Cables[cable].Child].Name, p.Nodes[p.Cables[cable].Parent].Name
		ends := "ITS, " + n.Device
		if n.Name == parent {
			ends = n.Device + ", ITS"
		}
		return cli.UsageError("%s: %s %s is behind interface %s, but a bench runs all ends itself; use 'olafctl "+
			"testbed up %[1]s' with this on the machine of %[3]s: %[5]s; if its own interface is on this machine "+
			"too, write both into the link from %[6]s to %[7]s: 'interfaces: [%[8]s]'",
			name, n.Role, n.Name, n.Device, p.HostCommand(i), child, parent, ends)
	}
	return nil
}

// setting is a flag and its value.
type setting struct{ flag, value string }

// labFlags returns the flags that are equivalent to a testbed with a queue. It rejects workers that have no rate or
// different rates, because a bench cannot generate their traffic.
func labFlags(name string, p *lab.Plan) ([]setting, error) {
	if err := requireLocal(name, p); err != nil {
		return nil, err
	}
	workers := p.Workers()
	first := &p.Nodes[workers[0]]
	for _, node := range workers {
		switch n := &p.Nodes[node]; {
		case n.Rate == 0:
			return nil, cli.UsageError("%s: worker %s has no rate, so a bench does not know what it sends", name,
				n.Name)
		case n.Rate != first.Rate:
			return nil, cli.UsageError("%s: workers %s and %s offer %v and %v; the workers of a bench must offer "+
				"the same rate", name, first.Name, n.Name, first.Rate, n.Rate)
		}
	}
	all := first.Rate * olaf.Rate(len(workers))
	return []setting{
		{"system", p.Switch.System}, {"workers", strconv.Itoa(len(workers))},
		{"clusters", strconv.Itoa(p.Switch.Clusters)}, {"slots", strconv.Itoa(p.Switch.Slots)},
		{"rate", all.String()}, {"line-rate", max(all, p.Switch.OutRate).String()}, {"burst", "1"},
		{"out-rate", p.Switch.OutRate.String()}, {"size", olaf.FrameSize(p.Lanes).String()},
	}, nil
}
