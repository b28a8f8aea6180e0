package host

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/realtime"
	"github.com/olafctl/olaf/fpga/xdp"
)

// isForeign says whether a frame is no matter of ours.
func isForeign(fault error) bool { return errors.Is(fault, olaf.ErrNotOLAF) }

// listener takes what comes in at an interface, until it is closed.
type listener struct {
	socket *netlab.Socket
	quit   atomic.Bool
	done   chan struct{}
}

// waitMS is how long the listener sleeps before it looks whether it shall end.
const waitMS = 20

// listen hands every frame that comes in at the interface to take.
func listen(at *netlab.Interface, take func(frame []byte)) (*listener, error) {
	socket, err := at.Packets(true)
	if err != nil {
		return nil, err
	}
	l := &listener{socket: socket, done: make(chan struct{})}
	go l.run(take)
	return l, nil
}

// Attach listens at the interface. There is one mode.
func (p *plane) Attach(at *netlab.Interface, _ xdp.Mode) (io.Closer, error) {
	return listen(at, func(b []byte) {
		if ways := p.ways.Load(); p.arrive(b) && ways != nil {
			ways.pass(b)
		}
	})
}

func (l *listener) run(take func([]byte)) {
	defer close(l.done)
	realtime.OwnThread(realtime.Arrival)
	buf := make([]byte, 1<<16)
	for !l.quit.Load() {
		n, err := l.socket.Receive(buf)
		switch {
		case err == nil:
			take(buf[:n])
		case errors.Is(err, netlab.ErrAgain):
			l.socket.Wait(waitMS)
		default:
			return // the interface is gone, which its counters say
		}
	}
}

// Close ends the listener.
func (l *listener) Close() error {
	l.quit.Store(true)
	<-l.done
	return l.socket.Close()
}
