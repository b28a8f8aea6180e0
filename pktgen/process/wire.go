package process

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
)

// FrameConn is a socket for whole frames.
type FrameConn interface {
	// Receive waits for frames until the deadline, and returns how many it passed to take, whose argument is valid
	// during the call. After the deadline the error matches os.ErrDeadlineExceeded.
	Receive(take func(frame []byte)) (int, error)
	Send(frame []byte) error
	SetReadDeadline(until time.Time) error
}

// Wire connects a host with the switch of one job by whole frames, for systems whose packets are not UDP datagrams or
// whose switch needs their headers.
type Wire struct {
	Conn    FrameConn
	Format  *frame.Format
	Job     olaf.ClusterID
	Workers int
	Server  bool             // the host is the job's server
	Own     olaf.Addresses   // of the host, as sources
	Switch  netip.Addr       // frames for other addresses bypass the switch's program
	Hosts   []olaf.Addresses // of the workers, as sources
}

// wiring is a Wire that carries a player's packets.
type wiring struct {
	*Wire
	vector  *uint32 // in computation, or the last one
	numbers map[[4]byte]olaf.WorkerID
	traffic Traffic
	out     []byte
	lanes   []uint32
	unsent  error
}

func newWiring(w *Wire, vector *uint32) *wiring {
	k := &wiring{Wire: w, vector: vector, numbers: map[[4]byte]olaf.WorkerID{}, out: make([]byte, olaf.MaxFrame),
		lanes: make([]uint32, olaf.MaxLanes)}
	for i := range w.Hosts {
		k.numbers[w.Hosts[i].SrcIP] = olaf.WorkerID(i)
	}
	return k
}

func (k *wiring) setDeadline(until time.Time) error { return k.Conn.SetReadDeadline(until) }
func (k *wiring) counts() Traffic                   { return k.traffic }
func (k *wiring) refused() error                    { return k.unsent }
func (k *wiring) wake()                             { _ = k.Conn.SetReadDeadline(time.Unix(1, 0)) }

// flush does nothing: frames are sent one by one.
func (k *wiring) flush() {}

func (k *wiring) read(take func(p *program.Packet, lanes []uint32, from netip.AddrPort)) (int, error) {
	n, err := k.Conn.Receive(func(b []byte) { k.decode(b, take) })
	if n > 0 {
		k.traffic.ReceiveCalls++
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, offline(err)
}

// decode passes on a frame of the format.
func (k *wiring) decode(b []byte, take func(p *program.Packet, lanes []uint32, from netip.AddrPort)) {
	v, err := k.Format.Decode(b)
	if err != nil || v.Outer().DstIP != k.Own.SrcIP {
		k.traffic.Strange++
		return
	}
	k.traffic.Received++
	var p program.Packet
	v.Packet(&p)
	lanes := k.lanes[:v.Lanes(k.lanes)]
	if len(lanes) == 0 {
		lanes = nil
	}
	k.complete(&p, &v)
	take(&p, lanes, netip.AddrPortFrom(netip.AddrFrom4(v.Outer().SrcIP), v.Outer().SrcPort))
}

// complete adds to a packet what its frame does not contain. A sum is assumed to have the current round's vectors, one
// per worker or as many as it counts; the job's programs check that.
func (k *wiring) complete(p *program.Packet, v *frame.View) {
	if p.Job == 0 {
		p.Job = k.Job
	}
	if !k.Server && p.Kind == program.Data && !v.Message.Past { // both use the same format
		p.Kind = program.Result
	}
	if from, known := k.numbers[v.Outer().SrcIP]; known && p.Kind == program.Control {
		p.Worker = from // the requester
	}
	if !k.Server && (p.Kind == program.Result || p.Kind == program.Ack) {
		p.Vectors, p.Inside = uint32(cmp.Or(int(p.Count), k.Workers)), program.MarkWorkers(k.Workers, *k.vector)
	}
}

// write sends a packet as a frame.
func (k *wiring) write(p *program.Packet, lanes []uint32, _ int32, _ uint64, _ netip.Addr, to ...netip.AddrPort) error {
	for _, at := range to {
		there := at.Addr().As4()
		outer := frame.Outer{Addresses: k.Own, Past: at.Addr() != k.Switch}
		outer.DstIP, outer.DstMAC = there, [6]byte{2, 0, there[0], there[1], there[2], there[3]}
		if k.Server && outer.Past {
			outer.SrcPort = at.Port() // the worker's port, also for packets to it
		}
		n, err := k.Format.Encode(k.out, &outer, p, lanes)
		if err != nil {
			return err
		}
		k.traffic.Calls++
		if err := k.Conn.Send(k.out[:n]); err != nil {
			k.unsent = cmp.Or(k.unsent, fmt.Errorf("send a frame: %w", offline(err)))
			k.traffic.Unsent++
			continue
		}
		k.traffic.Packets++
	}
	return nil
}
