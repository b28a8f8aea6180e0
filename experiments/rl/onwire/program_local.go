package onwire

import (
	"context"
	"errors"
	"sync"

	"github.com/olafctl/olaf/pktgen/attach"
)

// localNet is a network in this process. Programs attach to it in the same way as to daemons.
type localNet interface {
	// leave removes a worker whose program has ended, even if the program did not say goodbye.
	leave(worker int)
	// failure returns the error that made the network itself fail, or nil if it did not fail.
	failure() error
	// complete adds the network's data to a run whose programs have ended.
	complete(r *ProgramRun) error
	// end stops the network and waits for it. It may be called twice.
	end()
}

// sockets manages the open sockets of a network in this process.
type sockets struct {
	ctx   context.Context
	fail  context.CancelCauseFunc
	ports []*attach.Port
	tasks *sync.WaitGroup
}

func newSockets(ctx context.Context) sockets {
	s := sockets{tasks: new(sync.WaitGroup)}
	s.ctx, s.fail = context.WithCancelCause(ctx)
	return s
}

// ends returns a function to be called when a client ends. It ends the client's work with bye and, unless the client
// said goodbye, the network.
func (s *sockets) ends(bye context.CancelFunc) context.CancelCauseFunc {
	return func(why error) {
		if !errors.Is(why, attach.ErrBye) {
			s.fail(why)
		}
		bye()
	}
}

// listen opens a socket and serves the client that connects to it.
func (s *sockets) listen(socket string, h attach.Handler) error {
	port, err := attach.Listen(socket, func(string, ...any) {})
	if err != nil {
		return err
	}
	s.ports = append(s.ports, port)
	s.tasks.Go(func() { port.Serve(h) })
	return nil
}

// failure implements localNet. It returns the reason why the network was stopped, or nil if it was not stopped or a
// program ended normally.
func (s *sockets) failure() error {
	why := context.Cause(s.ctx)
	if errors.Is(why, context.Canceled) || errors.Is(why, attach.ErrBye) {
		return nil
	}
	return why
}

// close closes all sockets. Clients receive why as the reason.
func (s *sockets) close(why error) {
	for _, p := range s.ports {
		_ = p.Close(why) // their folder is removed anyway
	}
}

// end stops the network and waits until it has stopped.
func (s *sockets) end() {
	s.fail(nil)
	s.close(nil)
	s.tasks.Wait()
}

// stampPoints sets the time of each worker's points to the virtual time of its vectors. The i-th point belongs to the
// i-th vector.
func (r *ProgramRun) stampPoints(readyNS func(worker int) []int64) {
	r.TookNS = 0
	for k, points := range r.Points {
		ready := readyNS(k)
		for i := range points {
			if len(ready) > 0 {
				points[i].AtNS = ready[min(i, len(ready)-1)]
				r.TookNS = max(r.TookNS, points[i].AtNS)
			}
		}
	}
}
