package attach

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// Updates implements the server for workers that do not wait. Its client takes the frames one by one and answers each
// frame with the values of the model at the same place. Updates implements process.LaterWork, so that the server can
// receive packets while the client computes.
type Updates struct {
	config   Config
	end      context.CancelCauseFunc
	logf     func(format string, args ...any)
	arrivals chan *arrival // has room for one, since the endpoint applies one at a time

	mu       sync.Mutex
	number   uint32           // number of updates so far
	versions map[place]uint32 // number of updates in the answers so far, by place
	refused  int              // number of frames with another scale
}

// place identifies a frame in the model of a cluster.
type place struct{ job, first uint32 }

// arrival is a frame that the client has not answered yet.
type arrival struct {
	a      *endpoint.Aggregate
	done   func()
	update Update
	values []byte
	reply  []byte // answer to ApplyVector, which has no field a
}

// NewUpdates returns the work of a server. end has the same meaning as for NewRounds. logf is called if workers
// disagree. The error matches ErrConfig.
func NewUpdates(c Config, end context.CancelCauseFunc, logf func(format string, args ...any)) (*Updates, error) {
	c.Server = true
	if err := c.Check(); err != nil {
		return nil, err
	}
	return &Updates{config: c, end: end, logf: logf, arrivals: make(chan *arrival, 1),
		versions: map[place]uint32{}}, nil
}

func (u *Updates) greeting() Greeting {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.config.greeting(u.number)
}

// Compute implements process.Work. It returns nothing, because a server computes no vectors.
func (*Updates) Compute(context.Context, uint32) process.Computed { return process.Computed{} }

// Apply implements process.Work for callers that do not use ApplyLater. It answers a frame without values.
func (*Updates) Apply(a *endpoint.Aggregate) { a.Values = nil }

// ApplyLater implements process.LaterWork. It stores a frame for the client and calls done when the frame has been
// answered.
func (u *Updates) ApplyLater(a *endpoint.Aggregate, done func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.config.Floats {
		u.applyFloats(a, done)
		return
	}
	if len(a.Values) < Overhead || int32(a.Values[0]) != int32(a.Vectors)*u.config.code() {
		if u.refused++; u.refused == 1 {
			u.logf("worker %d sends with another scale than this server's, which is %g, or without --attach; its updates "+
				"are refused", a.Worker, u.config.Scale)
		}
		a.Values = []uint32{uint32(u.config.code()), 0}
		done()
		return
	}
	k := &arrival{a: a, done: done}
	var n Numbers
	k.values = n.appendValues(nil, a.Values[Overhead:], u.config.Scale)
	k.update = Update{
		Count: a.Vectors, First: uint32(a.First / u.config.Lanes * u.config.frame()),
		Job: uint32(a.Job), Worker: uint32(a.Worker),
		Vector: a.Vector, VersionSum: uint64(a.Values[1]), GenNS: a.Trace.NewestNS, Reward: float32(a.Reward) / 256,
		Dropped: uint32(a.Dropped), Waiting: uint32(a.Waiting), Saturated: n.Saturated,
	}
	u.store(k)
}

// applyFloats stores an update that travelled as float32. The caller must hold u.mu.
func (u *Updates) applyFloats(a *endpoint.Aggregate, done func()) {
	update, values, ok := readUpdate(a)
	if !ok {
		if u.refused++; u.refused == 1 {
			u.logf("worker %d waits for sums; start it with the same --mode as this server, and with --attach; its vectors are "+
				"refused", a.Worker)
		}
		a.Values = modelLanes(0, nil)
		done()
		return
	}
	u.store(&arrival{a: a, done: done, update: update, values: values})
}

// store numbers an update and passes it to the client. The caller must hold u.mu.
func (u *Updates) store(k *arrival) {
	k.update.Number = u.number
	u.number++
	k.update.Version = u.versions[place{k.update.Job, k.update.First}]
	u.arrivals <- k
}

// ApplyVector passes an update from a network in this process to the client and returns the values in the client's
// answer, or none if the answer is only an ACK. Values are in little-endian float32. It sets the number of the update.
// ok is false if the context ended first.
func (u *Updates) ApplyVector(ctx context.Context, update Update, values []byte) (reply []byte, ok bool) {
	done := make(chan struct{})
	k := &arrival{done: func() { close(done) }, update: update, values: values}
	u.mu.Lock()
	k.update.Number = u.number
	u.number++
	u.mu.Unlock()
	select {
	case u.arrivals <- k:
	case <-ctx.Done(): // the update before it may never be taken
		return nil, false
	}
	select {
	case <-done:
		return k.reply, true
	case <-ctx.Done():
		return nil, false
	}
}

// serve passes frames to the client and the client's answers to the workers. If a client did not answer a frame, the
// next client receives it.
func (u *Updates) serve(s *session) error {
	for {
		m, bye, err := s.next()
		if err == nil && m.Kind != KindTake {
			err = fmt.Errorf("%w: a server takes an update first, and this is a message of kind %d", ErrProtocol, m.Kind)
		}
		var k *arrival
		if err == nil {
			k, bye, err = await(s, u.arrivals, func(d time.Duration) string {
				return fmt.Sprintf("waits for an update for %v",
					d)
			})
		}
		if err == nil {
			if bye, err = u.answer(s, k); err != nil {
				select {
				case u.arrivals <- k: // does not block: the endpoint waits for this update
				case <-s.done: // not needed once the session has ended
				}
			}
		}
		if bye {
			u.end(ErrBye)
		}
		if err != nil {
			return err
		}
	}
}

// answer sends a frame to the client and waits for the reply.
func (u *Updates) answer(s *session, k *arrival) (bye bool, err error) {
	if err := s.send(KindUpdate, k.update, k.values); err != nil {
		return false, err
	}
	for {
		m, bye, err := s.next()
		if err != nil {
			return bye, err
		}
		var r Reply
		values, err := m.Decode(&r)
		switch {
		case m.Kind != KindReply:
			return false, fmt.Errorf("%w: update %d needs a reply, and this is a message of kind %d", ErrProtocol,
				k.update.Number, m.Kind)
		case err != nil:
			return false, err
		case r.Number != k.update.Number:
			return false, fmt.Errorf("%w: a reply to update %d, and %d is the one to answer", ErrProtocol, r.Number,
				k.update.Number)
		}
		if err := u.config.checkValues(values, u.config.frame()); err != nil {
			if err := s.reject(err); err != nil {
				return false, err
			}
			continue
		}
		u.reply(k, values)
		return false, nil
	}
}

// reply answers the workers of a frame with values of the model.
func (u *Updates) reply(k *arrival, values []byte) {
	if k.a == nil {
		k.reply = append([]byte(nil), values...)
		k.done()
		return
	}
	version := k.update.Version + k.update.Count
	u.mu.Lock()
	u.versions[place{k.update.Job, k.update.First}] = version
	u.mu.Unlock()
	k.a.Values = nil
	switch {
	case u.config.Floats:
		k.a.Values = modelLanes(version, values)
	case len(values) > 0:
		var n Numbers
		k.a.Values = n.appendLanes([]uint32{uint32(u.config.code()), version}, values, u.config.Scale)
	}
	k.done()
}
