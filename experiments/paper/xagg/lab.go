package xagg

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// PacketBytes is the payload of a packet in bytes, as published.
const PacketBytes = 1024

// overhead is the overhead per frame on the line, in bytes.
const overhead = 24

// fig1Scales is the largest number by which the times in the example can be divided. With 1 the example has its
// published length.
const fig1Scales = 1000

// straggler is the additional computing time of worker W3.
const straggler = 2 * olaf.Second

// Fig1 returns the paper's example (§II-A) for one system, with all times divided by scale. The links have 10 Gbps,
// except that W2's link has 5 Gbps, and W3 is ready after two seconds. Sending a vector in the system's frames,
// including headers, takes one second on a link. For a system whose program runs on servers, S1 is above W1 to W3, and
// the parameter server is above S1 and W4.
func Fig1(s *system.System, parts *system.Parts, scale int) (closedloop.Network, closedloop.Job) {
	l := closedloop.Link{Rate: 10 * olaf.Gbps, Overhead: overhead}
	half := l
	half.Rate /= 2
	net := closedloop.Network{Workers: 4, Link: l, Access: []closedloop.Link{l, half, l}, Through: true}
	if s.OnServers {
		net.Tree = &closedloop.Tree{Servers: []closedloop.TreeServer{{Link: l}, {Parent: 0, Link: l}}, Workers: []int{1, 1, 1, 0}}
	}
	bits := int64(l.Rate) / int64(scale)
	beside := int64(parts.FrameSize(fullPacket(parts), false)-olaf.LaneBytes*olaf.Size(parts.PerPacket)) + overhead
	frame := (beside + int64(parts.PerPacket)*olaf.LaneBytes) * 8
	values := bits/frame*int64(parts.PerPacket) + max(0, (bits%frame/8-beside)/olaf.LaneBytes)
	return net, closedloop.Job{
		Layout: endpoint.Layout{Values: int(values)}, Updates: 1, Late: []olaf.Duration{2: straggler / olaf.Duration(scale)},
	}
}

// fullPacket returns a packet that contains the maximum number of values.
func fullPacket(p *system.Parts) *program.Packet {
	return &program.Packet{Kind: program.Data, Lanes: uint16(p.PerPacket)}
}

// Model is one of the paper's five models.
type Model struct {
	Name, Title string
	Size        olaf.Size
}

// Models returns the models in Figs. 13 to 20.
func Models() []Model {
	return []Model{
		{"inception-v3", "Inception-V3", 25e6}, {"resnet50", "ResNet50", 97e6}, {"alexnet", "AlexNet", 233e6},
		{"vgg16", "VGG16", 528e6}, {"bert", "BERT-BiLSTM-CRF", 542e6},
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

// testbedWorkers is the number of workers in the paper's testbed.
const testbedWorkers = 7

// BuildTestbed returns the paper's testbed (Fig. 12) for one system. W1 to W3 are below S1 with 40 Gbps, W4 to W6 are
// below S2 with 100 Gbps, and S1, S2 and W7 are below the parameter server. If a system's program runs on switches, all
// workers are connected to the same switch. Only transmission takes time, because the costs of hosts, servers and
// computing are not published.
func BuildTestbed(s *system.System, m Model) (closedloop.Network, closedloop.Job) {
	slow := closedloop.Link{Rate: 40 * olaf.Gbps, Delay: 500 * olaf.Nanosecond, Overhead: overhead}
	fast := slow
	fast.Rate = 100 * olaf.Gbps
	net := closedloop.Network{Workers: testbedWorkers, Link: fast, Access: []closedloop.Link{slow, slow, slow}, Through: true}
	if s.OnServers {
		server := closedloop.TreeServer{Link: fast}
		net.Tree = &closedloop.Tree{Servers: []closedloop.TreeServer{server, server, server}, Workers: []int{1, 1, 1, 2, 2, 2, 0}}
	}
	return net, closedloop.Job{Layout: endpoint.Layout{Values: int(m.Size / olaf.LaneBytes)}, Updates: 1}
}
