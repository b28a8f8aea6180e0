package capture

import (
	"errors"
	"testing"
)

// liveStamps is a live source of packets with these stamps that is idle afterwards.
type liveStamps []int64

func (l *liveStamps) Next(p *Packet) error {
	if len(*l) == 0 {
		return ErrIdle
	}
	*p = Packet{UnixNS: (*l)[0], Data: []byte{byte((*l)[0])}, Wire: 1}
	*l = (*l)[1:]
	return nil
}

// TestRecording checks that packets are recorded in order and once each, after the window has passed, and that no
// packet is lost at a requested end.
func TestRecording(t *testing.T) {
	source := liveStamps{20, 10, 30, 50, 40}
	r := Recording{Source: &source, Order: Order{WindowNS: 25}}
	for _, step := range []struct {
		take          int // 0 flushes
		idle          bool
		taken, passed int64
		first, last   int64
	}{
		{3, false, 3, 0, 0, 0}, // 30 is not 25 younger than 10
		{1, false, 4, 2, 10, 20},
		{9, true, 5, 2, 10, 20},
		{0, false, 5, 5, 10, 50},
		{1, true, 5, 5, 10, 50},
	} {
		var idle bool
		var err error
		if step.take == 0 {
			err = r.Flush()
		} else {
			idle, err = r.Take(step.take)
		}
		passed := r.Account.Losses().Packets
		if err != nil || idle != step.idle || int64(r.Taken) != step.taken || passed != step.passed ||
			r.FirstNS != step.first || r.LastNS != step.last {
			t.Fatalf("%+v: idle %v, taken %d, passed on %d, from %d to %d, %v", step, idle, r.Taken, passed, r.FirstNS,
				r.LastNS, err)
		}
	}
}

// TestFailedWriteEndsRecording checks that a failed write ends a recording and that nothing is counted afterwards.
func TestFailedWriteEndsRecording(t *testing.T) {
	source := liveStamps{1, 2}
	broken := errors.New("no room")
	r := Recording{Source: &source, Unwritten: broken}
	if idle, err := r.Take(2); idle || !errors.Is(err, broken) || r.Taken != 1 || r.Account.Losses().Packets != 0 {
		t.Errorf("%v after %d taken, %+v", err, r.Taken, r.Account.Losses())
	}
	if err := r.Flush(); !errors.Is(err, broken) {
		t.Errorf("flushed: %v", err)
	}
}
