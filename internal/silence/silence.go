// Package silence measures how long a server has received nothing from a client. When a server refuses a request
// because of another client, it can then report whether that client is active or behind a dead link.
package silence

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/peer"
)

// A server sends a ping if it has not received a byte from a client for Ping, and drops the client after another
// Answer.
const (
	Ping   = 30 * time.Second
	Answer = 10 * time.Second
)

// short is the longest time for which an active client normally sends nothing.
const short = 5 * time.Second

// Listen returns a listener whose connections record when bytes arrive. now is the clock; if it is nil, the host's
// clock is used.
func Listen(l net.Listener, now func() time.Time) net.Listener {
	if now == nil {
		now = time.Now
	}
	return &listener{l, now}
}

type listener struct {
	net.Listener
	now func() time.Time
}

// Accept waits for the next connection. The remote address of the connection is an *address.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	from := &address{Addr: c.RemoteAddr(), now: l.now}
	from.note()
	return &conn{c, from}, nil
}

type conn struct {
	net.Conn
	from *address
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.from.note()
	}
	return n, err
}

func (c *conn) RemoteAddr() net.Addr { return c.from }

// address is a remote address that also stores the time of the last received byte. A call knows only the address of its
// peer, and can obtain the time from it.
type address struct {
	net.Addr
	now  func() time.Time
	last atomic.Pointer[time.Time]
}

func (a *address) note() {
	t := a.now()
	a.last.Store(&t)
}

// Of returns a function that returns how long the client of a call has sent nothing. The function returns 0 if the
// listener was not created by Listen.
func Of(ctx context.Context) func() time.Duration {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(*address); ok {
			return func() time.Duration { return a.now().Sub(*a.last.Load()) }
		}
	}
	return func() time.Duration { return 0 }
}

// Clause returns a clause that states that a client has sent nothing for d, for use in an error message. It returns ""
// if d is short.
func Clause(d time.Duration) string {
	if d < short {
		return ""
	}
	return fmt.Sprintf("; the agent last heard of that client %v ago, and drops it after %v of silence", d.Round(time.Second), Ping+Answer)
}
