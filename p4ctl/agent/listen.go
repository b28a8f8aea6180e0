package agent

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/silence"
)

// ErrInsecure is the error for an address that other machines can reach and that therefore requires TLS.
var ErrInsecure = olaf.NewError(olaf.Usage, "refusing to listen on a network without TLS")

// ErrListen is the error for an address on which the agent cannot listen.
var ErrListen = olaf.NewError(olaf.Usage, "cannot listen")

// maxMessageBytes is the maximum size of a message. It is large enough for the largest device config and for a batch
// that fills a table.
const maxMessageBytes = 64 << 20

// ServerOptions returns the gRPC options for an agent. They set the message sizes and a keepalive that tolerates
// frequent pings and detects dead controllers. They also make Stop wait for running handlers, limit concurrent pushes,
// and enable TLS if t is set.
func ServerOptions(t *tls.Config) []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.WaitForHandlers(true),
		grpc.InTapHandle(limitPushes()),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: silence.Ping, Timeout: silence.Answer}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
	if t != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(t)))
	}
	return options
}

// Listen listens on unix:PATH or HOST:PORT. Without TLS it accepts only loopback addresses and unix sockets, which only
// the user can access, and returns ErrInsecure for other addresses. All other errors match ErrListen. The listener
// records when each client last sent something.
func Listen(address string, secure bool) (net.Listener, error) {
	l, err := listen(address, secure)
	if err != nil && !errors.Is(err, ErrInsecure) {
		err = fmt.Errorf("%w at %s: %w", ErrListen, address, err)
	}
	if err != nil {
		return nil, err
	}
	return silence.Listen(l, nil), nil
}

func listen(address string, secure bool) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(path)
	}
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w; use unix:PATH or HOST:PORT", err)
	}
	if !secure && !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("%w: %s; use 127.0.0.1, a unix socket, or 'olafctl device serve' with --tls-cert",
			ErrInsecure, address)
	}
	l, err := net.ListenTCP("tcp", tcp)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errors.New("another program listens there; stop it, or use another port")
	case err != nil:
		return nil, err
	}
	return l, nil
}

// Loopback reports whether HOST:PORT can be reached only from this host. It returns false for an invalid address.
func Loopback(address string) bool {
	tcp, err := net.ResolveTCPAddr("tcp", address)
	return err == nil && tcp.IP.IsLoopback()
}

// maxUnixPath is the maximum length of a socket path that every operating system accepts.
const maxUnixPath = 103

// listenUnix listens on a socket file. It replaces a socket left behind by a process that has ended, but no other file.
func listenUnix(path string) (net.Listener, error) {
	switch {
	case path == "":
		return nil, errors.New("a unix socket needs a path; use unix:PATH")
	case len(path) > maxUnixPath:
		return nil, fmt.Errorf("the path has %d bytes, the limit is %d; use a shorter path or 127.0.0.1:PORT",
			len(path), maxUnixPath)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, errors.New("the file exists and is not a socket; use another path")
		}
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			return nil, errors.New("it is in use by another agent; stop that agent, or use another path")
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Running is an agent that is serving on a listener.
type Running struct {
	target string
	server *grpc.Server
	done   chan error
}

// Serve starts to serve the agent on a listener and returns immediately.
func (a *Agent) Serve(l net.Listener, t *tls.Config) *Running {
	r := &Running{target: l.Addr().String(), server: grpc.NewServer(ServerOptions(t)...), done: make(chan error, 1)}
	if l.Addr().Network() == "unix" {
		r.target = "unix:" + r.target
	}
	v1.RegisterP4RuntimeServer(r.server, a)
	go func() { r.done <- ServeUntilStopped(r.server, l) }()
	return r
}

// ServeUntilStopped serves until Stop is called. It returns immediately if Stop was called before.
func ServeUntilStopped(s *grpc.Server, l net.Listener) error {
	if err := s.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Target returns the address in the form that clients dial.
func (r *Running) Target() string { return r.target }

// Close ends all sessions and waits until the listener is closed.
func (r *Running) Close() error {
	r.server.Stop()
	return <-r.done
}
