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

// Port is where a host hangs on a Switch.
type Port struct {
	Socket *netlab.Socket // hears what the host sends
	Link   int            // of the Switch's Links, by which frames leave to it
	Host   olaf.Addresses // of the host: its own are the sources
	Job    olaf.ClusterID // whose host it is, where packets do not say
	Server bool           // of the job; its port is the uplink
}

// Switch is a switch program behind packet sockets: what comes in at a port is read by a format and presented, and what the program
// sends leaves by links. What is addressed to a host, past the program, is passed on.
type Switch struct {
	Program program.Program
	Format  *frame.Format
	Links   *realtime.Links
	Own     olaf.Addresses // of the switch: its own are the sources
	Passes  bool           // the program sees what is addressed to hosts too, and does nothing but count it
	// Ports are those of workers, by their numbers in the program's members, then those of servers.
	Ports []Port
	// Heard hears of every frame when it has come, before the program does; nil for nobody. What it is given is valid during the call.
	Heard func(now olaf.Time, port int, v *frame.View, p *program.Packet, lanes []uint32)
	// Leaves hears of every frame that the program's word makes, before it is handed to a link; nil for nobody.
	Leaves func(outer *frame.Outer, p *program.Packet)
	Now    func() olaf.Time

	counts  SwitchCounts
	mu      sync.Mutex // of counts
	servers map[olaf.ClusterID]int
	members map[olaf.ClusterID][]int
	hosts   map[[4]byte]int
	ears    *netlab.Ears
	quit    atomic.Bool
	done    chan struct{}
	hand    program.Packet // the packet at hand, and
	from    int            // its port
	in, out []byte
	lanes   []uint32
	failed  error
}

// SwitchCounts are what a Switch counted.
type SwitchCounts struct {
	Arrived  uint64 // frames of the format
	Switched uint64 // of these, that the program took
	Passed   uint64 // of these, that were passed on to a host
	Strange  uint64 // frames that are none of the format, or are for nobody
	Left     uint64 // frames that were handed to links, one for each receiver
	// Held is the time integral of the slots that hold something, in slots × ps, until Since, when Slots did; Most is how many did at a time.
	Held  float64
	Since olaf.Time
	Slots int
	Most  int
}

// Start listens, on a thread of its own, until Close.
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
	s.ears, s.done = netlab.Listen(sockets...), make(chan struct{})
	s.ears.Hold()
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

// burst is how many frames of a port are taken before the next port is looked at.
const burst = 16

// drain takes what is there at a port.
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

// take presents a frame, or passes it on.
func (s *Switch) take(port int, b []byte) {
	now, at := s.Now(), &s.Ports[port]
	v, err := s.Format.Decode(b)
	if err != nil {
		s.count(func(c *SwitchCounts) { c.Strange++ })
		return
	}
	p := &s.hand
	v.Packet(p)
	lanes := s.lanes[:v.Lanes(s.lanes)]
	if p.Job == 0 {
		p.Job = at.Job
	}
	if s.Heard != nil {
		s.Heard(now, port, &v, p, lanes)
	}
	if outer := v.Outer(); outer.DstIP != s.Own.SrcIP {
		s.pass(now, port, outer.DstIP, b, lanes)
		return
	}
	if p.Kind == program.Data && !at.Server {
		p.Vectors = 1 // who sends it says that, not the frame
	}
	s.from = port
	s.Program.Receive(now, at.of(port), p, lanes, s)
	held := s.Program.Occupied()
	s.count(func(c *SwitchCounts) {
		c.Arrived++
		c.Switched++
		c.Held += float64(float64(c.Slots) * float64(now.Sub(c.Since)))
		c.Since, c.Slots, c.Most = now, held, max(c.Most, held)
	})
}

// of is what a program calls the port of that number.
func (p *Port) of(number int) program.Port {
	if p.Server {
		return program.Uplink
	}
	return program.Port(number)
}

// nowhere takes what leaves by an address, not by a program's word.
type nowhere struct{}

func (nowhere) Emit(program.Dest, *program.Packet, []uint32) {}

// pass sends a frame, whose packet is at hand, on to the host that it is for.
func (s *Switch) pass(now olaf.Time, from int, to [4]byte, b []byte, lanes []uint32) {
	port, known := s.hosts[to]
	if known && s.Passes {
		s.Program.Receive(now, s.Ports[from].of(from), &s.hand, lanes, nowhere{})
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

// Counts are what was counted so far.
func (s *Switch) Counts() SwitchCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Emit implements program.Out.
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

// put writes a packet's frame and hands it to a link. What a program only passes on stays its sender's: who asks for help is told by that
// alone.
func (s *Switch) put(port int, p *program.Packet, lanes []uint32) {
	at := &s.Ports[port]
	outer := frame.Outer{Addresses: s.Own}
	if p == &s.hand {
		outer.Addresses = s.Ports[s.from].Host
	}
	outer.DstMAC, outer.DstIP = at.Host.SrcMAC, at.Host.SrcIP
	if !at.Server {
		outer.SrcPort = at.Host.SrcPort // the worker's, also of what is sent to it
	}
	if len(lanes) == 0 {
		lanes = nil
	}
	n, err := s.Format.Encode(s.out, &outer, p, lanes)
	if err != nil {
		s.failed = err
		return
	}
	if s.Leaves != nil {
		s.Leaves(&outer, p)
	}
	s.count(func(c *SwitchCounts) { c.Left++ })
	s.Links.Send(at.Link, s.out[:n])
}

// Done is closed when the switch has ended, by itself only where something failed.
func (s *Switch) Done() <-chan struct{} { return s.done }

// Close ends it, and says what failed. Sockets and links are their owners'.
func (s *Switch) Close() error {
	s.quit.Store(true)
	<-s.done
	return s.failed
}
