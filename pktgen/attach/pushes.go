package attach

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// Pushes implements a worker that sends updates and does not wait for sums. It implements process.Work and
// endpoint.Gate. A Port serves its client. Every frame begins with two lanes, which contain the code of the scale and
// the version of the model's frame from which the update was computed.
type Pushes struct {
	config  Config
	end     context.CancelCauseFunc
	gate    endpoint.Gate // transmission control; nil sends every update
	vectors chan handed

	mu         sync.Mutex
	accepted   uint32
	flying     handed
	numbers    Numbers
	lanes      []uint32
	queue      Queue
	model      []uint32 // lanes of the newest frames, without overhead
	versions   []uint32 // versions of the frames; 0 before the first version
	lengths    []int    // number of values in each frame
	pulled     []uint32 // versions of the client's frames
	pulls      Pulls
	changed    chan struct{}
	attached   time.Time // when the newest client attached
	asking     handed    // the pull request to answer, with Config.Turns
	floatModel []byte    // the model, with Config.Floats
}

// NewPushes returns the work of a worker that does not wait. gate decides which updates are sent; if it is nil, all are
// sent. end has the same meaning as for NewRounds. The error matches ErrConfig.
func NewPushes(c Config, gate endpoint.Gate, end context.CancelCauseFunc) (*Pushes, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	w := &Pushes{config: c, end: end, gate: gate, vectors: make(chan handed, 1), changed: make(chan struct{})}
	frames := c.frames(c.Largest)
	w.model, w.versions = make([]uint32, frames*c.frame()), make([]uint32, frames)
	w.lengths, w.pulled = make([]int, frames), make([]uint32, frames)
	return w, nil
}

// frame returns the number of values in a frame. frames returns the number of frames for a number of values.
func (c *Config) frame() int            { return c.Lanes - Overhead }
func (c *Config) frames(values int) int { return max(1, (values+c.frame()-1)/c.frame()) }

// PushLayout returns how the longest vector of a worker that does not wait is split into frames.
func PushLayout(largest, lanes int) endpoint.Layout {
	c := Config{Lanes: lanes}
	return endpoint.Layout{Values: largest + Overhead*c.frames(largest), PerPacket: lanes}
}

func (w *Pushes) greeting() Greeting {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.pulled)
	w.attached = time.Now()
	return w.config.greeting(w.accepted)
}

// serve handles the client's updates and its requests for the model.
func (w *Pushes) serve(s *session) error {
	for {
		m, bye, err := s.next()
		if err == nil {
			switch m.Kind {
			case KindVector:
				bye, err = w.push(s, m)
			case KindPull:
				bye, err = w.pull(s, m)
			default:
				err = fmt.Errorf("%w: a worker that does not wait takes vectors and pulls, and this is a message of kind %d",
					ErrProtocol, m.Kind)
			}
		}
		if bye {
			w.end(ErrBye)
		}
		if err != nil {
			return err
		}
	}
}

// push passes an update on and sends the client the outcome.
func (w *Pushes) push(s *session, m Message) (bye bool, err error) {
	var v Vector
	values, err := m.Decode(&v)
	if err != nil {
		return false, err
	}
	if err := w.config.checkValues(values, w.config.Largest); err != nil {
		return false, s.reject(err)
	}
	w.mu.Lock()
	h := handed{round: w.accepted, values: values, reward: v.Reward, versions: slices.Clone(w.pulled), at: time.Now(),
		answer: make(chan []byte, 1)}
	w.mu.Unlock()
	if w.config.Seen != nil {
		w.config.Seen(&Seen{Values: values, Reward: v.Reward, Version: slices.Max(h.versions)})
	}
	if err := s.offer(w.vectors, h); err != nil {
		return false, err
	}
	w.mu.Lock()
	w.accepted++
	w.mu.Unlock()
	message, bye, err := await(s, h.answer, func(d time.Duration) string {
		if w.config.Floats && !w.config.Turns {
			return fmt.Sprintf("waits for %v for the server's answer to update %d", d, h.round)
		}
		return fmt.Sprintf("waits for %v to hand an update over", d)
	})
	if err == nil {
		_, err = s.conn.Write(message)
	}
	return bye, err
}

// pull sends the model to the client when it is newer than the version in the request.
func (w *Pushes) pull(s *session, m Message) (bye bool, err error) {
	var p Pull
	if _, err := m.Decode(&p); err != nil {
		return false, err
	}
	if w.config.Turns {
		return w.offerPull(s, &p)
	}
	for {
		w.mu.Lock()
		model, values := w.current()
		changed, newer := w.changed, p.Wait == 0 || model.Version > p.After
		if newer {
			w.notePull(&model, values)
		}
		w.mu.Unlock()
		switch {
		case newer:
			return false, s.send(KindModel, model, values)
		case w.config.Floats:
			return false, s.reject(w.errNoModel(&p))
		}
		_, bye, err := await(s, changed, func(d time.Duration) string {
			return fmt.Sprintf("waits for a model newer than version %d for %v", p.After, d)
		})
		if err != nil {
			return bye, err
		}
	}
}

// Pulls counts the models with values that a client pulled, and how many of them were torn. The frames of a torn model
// contain different numbers of updates.
type Pulls struct{ Models, Torn uint64 }

// Pulls returns the counts so far.
func (w *Pushes) Pulls() Pulls {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pulls
}

// notePull counts a pull of the current model and stores the versions of the model's frames.
func (w *Pushes) notePull(m *Model, values []byte) {
	copy(w.pulled, w.versions)
	if len(values) > 0 {
		w.pulls.Models++
	}
	if m.Oldest < m.Version {
		w.pulls.Torn++
	}
}

// current returns the model up to the last frame that arrived. If an earlier frame is missing, there are no values.
func (w *Pushes) current() (m Model, values []byte) {
	m.Queue = w.queue
	if w.config.Floats {
		m.Version, m.Oldest = w.versions[0], w.versions[0]
		return m, w.floatModel
	}
	frames := len(w.versions)
	for frames > 0 && w.versions[frames-1] == 0 {
		frames--
	}
	for i, v := range w.versions[:frames] {
		if v == 0 { // an earlier frame is missing
			return Model{Queue: w.queue}, nil
		}
		if m.Version = max(m.Version, v); i == 0 || v < m.Oldest {
			m.Oldest = v
		}
	}
	if frames == 0 {
		return m, nil
	}
	length := (frames-1)*w.config.frame() + w.lengths[frames-1]
	var n Numbers
	values = n.appendValues(nil, w.model[:min(length, w.config.Largest)], w.config.Scale)
	m.Saturated = n.Saturated
	return m, values
}

// Compute implements process.Work. It waits for an update from the client and converts it to lanes.
func (w *Pushes) Compute(ctx context.Context, _ uint32) process.Computed {
	select {
	case <-ctx.Done():
		return process.Computed{}
	case h := <-w.vectors:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.flying = h
		return w.convert()
	}
}

// convert converts the client's current update to lanes.
func (w *Pushes) convert() process.Computed {
	h := &w.flying
	w.numbers, w.lanes = Numbers{}, w.lanes[:0]
	if w.config.Floats {
		w.lanes = appendUpdate(w.lanes, h)
		return process.Computed{Values: w.lanes}
	}
	for i, at := 0, 0; at == 0 || at < len(h.values); i, at = i+1, at+4*w.config.frame() {
		w.lanes = append(w.lanes, uint32(w.config.code()), h.versions[i])
		w.lanes = w.numbers.appendLanes(w.lanes, h.values[at:min(len(h.values), at+4*w.config.frame())], w.config.Scale)
	}
	return process.Computed{Values: w.lanes, Reward: rewardOf(h.reward)}
}

// RecordStatus implements endpoint.Gate. It stores the status of the queue.
func (w *Pushes) RecordStatus(now olaf.Time, s olaf.QueueStatus) {
	w.mu.Lock()
	w.queue = Queue{Occupancy: s.Occupancy, Clusters: s.ActiveClusters, Slots: s.Slots}
	w.mu.Unlock()
	if w.gate != nil {
		w.gate.RecordStatus(now, s)
	}
}

// Sends implements endpoint.Gate. It asks the gate whether to send the client's update, and reports the result to the
// client.
func (w *Pushes) Sends(now olaf.Time) bool {
	sends := w.gate == nil || w.gate.Sends(now)
	w.Answer(sends)
	return sends
}

// Answer reports to the client whether its update was sent.
func (w *Pushes) Answer(sent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := Pushed{Round: w.flying.round, Numbers: w.numbers, Queue: w.queue}
	if !sent {
		p.Withheld = 1
	}
	w.flying.answer <- Append(nil, KindPushed, p, nil) // does not block: the channel has room for one answer
}

// Apply implements process.Work. It stores a frame of the model, or with Config.Floats the whole model.
func (w *Pushes) Apply(a *endpoint.Aggregate) {
	if w.config.Floats {
		w.applyModel(a)
		return
	}
	if len(a.Values) < Overhead {
		return
	}
	if int32(a.Values[0]) != w.config.code() {
		w.end(fmt.Errorf("%w: the server has another scale than this worker, which is %g; start both with the same "+
			"--scale and --attach", ErrDisagree, w.config.Scale))
		return
	}
	frame := a.First / w.config.Lanes
	version, values := a.Values[1], a.Values[Overhead:]
	w.mu.Lock()
	defer w.mu.Unlock()
	if frame >= len(w.versions) || len(values) == 0 ||
		version <= w.versions[frame] { // a newer answer has already arrived
		return
	}
	w.versions[frame] = version
	place := w.model[frame*w.config.frame():][:w.config.frame()]
	w.lengths[frame] = copy(place, values)
	clear(place[w.lengths[frame]:])
	close(w.changed)
	w.changed = make(chan struct{})
}
