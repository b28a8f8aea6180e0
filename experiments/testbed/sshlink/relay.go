package sshlink

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// Relay passes the connections at a socket on to the socket of another process on this host.
type Relay struct {
	listener net.Listener
	target   string
	lost     chan struct{} // closed when the other process is gone
	losing   sync.Once
	passing  sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

// StartRelay listens at a socket that only this user can access. It passes all connections on to the socket target until
// Close is called.
func StartRelay(path, target string) (*Relay, error) {
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", path, err)
	}
	r := &Relay{listener: l, target: target, lost: make(chan struct{}), open: map[net.Conn]bool{}}
	r.passing.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			r.passing.Go(func() { r.pass(c) })
		}
	})
	return r, nil
}

// pass passes on one connection until either end closes it.
func (r *Relay) pass(c net.Conn) {
	defer c.Close()
	to, err := net.Dial("unix", r.target)
	if err != nil {
		r.losing.Do(func() { close(r.lost) })
		return
	}
	defer to.Close()
	if !r.keep(c, to) {
		return
	}
	defer r.drop(c, to)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(c, to) // either end may be closed
		r.checkTarget()
		c.Close()
	})
	_, _ = io.Copy(to, c)
	to.Close()
	back.Wait()
}

// checkTarget closes r.lost if nothing listens at the target any more.
func (r *Relay) checkTarget() {
	c, err := net.Dial("unix", r.target)
	if err != nil {
		r.losing.Do(func() { close(r.lost) })
		return
	}
	c.Close()
}

// keep registers connections for Close. It reports whether the relay is still open.
func (r *Relay) keep(all ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range all {
		r.open[c] = true
	}
	return !r.closed
}

func (r *Relay) drop(all ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range all {
		delete(r.open, c)
	}
}

// Lost returns a channel that is closed when a connection shows that the other process is gone.
func (r *Relay) Lost() <-chan struct{} { return r.lost }

// Close closes all connections and removes the socket.
func (r *Relay) Close() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for c := range r.open {
		c.Close()
	}
	r.mu.Unlock()
	r.passing.Wait()
	return err
}
