package p4ctl

import (
	"context"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// WorkerUpdate returns the P4Runtime update that writes one worker.
func WorkerUpdate(op v1.Update_Type, w Worker) *v1.Update {
	return object{kind: kindWorker, key: addressKey(w.Address), a: uint32(w.Cluster), b: uint32(w.ID)}.toUpdate(op)
}

// AwaitPrimary waits until the session is primary, even if it has to reconnect.
func (s *Session) AwaitPrimary(ctx context.Context) error {
	for {
		s.mu.Lock()
		state, changed, err := s.state, s.changed, s.err
		s.mu.Unlock()
		switch state {
		case Primary:
			return nil
		case Closed:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
