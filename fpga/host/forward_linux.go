package host

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/realtime"
	"golang.org/x/sys/unix"
)

// forwarding forwards packets that bypass the queue from host to host.
type forwarding struct {
	plane *plane
	all   []route
	back  *listener // listener at the server's interface
}

// route is a destination network and the cable that leads to it.
type route struct {
	realtime.Route
	socket *netlab.Socket
	sends  *realtime.Lock // for sending by several listeners
}

// Forward starts to forward packets that bypass the queue, between the server's interface and the routes.
func (p *plane) Forward(server *netlab.Interface, routes []realtime.Route) (io.Closer, error) {
	w := &forwarding{plane: p}
	if err := w.open(server, routes); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	p.ways.Store(w)
	return w, nil
}

func (w *forwarding) open(server *netlab.Interface, routes []realtime.Route) error {
	for _, r := range routes {
		s, err := r.By.B.Packets(false)
		if err != nil {
			return err
		}
		w.all = append(w.all, route{r, s, new(realtime.Lock)})
	}
	var err error
	w.back, err = startListener(server, func(b []byte) {
		w.plane.mark(b)
		w.pass(b)
	})
	return err
}

// Offsets of the headers of an IPv4 packet in a frame.
const (
	macBytes    = 6
	etherTypeAt = 2 * macBytes
	ipAt        = etherTypeAt + 2
	ipTargetAt  = ipAt + 16
	ipBytes     = 20
)

// pass sends a packet to its destination host. Packets addressed to the switch itself are left to the kernel.
func (w *forwarding) pass(b []byte) {
	if len(b) < ipAt+ipBytes || binary.BigEndian.Uint16(b[etherTypeAt:]) != unix.ETH_P_IP {
		return
	}
	to := netip.AddrFrom4([4]byte(b[ipTargetAt:]))
	for i := range w.all {
		r := &w.all[i]
		if !r.To.Contains(to) || to == r.Hub {
			continue
		}
		copy(b, r.By.A.MAC)
		copy(b[macBytes:], r.By.B.MAC)
		r.sends.Lock()
		_ = r.socket.Send(b) // lost, as on any link, and counted at both ends
		r.sends.Unlock()
	}
}

// mark writes the queue's fill level into an ACK, unless an earlier hop was busier.
func (p *plane) mark(b []byte) {
	f, err := olaf.ParseFrame(b)
	if err != nil || f.Kind() != olaf.KindAck {
		return
	}
	p.mu.Lock()
	active := uint32(p.discipline.ActiveClusters())
	if p.activity != nil {
		active = min(p.activity.Count(int64(toEngineTime(readClock()))), math.MaxUint16)
	}
	s := olaf.QueueStatus{Occupancy: uint32(p.discipline.Occupancy()), ActiveClusters: uint16(active), Slots: uint16(p.settings.Depth),
		Full: p.discipline.Occupancy() >= p.settings.Depth}
	p.mu.Unlock()
	if s.Busier(f.QueueStatus()) {
		f.SetQueueStatus(s)
	}
}

// Close stops the listener at the server's interface and all forwarding. The listeners at the workers' interfaces must
// be closed first.
func (w *forwarding) Close() error {
	w.plane.ways.Store(nil)
	var errs []error
	if w.back != nil {
		errs = append(errs, w.back.Close())
	}
	for i := range w.all {
		errs = append(errs, w.all[i].socket.Close())
	}
	return errors.Join(errs...)
}
