package host

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/realtime"
)

// listener receives frames from an interface until it is closed.
type listener struct {
	socket *netlab.Socket
	quit   atomic.Bool
	done   chan struct{}
}

// waitMS is the number of milliseconds that a listener waits for a frame before it checks whether it was closed.
const waitMS = 20

// startListener calls take with every frame received at the interface.
func startListener(at *netlab.Interface, take func(frame []byte)) (*listener, error) {
	socket, err := at.Packets(true)
	if err != nil {
		return nil, err
	}
	l := &listener{socket: socket, done: make(chan struct{})}
	go l.run(take)
	return l, nil
}

// Attach starts to receive frames from the interface. The mode is ignored.
func (p *plane) Attach(at *netlab.Interface, _ dataplane.Mode) (io.Closer, error) {
	return startListener(at, func(b []byte) {
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
			return // the interface is gone; its counters show that
		}
	}
}

// Close stops the listener.
func (l *listener) Close() error {
	l.quit.Store(true)
	<-l.done
	return l.socket.Close()
}
