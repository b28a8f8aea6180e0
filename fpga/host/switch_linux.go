package host

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/realtime"
)

// Port is a port of a Switch, with one host behind it.
type Port struct {
	Socket *netlab.Socket // receives the host's frames
	Link   int            // index in the Switch's Links: the link to the host
	Host   olaf.Addresses // addresses of the host when it is the source
	Job    olaf.ClusterID // job of the host, for packets that do not carry it
	Server bool           // the host is the job's server; its port is the uplink
}

// Switch runs a switch program on packet sockets. It decodes arriving frames according to a format and passes them to
// the program. The program's packets are sent through links. Frames addressed to a host bypass the program and are
// forwarded.
type Switch struct {
	Program program.Program
	Format  *frame.Format
	Links   *realtime.Links
	Own     olaf.Addresses // addresses of the switch when it is the source
	Passes  bool           // the program also sees frames addressed to hosts, but only counts them
	// Ports lists the workers' ports, in the order of the program's member numbers, followed by the servers' ports.
	Ports []Port
	// Beside, if set, is a second format. Its control frames are forwarded by address, and neither counted nor seen by
	// the program.
	Beside *frame.Format
	// Accepts, if set, reports whether a host's frame may pass. Other frames are counted as strange.
	Accepts func(port int, outer *frame.Outer) bool
	// OnArrival, if set, is called for every frame before the program sees it. Its arguments are valid only during the
	// call.
	OnArrival func(now olaf.Time, port int, v *frame.View, p *program.Packet, lanes []uint32)
	// OnDeparture, if set, is called for every frame that the program emits, before it is handed to a link.
	OnDeparture func(outer *frame.Outer, p *program.Packet)
	Now         func() olaf.Time

	counts  SwitchCounts
	mu      sync.Mutex // guards counts
	servers map[olaf.ClusterID]int
	members map[olaf.ClusterID][]int
	hosts   map[[4]byte]int
	ears    *netlab.PollSet
	quit    atomic.Bool
	done    chan struct{}
	hand    program.Packet // packet being switched
	from    int            // port at which it arrived
	in, out []byte
	lanes   []uint32
	failed  error
}

// SwitchCounts contains the counters of a Switch.
type SwitchCounts struct {
	Arrived  uint64 // frames in the format
	Switched uint64 // arrived frames passed to the program
	Passed   uint64 // arrived frames forwarded to a host
	Strange  uint64 // frames in another format or without a known destination
	Left     uint64 // frames handed to links, counted once per receiver
	// SlotIntegral is the time integral of occupied slots up to Since, in slots × ps. Slots is the number of slots
	// occupied at Since, and Most is the peak.
	SlotIntegral float64
	Since        olaf.Time
	Slots        int
	Most         int
}

// Start receives frames in a separate thread until Close is called.
func (s *Switch) Start() {
	s.servers, s.members, s.hosts = map[olaf.ClusterID]int{}, map[olaf.ClusterID][]int{}, map[[4]byte]int{}
	sockets := make([]*netlab.Socket, len(s.Ports))
	for i := range s.Ports {
		p := &s.Ports[i]
		sockets[i], s.hosts[p.Host.SrcIP] = p.Socket, i
		if p.Server {
			s.servers[p.Job] = i
		} else {
			s.members[p.Job] = append(s.members[p.Job], i)
		}
	}
	s.ears, s.done = netlab.NewEars(sockets...), make(chan struct{})
	s.ears.BypassScheduler()
	s.in, s.out, s.lanes = make([]byte, 1<<16), make([]byte, olaf.MaxFrame), make([]uint32, olaf.MaxLanes)
	go s.run()
}

func (s *Switch) run() {
	defer close(s.done)
	realtime.OwnThread(realtime.Arrival)
	for !s.quit.Load() && s.failed == nil {
		s.ears.Wait(waitMS*time.Millisecond, s.drain)
	}
}

// burst is the maximum number of frames received from a port before the next port is polled.
const burst = 16

// drain receives at most burst frames that wait at a port.
func (s *Switch) drain(port int) {
	for range burst {
		n, err := s.Ports[port].Socket.Receive(s.in)
		switch {
		case errors.Is(err, netlab.ErrAgain):
			return
		case err != nil:
			s.failed = fmt.Errorf("the switch's port %d: %w", port, err)
			return
		}
		s.take(port, s.in[:n])
	}
}

// take passes a frame that arrived at a port to the program, or forwards it by its address.
func (s *Switch) take(port int, b []byte) {
	if s.forwardBeside(port, b) {
		return
	}
	now, at := s.Now(), &s.Ports[port]
	v, err := s.Format.Decode(b)
	var outer frame.Outer
	if err == nil {
		outer = v.Outer()
	}
	if err != nil || s.Accepts != nil && !s.Accepts(port, &outer) {
		s.count(func(c *SwitchCounts) { c.Strange++ })
		return
	}
	p := &s.hand
	v.Packet(p)
	lanes := s.lanes[:v.Lanes(s.lanes)]
	if p.Job == 0 {
		p.Job = at.Job
	}
	if s.OnArrival != nil {
		s.OnArrival(now, port, &v, p, lanes)
	}
	if outer.DstIP != s.Own.SrcIP {
		s.pass(now, port, outer.DstIP, b, lanes)
		return
	}
	if p.Kind == program.Data && !at.Server {
		p.Vectors = 1 // set by the sender, not carried in the frame
	}
	s.from = port
	s.Program.Receive(now, at.programPort(port), p, lanes, s)
	held := s.Program.CountOccupied()
	s.count(func(c *SwitchCounts) {
		c.Arrived++
		c.Switched++
		c.SlotIntegral += float64(float64(c.Slots) * float64(now.Sub(c.Since)))
		c.Since, c.Slots, c.Most = now, held, max(c.Most, held)
	})
}

// forwardBeside forwards a frame by its address if it is a control frame of the second format, and reports whether it is
// one.
func (s *Switch) forwardBeside(port int, b []byte) bool {
	if s.Beside == nil {
		return false
	}
	v, err := s.Beside.Decode(b)
	if err != nil || v.Message.Kind != program.Control {
		return false
	}
	outer := v.Outer()
	if to, known := s.hosts[outer.DstIP]; known && (s.Accepts == nil || s.Accepts(port, &outer)) {
		s.Links.Send(s.Ports[to].Link, b)
	}
	return true
}

// programPort returns the port's number as the program knows it, which is program.Uplink for the server's port.
func (p *Port) programPort(number int) program.Port {
	if p.Server {
		return program.Uplink
	}
	return program.Port(number)
}

// discard is a program.Out that drops the program's packets. It is used for frames that are forwarded by address.
type discard struct{}

func (discard) Emit(program.Dest, *program.Packet, []uint32) {}

// pass forwards a frame to the host with address to. The frame has been decoded into s.hand.
func (s *Switch) pass(now olaf.Time, from int, to [4]byte, b []byte, lanes []uint32) {
	port, known := s.hosts[to]
	if known && s.Passes {
		s.Program.Receive(now, s.Ports[from].programPort(from), &s.hand, lanes, discard{})
	}
	s.count(func(c *SwitchCounts) {
		if !known {
			c.Strange++
			return
		}
		c.Arrived++
		c.Passed++
		c.Left++
		if s.Passes {
			c.Switched++
		}
	})
	if known {
		s.Links.Send(s.Ports[port].Link, b)
	}
}

func (s *Switch) count(change func(*SwitchCounts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.counts)
}

// Counts returns the current counters.
func (s *Switch) Counts() SwitchCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Emit implements program.Out. It sends a packet through the ports of its destination.
func (s *Switch) Emit(to program.Dest, p *program.Packet, lanes []uint32) {
	switch to {
	case program.Up:
		if port, has := s.servers[p.Job]; has {
			s.put(port, p, lanes)
		}
	case program.Down, program.Others:
		for _, port := range s.members[p.Job] {
			if to == program.Down || port != s.from {
				s.put(port, p, lanes)
			}
		}
	default:
		if int(to) < len(s.Ports) {
			s.put(int(to), p, lanes)
		}
	}
}

// put encodes a packet and sends it through a link. A packet that the program passes on unchanged keeps its sender's
// addresses, because receivers use them to recognize a request for help.
func (s *Switch) put(port int, p *program.Packet, lanes []uint32) {
	at := &s.Ports[port]
	outer := frame.Outer{Addresses: s.Own}
	if p == &s.hand {
		outer.Addresses = s.Ports[s.from].Host
	}
	outer.DstMAC, outer.DstIP = at.Host.SrcMAC, at.Host.SrcIP
	if !at.Server {
		outer.SrcPort = at.Host.SrcPort // the worker's port, also in packets to the worker
	}
	if len(lanes) == 0 {
		lanes = nil
	}
	n, err := s.Format.Encode(s.out, &outer, p, lanes)
	if err != nil {
		s.failed = err
		return
	}
	if s.OnDeparture != nil {
		s.OnDeparture(&outer, p)
	}
	s.count(func(c *SwitchCounts) { c.Left++ })
	s.Links.Send(at.Link, s.out[:n])
}

// Done returns a channel that is closed when the switch has stopped, after Close or because of an error.
func (s *Switch) Done() <-chan struct{} { return s.done }

// Close stops the switch and returns the error that stopped it earlier, if any. Sockets and links stay open.
func (s *Switch) Close() error {
	s.quit.Store(true)
	<-s.done
	return s.failed
}
