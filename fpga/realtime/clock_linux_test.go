package realtime

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestClockOf checks that the clock equals the kernel's, although time passes between most readings of the two clocks,
// as on a busy machine.
func TestClockOf(t *testing.T) {
	const lost = 20 * time.Millisecond
	kernel := func() int64 {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // this clock always exists
		return t.Nano()
	}
	calls := 0
	c, err := measureOffset(func() (int64, error) {
		if calls++; calls != readings/2 {
			time.Sleep(lost)
		}
		return kernel(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before, now, after := kernel(), c.now(), kernel()
	if slack := int64(lost / 2); now < before-slack || now > after+slack {
		t.Errorf("the clock says %d between %d and %d of the kernel's", now, before, after)
	}
}

// TestWritesWakeIdleCard checks that a card that was not used for a long time wakes as soon as a register is written.
func TestWritesWakeIdleCard(t *testing.T) {
	c := &Card{written: make(chan struct{}, 1)}
	for range 2 { // further writes do not block
		c.noteWrite()
	}
	began := time.Now()
	c.awaitWrite(time.Hour)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the card woke after %v", took)
	}
}
