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
