package wired

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
)

// HostInterface is the name of the interface of a host in a namespace.
const HostInterface = "uplink"

// Stand is a running switch for one job. The hosts are other processes.
type Stand struct {
	Names     []string       // host names, the server last
	Paths     []string       // paths of the hosts' namespaces; empty for interfaces of this machine
	nodes     []*netlab.Node // the hosts' namespaces
	run       *run
	hears     []io.Closer
	logf      func(format string, args ...any)
	macs      map[int][6]byte // of the hosts whose frames arrived
	restarted map[int]bool    // hosts that were restarted
	waits     awaits
}

// OpenStand starts a switch. interfaces contains the switch's ports to the workers, in the order of their numbers,
// followed by the port to the server if the system has one. If interfaces is empty, every host gets a namespace with an
// interface named HostInterface. The error matches system.ErrOptions, ErrNetwork, netlab.ErrRights or
// netlab.ErrNetwork.
func OpenStand(net closedloop.Network, job closedloop.Job, parts system.Parts, interfaces []string,
	logf func(format string, args ...any)) (s *Stand, err error) {
	net.Jobs = 1
	r := &run{net: &net, job: &job, parts: &parts, begun: time.Now()}
	s = &Stand{run: r, logf: logf, macs: map[int][6]byte{}, restarted: map[int]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeAll())
		}
	}()
	if _, err := r.buildSwitch(); err != nil {
		return s, err
	}
	s.Names = r.names[:r.hostCount()]
	if len(interfaces) == 0 {
		err = s.layCables()
	} else {
		err = s.useInterfaces(interfaces)
	}
	if err == nil {
		r.sw.Accepts, r.sw.Beside = s.accept, frame.Baseline
		arrive := r.sw.OnArrival
		r.sw.OnArrival = func(now olaf.Time, port int, v *frame.View, p *program.Packet, lanes []uint32) {
			arrive(now, port, v, p, lanes)
			s.reportMissing(now, port, p)
		}
		r.sw.Start()
	}
	return s, err
}

// accept reports whether a frame is of the first process at a port. A host that was restarted would get old sums from
// the switch's memory, so its frames are dropped.
func (s *Stand) accept(port int, outer *frame.Outer) bool {
	first, known := s.macs[port]
	if !known {
		s.macs[port] = outer.SrcMAC
		return true
	}
	if first == outer.SrcMAC {
		return true
	}
	if !s.restarted[port] {
		s.restarted[port] = true
		s.logf("%s was restarted, and its frames are dropped; restart this switch and all hosts", s.Names[port])
	}
	return false
}

// reportMissing reports to a worker that repeats a part of its vector whose vectors the switch lacks.
func (s *Stand) reportMissing(now olaf.Time, port int, p *program.Packet) {
	at := &s.run.sw.Ports[port]
	if at.Server || p.Kind != program.Data {
		return
	}
	outer := outerTo(&s.run.sw.Own, &at.Host, true, true)
	b, err := s.waits.reportMissing(s.run.program, port, s.run.net.Workers, now, &outer)
	if err == nil && b != nil {
		_ = s.run.links.Send(at.Link, b)
	}
}

// layCables creates a namespace for every host and connects it to the switch.
func (s *Stand) layCables() (err error) {
	r := s.run
	if r.lab, err = netlab.New(); err != nil {
		return err
	}
	hub, err := r.lab.Node("switch")
	if err != nil {
		return err
	}
	for i := range s.Names {
		cable, err := r.layCable(hub, i)
		if err != nil {
			return err
		}
		s.Paths, s.nodes = append(s.Paths, cable.A.Node.Path()), append(s.nodes, cable.A.Node)
		if err := r.addPort(i, cable.B); err != nil {
			return err
		}
	}
	return nil
}

// ethernetHeader is the size in bytes of the part of a frame that is not counted in an MTU.
const ethernetHeader = 14

// useInterfaces connects the switch to the named interfaces of this machine.
func (s *Stand) useInterfaces(names []string) error {
	if len(names) != len(s.Names) {
		return fmt.Errorf("%w: %s for %s; give one for each worker, then one for the server if the system has one",
			system.ErrOptions, olaf.Plural(len(names), "interface"), olaf.Plural(len(s.Names), "host"))
	}
	for i, name := range names {
		at, err := netlab.FindInterface(name)
		if err != nil {
			return err
		}
		if need := s.run.frameBytes() - ethernetHeader; at.MTU < need {
			return fmt.Errorf("%w: interface %s has an MTU of %d, and frames need %d; raise it", ErrNetwork, name, at.MTU, need)
		}
		hears, err := at.HearAll()
		if err != nil {
			return err
		}
		s.hears = append(s.hears, hears)
		if err := s.run.addPort(i, at); err != nil {
			return err
		}
	}
	return nil
}

// Done returns a channel that is closed when the switch has failed.
func (s *Stand) Done() <-chan struct{} { return s.run.sw.Done() }

// Start starts a program in the namespace of a host, by its index in Names. The program is killed when this process ends
// or the stand is closed.
func (s *Stand) Start(host int, cmd *exec.Cmd) (*netlab.Process, error) {
	return s.nodes[host].Start(cmd)
}

// announceEnd notifies the hosts that the switch has ended. Its number follows those of the workers and the server.
func (s *Stand) announceEnd() {
	b := make([]byte, olaf.MaxFrame)
	for i := range s.run.sw.Ports {
		at := &s.run.sw.Ports[i]
		outer := outerTo(&s.run.sw.Own, &at.Host, true, false)
		n, err := frame.Baseline.Encode(b, &outer, &program.Packet{Kind: program.Control, Action: xagg.Leave,
			Worker: olaf.WorkerID(s.run.net.Workers + 1)}, nil)
		if err == nil {
			_ = at.Socket.Send(b[:n]) // the host may have ended as well
		}
	}
}

// Stop stops the switch. It returns the counters of the program and of the switch. "strange" counts frames in another
// format or without a known destination.
func (s *Stand) Stop() (counts map[string]uint64, err error) {
	err = s.run.sw.Close()
	counts = map[string]uint64{"arrived": s.run.sw.Counts().Arrived, "left": s.run.sw.Counts().Left,
		"strange": s.run.sw.Counts().Strange}
	if described := s.run.parts.Program; described != nil && described.Ledger != nil {
		for i, n := range s.run.program.Counts() {
			counts[described.Ledger.Counters[i].Name] = n
		}
	}
	return counts, err
}

// Close stops the switch, announces its end to the hosts and removes the namespaces. It returns the same counters as Stop.
func (s *Stand) Close() (counts map[string]uint64, err error) {
	counts, err = s.Stop()
	s.announceEnd()
	return counts, errors.Join(err, s.closeAll())
}

func (s *Stand) closeAll() (err error) {
	for _, c := range s.hears {
		err = errors.Join(err, c.Close())
	}
	return errors.Join(err, s.run.closeAll())
}
