package attach

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"sync"
	"time"

	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/pktgen/process"
)

// ErrBye is the reason why a worker or server ends if its client ended the session properly.
var ErrBye = errors.New("the client ended")

// fullEvery is the number of rounds after which a vector is sent at full length. Epochs have 16 bits, and a fragment
// that was not used for 2^15 rounds would seem to be ahead.
const fullEvery = 1 << 13

// Rounds implements a worker that waits for the sum in every round. It implements process.Work. A Port serves its
// client. The first frame begins with four lanes, which contain the code of the scale, the round, the length of the
// vector, and the reward in units of 1/256. The sums of the first three lanes show whether the workers have different
// values.
type Rounds struct {
	config  Config
	end     context.CancelCauseFunc
	vectors chan handed

	mu        sync.Mutex
	accepted  uint32 // number of accepted vectors
	flying    handed
	numbers   Numbers // of the vector in flight
	epoch     uint16  // epoch of the newest sum
	waits     bool    // for the sum of the vector in flight
	departure departure
	packets   int    // of all vectors so far, if they are limited
	awaits    uint64 // workers whose frames the aggregator lacked when asked; 0 if unknown
	lanes     []uint32
	attached  time.Time // when the newest client attached
	message   []byte    // contains the sum; the session writes it before the next sum arrives
}

// roundsOverhead is the number of lanes before the values. lowRound masks the part of the round number that is sent in
// a lane, so that sums fit.
const (
	roundsOverhead = 4
	lowRound       = 1<<15 - 1
)

// handed is a vector from a client, with the channel for the answer.
type handed struct {
	round    uint32
	values   []byte // little-endian float32
	reward   float32
	versions []uint32 // versions of the model's frames on which the update was computed
	at       time.Time
	pull     *Pull // set for a request for the model, which uses only at of the fields above
	answer   chan []byte
}

// NewRounds returns the work of a worker that waits. end is called once: with ErrBye when the client ends the session,
// or with the error that ends the job. The error matches ErrConfig.
func NewRounds(c Config, end context.CancelCauseFunc) (*Rounds, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Workers < 1 {
		return nil, fmt.Errorf("%w: a job of %d workers", ErrConfig, c.Workers)
	}
	return &Rounds{config: c, end: end, vectors: make(chan handed, 1)}, nil
}

// roundsLayout returns how the longest vector is split into frames.
func (c *Config) roundsLayout() endpoint.Layout {
	return endpoint.Layout{Values: max(c.Largest+roundsOverhead, c.Lanes), PerPacket: c.Lanes}
}

// RoundsJob returns the number of lanes for the longest vector of a worker that waits. It includes the lanes before the
// values.
func RoundsJob(largest, lanes int) int {
	c := Config{Largest: largest, Lanes: lanes}
	return c.roundsLayout().Values
}

func (r *Rounds) greeting() Greeting {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attached = time.Now()
	return r.config.greeting(r.accepted)
}

// Accepted returns the number of vectors that have been accepted from the client.
func (r *Rounds) Accepted() uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted
}

// serve answers the client's vectors with sums.
func (r *Rounds) serve(s *session) error {
	for {
		m, bye, err := s.next()
		if err != nil {
			return r.leave(bye, err)
		}
		var v Vector
		values, err := m.Decode(&v)
		switch {
		case m.Kind != KindVector:
			return fmt.Errorf("%w: a worker that waits takes vectors, and this is a message of kind %d", ErrProtocol, m.Kind)
		case err != nil:
			return err
		}
		if err := r.config.checkValues(values, r.config.Largest); err != nil {
			if err := s.reject(err); err != nil {
				return err
			}
			continue
		}
		if bye, err := r.exchange(s, handed{values: values, reward: v.Reward, at: time.Now(), answer: make(chan []byte, 1)}); err != nil {
			return r.leave(bye, err)
		}
	}
}

// exchange passes a vector on and sends the sum to the client.
func (r *Rounds) exchange(s *session, h handed) (bye bool, err error) {
	if r.config.Seen != nil {
		r.config.Seen(&Seen{Values: h.values, Reward: h.reward})
	}
	r.mu.Lock()
	h.round = r.accepted
	r.mu.Unlock()
	if err := s.offer(r.vectors, h); err != nil {
		return false, err
	}
	r.mu.Lock()
	r.accepted++
	r.mu.Unlock()
	message, bye, err := await(s, h.answer, func(d time.Duration) string {
		return fmt.Sprintf("waits for the sum of round %d for %v: %s", h.round, d, r.describeWait(h.round))
	})
	if err != nil {
		return bye, err
	}
	_, err = s.conn.Write(message)
	return false, err
}

// describeWait returns a text that lists the workers whose vectors are missing in a round, if they are known.
func (r *Rounds) describeWait(round uint32) string {
	var lacking []int
	if r.config.Awaited != nil {
		lacking = r.config.Awaited(round)
	} else {
		r.mu.Lock()
		for left := r.awaits; left != 0; left &= left - 1 {
			lacking = append(lacking, bits.TrailingZeros64(left))
		}
		r.mu.Unlock()
	}
	if len(lacking) == 0 {
		return "a vector of another worker is missing, or the network is slow"
	}
	who := "worker"
	if r.config.Children {
		who = "child"
	}
	if len(lacking) > 1 {
		who = map[string]string{"worker": "workers", "child": "children"}[who]
	}
	text := fmt.Sprintf("the vector of %s %s is missing", who, strings.Trim(fmt.Sprint(lacking), "[]"))
	if r.config.Children {
		text += " at the aggregator"
	}
	return text
}

// offer passes a vector on when the previous vector has been taken.
func (s *session) offer(to chan<- handed, h handed) error {
	select {
	case to <- h:
		return nil
	case <-s.done:
		return errEnded
	case m, ok := <-s.requests:
		_, _, err := s.accept(m, ok)
		return errors.Join(err, fmt.Errorf("%w: a message of kind %d before the last one was answered", ErrProtocol, m.Kind))
	}
}

// leave ends the work if the client ended the session properly.
func (r *Rounds) leave(bye bool, err error) error {
	if bye {
		r.end(ErrBye)
	}
	return err
}

// Handed is a client's vector for a network that runs in this process. The values are in little-endian float32 and
// valid until the vector is answered.
type Handed struct {
	Values []byte
	Reward float32
	At     time.Time // when the client handed over the vector
	Since  time.Time // when the client attached
}

// Take waits for a vector from the client. The caller must answer it with Give. ok is false if the context ends first.
func (r *Rounds) Take(ctx context.Context) (h Handed, ok bool) {
	select {
	case v := <-r.vectors:
		return r.takeVector(&v), true
	case <-ctx.Done():
		return h, false
	}
}

// TryTake is like Take but does not wait.
func (r *Rounds) TryTake() (h Handed, ok bool) {
	select {
	case v := <-r.vectors:
		return r.takeVector(&v), true
	default:
		return h, false
	}
}

func (r *Rounds) takeVector(v *handed) Handed {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flying = *v
	return Handed{Values: v.values, Reward: v.reward, At: v.at, Since: r.attached}
}

// Give answers the taken vector with a sum, whose values are in float32 and at least as many as in the vector.
func (r *Rounds) Give(sum Sum, values []uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum.Round = r.flying.round
	r.message = begin(r.message[:0], KindSum, sum)
	for _, v := range values[:len(r.flying.values)/4] {
		r.message = binary.LittleEndian.AppendUint32(r.message, v)
	}
	r.flying.answer <- seal(r.message, 0) // does not block: the channel has room for one answer
}

// Compute implements process.Work. It waits for a vector from the client and converts it to lanes.
func (r *Rounds) Compute(ctx context.Context, vector uint32) process.Computed {
	select {
	case <-ctx.Done():
		return process.Computed{}
	case h := <-r.vectors:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.flying, r.numbers, r.awaits, r.waits = h, Numbers{}, 0, true
		if err := r.departure.check(h.round); err != nil {
			r.end(err)
			return process.Computed{}
		}
		if r.config.Conversion != nil {
			r.lanes = r.config.appendFloats(r.lanes[:0], &h, &r.numbers)
			if err := r.countPackets(len(r.lanes)); err != nil {
				r.end(err)
				return process.Computed{}
			}
			return process.Computed{Values: r.lanes}
		}
		length := len(h.values) / 4
		r.lanes = append(r.lanes[:0], uint32(r.config.code()), h.round&lowRound, uint32(length),
			uint32(rewardOf(h.reward)))
		r.lanes = r.numbers.appendLanes(r.lanes, h.values, r.config.Scale)
		least := r.config.Lanes
		if vector%fullEvery == 0 {
			least = r.config.roundsLayout().Values
		}
		for len(r.lanes) < least {
			r.lanes = append(r.lanes, 0)
		}
		return process.Computed{Values: r.lanes}
	}
}

// CountPackets counts the packets of a vector, for a network in this process. The error matches ErrEarlyEnd if all vectors
// together have more than Config.Numbers.
func (r *Rounds) CountPackets(lanes int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.countPackets(lanes)
}

// countPackets counts like CountPackets, for callers that hold r.mu.
func (r *Rounds) countPackets(lanes int) error {
	if r.config.Numbers == 0 {
		return nil
	}
	perPacket := r.config.Lanes - Overhead
	if r.packets += (lanes + perPacket - 1) / perPacket; r.packets <= r.config.Numbers {
		return nil
	}
	return fmt.Errorf("%w: frames of %s can number only %d packets of a worker, and its vectors have more; use fewer or "+
		"shorter vectors", ErrEarlyEnd, r.config.System, r.config.Numbers)
}

// rewardOf returns a reward in units of 1/256, limited to the range of int32. It returns 0 for NaN.
func rewardOf(r float32) int32 {
	v := math.RoundToEven(float64(r) * 256)
	if math.IsNaN(v) {
		return 0
	}
	return int32(min(max(v, -math.MaxInt32), math.MaxInt32))
}

// CheckFrame checks the first frame of a sum. It must do so before the sum is complete, because the sum never becomes
// complete if workers disagree. It also stores for which workers the aggregator lacks frames. The error matches
// ErrDisagree.
func (r *Rounds) CheckFrame(p *program.Packet, lanes []uint32) error {
	if r.config.Conversion != nil { // CheckFirst and Apply check the sum instead
		if p.Kind == program.Control && p.Action == xagg.Awaits {
			r.mu.Lock()
			r.awaits = p.Bitmap
			r.mu.Unlock()
		}
		return nil
	}
	r.hearAwaited(p)
	if p.Kind != program.Result || p.Seg != 0 || len(lanes) < roundsOverhead {
		return nil
	}
	n := int32(r.config.Workers)
	if int32(lanes[0]) != n*r.config.code() {
		return fmt.Errorf("%w: a worker has another scale than this one, which is %g; start all with the same --scale "+
			"and --attach", ErrDisagree, r.config.Scale)
	}
	r.mu.Lock()
	length, round := int32(len(r.flying.values)/4), int32(r.flying.round&lowRound)
	r.mu.Unlock()
	if int32(lanes[1]) != n*round { // from another round, or a repeat
		return nil
	}
	if sum := int32(lanes[2]); sum != n*length {
		return fmt.Errorf("%w: this worker's vector has %d values, and the %d workers' vectors have %d in all; all must "+
			"be of one length in a round", ErrDisagree, length, n, sum)
	}
	return nil
}

// hearAwaited stores an aggregator's answer about missing frames, unless the current vector already has its sum.
func (r *Rounds) hearAwaited(p *program.Packet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case p.Kind == program.Result:
		r.epoch, r.awaits = p.Round, 0
	case p.Kind == program.Control && p.Action == xagg.Awaits && (r.accepted < 2 || int16(p.Round-r.epoch) > 0):
		r.awaits = p.Bitmap
	}
}

// Apply implements process.Work. It passes a sum to the client that sent the vector.
func (r *Rounds) Apply(a *endpoint.Aggregate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.config.Conversion != nil {
		r.applyFloats(a)
		return
	}
	r.waits = false
	length := len(r.flying.values) / 4
	sum := Sum{Round: a.Number, Workers: a.Vectors, Reward: float32(int32(a.Values[3])) / 256}
	if a.Torn {
		sum.Torn = 1
	}
	r.message = begin(r.message[:0], KindSum, sum)
	r.message = r.numbers.appendValues(r.message, a.Values[roundsOverhead:roundsOverhead+length], r.config.Scale)
	sum.Numbers = r.numbers // counted by appendValues
	copy(r.message, begin(nil, KindSum, sum))
	r.flying.answer <- seal(r.message, 0) // does not block: the channel has room for one answer
}
