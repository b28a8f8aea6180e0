package attach

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/olafctl/olaf/pktgen/process"
)

// Request is a request that the client of an asynchronous worker makes to a network in this process (Config.Turns).
// It is either a request for the model, to be answered with AnswerPull, or an update, to be answered with Answer.
type Request struct {
	Pull    *Pull
	Handed         // set for an update; At is also set for a pull
	Version uint32 // version of the model that the client pulled last
}

// Ask waits for the next request from the client. ok is false if the context ends first.
func (w *Pushes) Ask(ctx context.Context) (a Request, ok bool) {
	select {
	case h := <-w.vectors:
		w.mu.Lock()
		defer w.mu.Unlock()
		a = Request{Pull: h.pull, Handed: Handed{Values: h.values, Reward: h.reward, At: h.at, Since: w.attached}}
		if h.pull != nil {
			w.asking = h
		} else {
			w.flying, a.Version = h, slices.Max(h.versions)
		}
		return a, true
	case <-ctx.Done():
		return a, false
	}
}

// Lanes returns the lanes of the update that Ask returned most recently. They are valid until the next update.
func (w *Pushes) Lanes() process.Computed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.convert()
}

// CanPull reports whether the current model is new enough to answer a request for the model.
func (w *Pushes) CanPull(p *Pull) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, _ := w.current()
	return p.Wait == 0 || m.Version > p.After
}

// AnswerPull sends the client the requested model.
func (w *Pushes) AnswerPull() {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, values := w.current()
	w.notePull(&m, values)
	w.asking.answer <- Append(nil, KindModel, m, values) // does not block: the channel has room for one answer
}

// RefusePull answers a request for a newer model with an error, because the model changes only with the worker's updates.
// The client may request the model again.
func (w *Pushes) RefusePull(p *Pull) {
	w.asking.answer <- Append(nil, KindError, Failure{CodeVector}, []byte(w.errNoModel(p).Error()))
}

// errNoModel returns the error for a request for a model that does not come before the worker's next update.
func (w *Pushes) errNoModel(p *Pull) error {
	return fmt.Errorf("worker %d waits for a model newer than version %d, and %s has none for it before its next update; "+
		"pull without waiting", w.config.Worker, p.After, w.config.System)
}

// SetModel replaces the model of a worker with Config.Floats. The values are in little-endian float32, and the version
// must be above 0.
func (w *Pushes) SetModel(version uint32, values []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.versions[0], w.floatModel = version, values
}

// offerPull passes a request for the model to the network in this process, which answers it.
func (w *Pushes) offerPull(s *session, p *Pull) (bye bool, err error) {
	h := handed{pull: p, at: time.Now(), answer: make(chan []byte, 1)}
	if err := s.offer(w.vectors, h); err != nil {
		return false, err
	}
	message, bye, err := await(s, h.answer, func(d time.Duration) string {
		return fmt.Sprintf("waits for %v for a model newer than version %d, or for its turn in virtual time", d, p.After)
	})
	if err == nil {
		_, err = s.conn.Write(message)
	}
	return bye, err
}
