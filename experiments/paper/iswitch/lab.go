package iswitch

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	program "github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// Model is one of the paper's four training workloads, described by what the network transmits and by the computing
// times.
type Model struct {
	Name, Title string
	Values      int // float32 in a gradient, from the layer sizes of the implementations named in the paper
	Messages    int // per gradient: DDPG has two networks
	// Compute is the time for a gradient: the update interval of asynchronous iSwitch (Table 5), where computation
	// hides everything else.
	Compute olaf.Duration
	// Fitted is set if the hosts' costs were fitted to this model's times; the other models are predictions.
	Fitted bool
	// Iterations in the paper's training runs: synchronous, and asynchronous with a server and with iSwitch (Tables 4
	// and 5).
	Sync, AsyncPS, AsyncISwitch float64
}

// Models returns the models in Tables 3 to 5 of the paper.
func Models() []Model {
	return []Model{
		{"dqn", "DQN", 6_724_248 / 4, 1, micro(12_070), true, 1.40e6, 6.30e6, 3.50e6},
		{"a2c", "A2C", 3_465_756 / 4, 1, micro(12_530), false, 2.00e5, 1.20e6, 4.00e5},
		{"ppo", "PPO", 40_980 / 4, 1, micro(7_990), true, 8.00e4, 5.40e5, 1.20e5},
		{"ddpg", "DDPG", 161_300 / 4, 2, micro(14_890), false, 7.50e5, 3.00e6, 1.50e6},
	}
}

// FindModel returns the model with the given name. The error matches system.ErrOptions and lists all models.
func FindModel(name string) (Model, error) {
	var names []string
	for _, m := range Models() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Model{}, fmt.Errorf("%w: no model is called %q; there are %s", system.ErrOptions, name, strings.Join(names, ", "))
}

// Basis returns a sentence about the basis of the model's times on the cluster from Lab: whether they are fitted,
// predicted, or based on links and switches alone.
func (m *Model) Basis(ideal bool) string {
	switch {
	case ideal:
		return "Basis: only links and switches; computing times are the paper's (Table 5). Nothing is fitted."
	case m.Fitted:
		return "Basis: calibrated: the hosts' time for a message was fitted to DQN and PPO (iSwitch, Tables 4 " +
			"and 5)."
	}
	return "Basis: predicted: the hosts' time for a message was fitted to DQN and PPO alone (iSwitch, Tables 4 " +
		"and 5)."
}

// LabLink returns the cluster's link: 10 Gbps Ethernet, with the overhead per frame on the line.
func LabLink() closedloop.Link {
	return closedloop.Link{Rate: 10 * olaf.Gbps, Delay: 500 * olaf.Nanosecond, Overhead: 24}
}

func micro(us int64) olaf.Duration { return olaf.Duration(us) * olaf.Microsecond }

// costs contains the time that software takes per message on a host, by system. The times are fitted to DQN and PPO in
// Table 4, with two parameters for two published numbers each. The times of A2C and DDPG are predictions.
var costs = map[string]closedloop.Costs{
	"ps":      {PerMessage: micro(1150), PerMiB: micro(1120)},
	"ring":    {PerMessage: micro(1800), PerMiB: micro(1830)},
	"iswitch": {PerMessage: micro(1860), PerMiB: micro(1240)},
}

// IsFitted reports whether the host costs of a system are based on the paper's tables.
func IsFitted(system string) bool {
	_, known := costs[system]
	return known
}

// serverUpdate returns the time that an asynchronous server takes to apply a gradient. It is fitted to DQN and PPO in
// Table 5.
func serverUpdate(m *Model) olaf.Duration {
	return micro(970) + micro(1130)/1024*olaf.Duration(m.Values*olaf.LaneBytes)/1024
}

// LabWorkers is the size of the paper's main cluster, LabRack the number of workers per rack in its larger emulation.
const (
	LabWorkers = 4
	LabRack    = 3
)

// Lab returns a model of the paper's cluster for one system, mode and training model: 10 Gbps Ethernet, and an
// accelerator with 256 bits at 200 MHz. For iSwitch, the default table is the board's; vectors longer than the table
// wrap around. Asynchronous workers send whole vectors, so their table is larger than the board could contain. Other
// systems whose switches reply have the message costs of iSwitch's hosts, because no paper measured them on this
// cluster. ideal omits the costs on the hosts.
func Lab(s *system.System, mode *system.Mode, m Model, workers int, ideal bool, o *system.Options) (closedloop.Network, closedloop.Job) {
	own := program.Describe().Name
	net := closedloop.Network{
		Workers: workers,
		Link:    LabLink(),
	}
	if workers > LabWorkers {
		net.PerRack = LabRack
	}
	if s.Name == own {
		net.Accelerator = closedloop.Accelerator{BusBytes: 32, Beat: 5 * olaf.Nanosecond, Pipeline: 16}
	}
	job := closedloop.Job{Layout: endpoint.Layout{Values: m.Values, Messages: m.Messages}, Compute: m.Compute}
	if !ideal {
		paid := costs[s.Name]
		if !IsFitted(s.Name) {
			paid = costs[own]
		}
		net.Worker, net.Server = paid, paid
		if !mode.Sync {
			job.ServerApply = serverUpdate(&m)
		}
	}
	if s.Name == own && o.Slots == 0 {
		o.Slots, o.Wrap = program.DefaultSlots, true
		if !mode.Sync || o.Profile == program.Exactly {
			o.Slots, o.Wrap = max(program.DefaultSlots, (m.Values+program.Lanes-1)/program.Lanes), false
		}
	}
	return net, job
}
