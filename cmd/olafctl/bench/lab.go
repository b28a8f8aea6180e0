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

// isLab says whether the name of a device is that of a testbed file.
func isLab(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// settleLab lets a testbed file with a queue, named as xdp:FILE, stand for the flags that say the same; those that were given stay.
func (f *Flags) settleLab(cmd *cobra.Command, env *cli.Env) error {
	device, name, err := env.Devices.Of(f.Device)
	if err != nil || !isLab(name) || !device.Can(testbed.AddsModels) {
		return err // of a device whose files are something else, or none
	}
	if f.file.path != "" {
		return cli.UsageError("--file %s and --device %s: each says by itself what to run; take one", f.file.path, f.Device)
	}
	_, p, err := testbedcmd.ReadLab(env, name)
	if err != nil {
		return err
	}
	if p.Switch == nil {
		return cli.UsageError("%s adds models up, and queues nothing; --system %s benches it", name, strings.Join(onServers(env.Systems), ", "))
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
	return nil
}

// labNotes say what a bench on a testbed does otherwise than the testbed's own workers.
func labNotes(name string, p *lab.Plan, wires *testbed.Wires) []string {
	notes := p.Joined()
	if wires.Workers != nil && len(p.Workers()) > 1 {
		notes = append(notes, "interface "+wires.Workers.Host+" sends the updates of all workers")
	}
	for _, node := range p.Workers() {
		if n := &p.Nodes[node]; n.TC > 0 {
			return append(notes, fmt.Sprintf("%s: transmission control is what workers as programs have ('olafctl testbed up'); a bench's senders send every update", name))
		}
	}
	return notes
}

// labWires are the cables around the switch of a testbed that join interfaces of this machine. A bench sends all updates by one cable.
func labWires(name string, p *lab.Plan) (w testbed.Wires, err error) {
	sends := ""
	for _, one := range p.HostWires() {
		wire := &testbed.Wire{Host: one.Host, Hub: one.Hub, Virtual: one.Virtual}
		switch host := &p.Nodes[one.Node]; {
		case host.Role == lab.Server:
			w.Server = wire
		case w.Workers != nil:
			return w, cli.UsageError("%s: the cables of %s and %s join interfaces, and a bench of a queue sends the updates of all workers by one cable; leave the interfaces of one out", name, sends, host.Name)
		default:
			sends, w.Workers = host.Name, wire
		}
	}
	return w, nil
}

// allHere refuses a testbed with ends that are not of this machine, and says what can be done instead.
func allHere(name string, p *lab.Plan) error {
	for i := range p.Nodes {
		n := &p.Nodes[i]
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
		return cli.UsageError("%s: %s %s is behind interface %s, and a bench plays all ends itself; 'olafctl testbed up %[1]s' takes it, with this where %[3]s is: %[5]s; if its own interface is one of this machine too, write both into the link from %[6]s to %[7]s: 'interfaces: [%[8]s]'",
			name, n.Role, n.Name, n.Device, p.HostCommand(i), child, parent, ends)
	}
	return nil
}

// said is a flag with its value.
type said struct{ flag, value string }

// labFlags are the flags that a testbed with a queue stands for. Workers that differ, or send nothing, are no traffic of a bench.
func labFlags(name string, p *lab.Plan) ([]said, error) {
	if err := allHere(name, p); err != nil {
		return nil, err
	}
	workers := p.Workers()
	first := &p.Nodes[workers[0]]
	for _, node := range workers {
		switch n := &p.Nodes[node]; {
		case n.Rate == 0:
			return nil, cli.UsageError("%s: worker %s says no rate, so that a bench does not know what it sends", name, n.Name)
		case n.Rate != first.Rate:
			return nil, cli.UsageError("%s: workers %s and %s offer %v and %v; those of a bench offer as much each", name, first.Name, n.Name, first.Rate, n.Rate)
		}
	}
	all := first.Rate * olaf.Rate(len(workers))
	return []said{
		{"system", p.Switch.System}, {"workers", strconv.Itoa(len(workers))}, {"clusters", strconv.Itoa(p.Switch.Clusters)}, {"slots", strconv.Itoa(p.Switch.Slots)},
		{"rate", all.String()}, {"line-rate", max(all, p.Switch.OutRate).String()}, {"burst", "1"}, {"out-rate", p.Switch.OutRate.String()}, {"size", olaf.FrameSize(p.Lanes).String()},
	}, nil
}
