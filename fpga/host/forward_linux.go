package host

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/realtime"
	"golang.org/x/sys/unix"
)

// ways are how packets get from one host to another that are no matter of the queue.
type ways struct {
	plane *plane
	all   []way
	back  *listener // at the server's interface
}

// way is one network and the cable to it.
type way struct {
	realtime.Route
	socket *netlab.Socket
	sends  *realtime.Lock // several listeners do
}

// Forward implements realtime's planes that pass packets on themselves.
func (p *plane) Forward(server *netlab.Interface, routes []realtime.Route) (io.Closer, error) {
	w := &ways{plane: p}
	if err := w.open(server, routes); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	p.ways.Store(w)
	return w, nil
}

func (w *ways) open(server *netlab.Interface, routes []realtime.Route) error {
	for _, r := range routes {
		s, err := r.By.B.Packets(false)
		if err != nil {
			return err
		}
		w.all = append(w.all, way{r, s, new(realtime.Lock)})
	}
	var err error
	w.back, err = listen(server, func(b []byte) {
		w.plane.mark(b)
		w.pass(b)
	})
	return err
}

// Where the headers of an IPv4 packet begin in a frame, and what stands in them.
const (
	macBytes    = 6
	etherTypeAt = 2 * macBytes
	ipAt        = etherTypeAt + 2
	ipTargetAt  = ipAt + 16
	ipBytes     = 20
)

// pass sends a packet to the host that it is for. What is for the switch itself, its kernel has heard.
func (w *ways) pass(b []byte) {
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
		_ = r.socket.Send(b) // lost, as on any link; both ends are counted
		r.sends.Unlock()
	}
}

// mark writes into an ACK how full the queue is, where no busier hop has.
func (p *plane) mark(b []byte) {
	f, err := olaf.ParseFrame(b)
	if err != nil || f.Kind() != olaf.KindAck {
		return
	}
	p.mu.Lock()
	s := olaf.QueueStatus{Occupancy: uint32(p.discipline.Occupancy()),
		ActiveClusters: uint16(p.discipline.ActiveClusters()), Slots: uint16(p.settings.Depth)}
	p.mu.Unlock()
	if s.Busier(f.QueueStatus()) {
		f.SetQueueStatus(s)
	}
}

// Close ends the listener, and nothing is passed on any more. Those at the workers' interfaces have ended before.
func (w *ways) Close() error {
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
