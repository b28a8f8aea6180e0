package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Port is a socket to which one client at a time can attach or, if Many is set, several clients. It is safe for
// concurrent use.
type Port struct {
	path     string
	listener *net.UnixListener
	logf     func(format string, args ...any)
	ended    chan struct{}
	Many     bool          // must be set before Serve
	grace    time.Duration // time at the end for a client that does not read

	mu        sync.Mutex
	conns     map[net.Conn]bool // connections of clients
	endReason string            // why the worker or server ended
	closed    bool
	sessions  sync.WaitGroup
}

// Listen opens the socket at an address such as unix:/tmp/w0.sock. Only this user can connect to it. Listen replaces a
// socket that was left behind by a program that has ended. logf is called when a client attaches or leaves. The error
// matches ErrSocket.
func Listen(address string, logf func(format string, args ...any)) (*Port, error) {
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok || path == "" {
		return nil, fmt.Errorf("%w at %q: write unix: and a path, such as unix:/tmp/w0.sock", ErrSocket, address)
	}
	if c, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(fmt.Errorf("%w at %s: another worker or server uses it; choose another path", ErrSocket,
			path), c.Close())
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%w at %s: the file is there already and no socket; choose another path", ErrSocket, path)
	}
	// The socket gets its permissions in a private folder before it is moved to a place that others can reach.
	folder, err := os.MkdirTemp(filepath.Dir(path), ".attach")
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrSocket, path, err)
	}
	defer os.RemoveAll(folder)
	at := filepath.Join(folder, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrSocket, path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(at, 0o600), os.Rename(at, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("%w at %s: %w", ErrSocket, path, err), l.Close())
	}
	return &Port{path: path, listener: l, logf: logf, ended: make(chan struct{}), grace: greetingTime,
		conns: map[net.Conn]bool{}}, nil
}

// Handler serves one client from its Hello until the client disconnects. Rounds, Pushes and Updates implement it.
type Handler interface {
	greeting() Greeting
	serve(s *session) error
}

// session is the connection of one client.
type session struct {
	conn     net.Conn
	requests <-chan Message
	done     <-chan struct{} // the worker or server ended
	out      []byte
}

// Serve serves clients until the port is closed.
func (p *Port) Serve(h Handler) {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		busy, why := len(p.conns) > 0 && !p.Many, p.endReason
		if !busy && !p.closed {
			p.conns[c] = true
		}
		p.mu.Unlock()
		switch {
		case why != "":
			p.sessions.Go(func() { turnAway(c, CodeEnded, why) })
		case busy:
			p.sessions.Go(func() { turnAway(c, CodeBusy, "another client is attached to "+p.path) })
		default:
			p.sessions.Go(func() { p.session(c, h) })
		}
	}
}

// greetingTime is the time limit for receiving a client's Hello, and for a rejected client to read the reason.
const greetingTime = 5 * time.Second

// refuse sends an error message and closes the connection.
func refuse(c net.Conn, code uint32, text string) {
	_ = c.SetDeadline(time.Now().Add(greetingTime))
	_, _ = c.Write(Append(nil, KindError, Failure{code}, []byte(text))) // the client may have disconnected
	_ = c.Close()
}

// turnAway reads the Hello of a client and rejects the client. It reads the Hello because closing a socket with unread
// bytes could discard the error message.
func turnAway(c net.Conn, code uint32, text string) {
	_ = c.SetDeadline(time.Now().Add(greetingTime))
	var buffer []byte
	_, _ = Read(io.LimitReader(c, headSize+int64(sizes[KindHello].size)), &buffer) // regardless of its kind
	refuse(c, code, text)
}

// session serves one client until it leaves.
func (p *Port) session(c net.Conn, h Handler) {
	stop := make(chan struct{})
	s := &session{conn: c, done: p.ended}
	enlarge(c)
	err := greet(c, h)
	if err == nil {
		p.logf("a client is attached to %s", p.path)
		requests := make(chan Message)
		s.requests = requests
		go readRequests(c, requests, stop)
		err = h.serve(s)
		close(stop)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded): // the client read only a part of an answer
	case errors.Is(err, ErrProtocol):
		refuse(c, CodeProtocol, err.Error())
	case p.reason() != "":
		refuse(c, CodeEnded, p.reason())
	}
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	_ = c.Close() // a client that sees its connection closed may attach again
	if err != nil && !errors.Is(err, errEnded) {
		p.logf("the client of %s is gone: %v", p.path, err)
	}
}

// bufferSize is the requested size of a socket's buffer in bytes. If the buffer is smaller than a message, sender and
// receiver must take turns.
const bufferSize = 4 << 20

// enlarge requests larger socket buffers. The kernel may limit their size.
func enlarge(c net.Conn) {
	if u, ok := c.(*net.UnixConn); ok {
		_ = u.SetWriteBuffer(bufferSize) // works with any buffer size
	}
}

func (p *Port) reason() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endReason
}

// greet reads the Hello of a client and answers it.
func greet(c net.Conn, h Handler) error {
	_ = c.SetDeadline(time.Now().Add(greetingTime))
	var buffer []byte
	m, err := Read(io.LimitReader(c, headSize+int64(sizes[KindHello].size)), &buffer)
	if err != nil {
		return err
	}
	var hello Hello
	if _, err := m.Decode(&hello); err != nil || m.Kind != KindHello || hello.Magic != magic {
		return fmt.Errorf("%w: it does not begin with a hello", ErrProtocol)
	}
	if hello.Version != Version {
		refuse(c, CodeVersion, fmt.Sprintf("the client speaks version %d of the protocol, and this olafctl %d; use the "+
			"package of the same release", hello.Version, Version))
		return fmt.Errorf("it speaks version %d of the protocol", hello.Version)
	}
	_, err = c.Write(Append(nil, KindGreeting, h.greeting(), nil))
	return errors.Join(err, c.SetDeadline(time.Time{}))
}

// readRequests reads the messages of a client, one message ahead of the session. The body of a message is valid until
// the session has taken the second message after it.
func readRequests(c net.Conn, into chan<- Message, stop <-chan struct{}) {
	defer close(into)
	var buffers [2][]byte
	for i := 0; ; i++ {
		m, err := Read(c, &buffers[i%2])
		if errors.Is(err, ErrProtocol) {
			m = Message{Kind: KindError, Body: []byte(err.Error())}
		} else if err != nil {
			return
		}
		select {
		case into <- m:
		case <-stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// errEnded reports a session that ended normally, errGone a client that closed its connection without sending a Bye.
var (
	errEnded = errors.New("the session ended")
	errGone  = errors.New("it closed the connection")
)

// next waits for a request from the client. bye is true if the client ended the session properly.
func (s *session) next() (m Message, bye bool, err error) {
	select {
	case m, ok := <-s.requests:
		return s.accept(m, ok)
	case <-s.done:
		return Message{}, false, errEnded
	}
}

func (s *session) accept(m Message, ok bool) (Message, bool, error) {
	switch {
	case !ok:
		return m, false, errGone
	case m.Kind == KindError:
		return m, false, fmt.Errorf("%w: %s", ErrProtocol, m.Body)
	case m.Kind == KindBye:
		return m, true, errEnded
	}
	return m, false, nil
}

// send sends an answer. A client that does not read its answers delays only its own session.
func (s *session) send(kind Kind, structure any, tail []byte) error {
	s.out = Append(s.out[:0], kind, structure, tail)
	_, err := s.conn.Write(s.out)
	return err
}

// reject answers a request that cannot be served with an error and keeps the connection open.
func (s *session) reject(err error) error {
	return s.send(KindError, Failure{CodeVector}, []byte(err.Error()))
}

// tick is the interval at which a waiting client receives a message about the state.
const tick = time.Second

// await waits for the answer to the client's request. Meanwhile, it sends the client the texts returned by state. The
// only message that the client may send meanwhile is the end of the session.
func await[T any](s *session, answer <-chan T, state func(time.Duration) string) (got T, bye bool, err error) {
	every := time.NewTicker(tick)
	defer every.Stop()
	began := time.Now()
	for {
		select {
		case got = <-answer:
			return got, false, nil
		case m, ok := <-s.requests:
			_, bye, err := s.accept(m, ok)
			if err == nil {
				err = fmt.Errorf("%w: it sends a message of kind %d while it waits for an answer", ErrProtocol, m.Kind)
			}
			return got, bye, err
		case <-s.done:
			select {
			case got = <-answer: // an answer that arrived before the end
				return got, false, nil
			default:
				return got, false, errEnded
			}
		case <-every.C:
			if err := s.send(KindWaits, nil, []byte(state(time.Since(began).Round(time.Second)))); err != nil {
				return got, false, err
			}
		}
	}
}

// Close ends the client's session, sends it the reason why the worker or server ended, and removes the socket.
func (p *Port) Close(why error) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed, p.endReason = true, "the worker or server ended"
	if why != nil && !errors.Is(why, context.Canceled) {
		p.endReason = why.Error()
	}
	conns := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	close(p.ended)
	for _, conn := range conns {
		_ = conn.SetDeadline(time.Now().Add(p.grace)) // limits the delay by a client that does not read
	}
	err := errors.Join(p.listener.Close(), os.Remove(p.path))
	p.sessions.Wait()
	return err
}
