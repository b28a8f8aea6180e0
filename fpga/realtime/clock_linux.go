package realtime

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/fpga/netlab"
)

// clock reads the kernel's monotonic clock without a system call. The kernel programs use the same clock to timestamp
// their decisions.
type clock struct {
	zero   time.Time
	zeroNS int64
}

func newClock() (clock, error) {
	return measureOffset(func() (int64, error) {
		var t unix.Timespec
		err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
		return t.Nano(), err
	})
}

// readings is the number of attempts to read both clocks at the same time. The kernel may interrupt the thread between
// two readings, and this delay would become a permanent offset between the programs' timestamps and ours.
const readings = 16

// measureOffset reads both clocks several times and returns the two readings that were closest together.
func measureOffset(read func() (int64, error)) (best clock, err error) {
	closest := time.Duration(math.MaxInt64)
	for range readings {
		zero := time.Now()
		ns, err := read()
		if err != nil {
			return clock{}, err
		}
		if elapsed := time.Since(zero); elapsed < closest {
			best, closest = clock{zero, ns}, elapsed
		}
	}
	return best, nil
}

func (c *clock) now() int64 { return c.zeroNS + int64(time.Since(c.zero)) }

// A wait sleeps until shortly before its end and then polls the clock, because the kernel wakes a thread late, by up to
// a millisecond if another thread is in the kernel. Longer polling improves timing but takes the processor from other
// threads. Some sleep is required: the kernel suspends real-time threads that never sleep.
const (
	senderSpinNS = 40_000
	outputSpinNS = 600_000
	sleepShare   = 4         // at least a quarter of every wait
	napNS        = 1_000_000 // maximum, so that a thread notices a stop request
)

// waitUntil waits until an instant and polls the clock for the last spin nanoseconds. It returns false if stop is set
// earlier.
func (c *clock) waitUntil(at, spin int64, stop *atomic.Bool) bool {
	left := at - c.now()
	for asleep := max(left/sleepShare, left-spin); !stop.Load(); left = at - c.now() {
		switch {
		case left <= 0:
			return true
		case asleep > leastNapNS:
			napFor(min(asleep, napNS))
			asleep = at - c.now() - spin
		}
	}
	return false
}

// leastNapNS is the time that it takes to fall asleep and wake up. Shorter waits are not worth a sleep.
const leastNapNS = 10_000

// spinFor waits for the given time without sleeping.
func (c *clock) spinFor(ns int64) {
	for until := c.now() + ns; c.now() < until; {
		yieldThread()
	}
}

// yieldThread lets other threads with the same priority run, such as the threads of another card.
func yieldThread() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// napFor sleeps without notifying Go's scheduler, as netlab.Socket does for sends. ownPlaces reserves threads for this.
func napFor(ns int64) {
	t := unix.NsecToTimespec(ns)
	// A signal ends the sleep early; callers check the clock.
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

// Thread configures a timing thread by its priority and its processor. The thread is bound to the processor only if the
// machine has at least two.
type Thread struct{ processor, priority uint32 }

// Kinds of threads. Arrival preempts Senders, as an interrupt preempts other work in the kernel.
var (
	Senders = Thread{0, 1}
	Arrival = Thread{0, 2}
	Output  = Thread{1, 1}
)

// PriorityRight is the right to run timing threads before all other programs. Without it, the threads compete with
// other programs and process fewer frames.
var PriorityRight = netlab.Right{Name: "CAP_SYS_NICE", Number: unix.CAP_SYS_NICE,
	For: "run timing threads before other programs"}

// OwnThread locks the calling goroutine to a thread with exact timers and, if permitted, real-time priority. The thread
// must sleep regularly; the kernel reserves a part of every second for other threads. The thread is bound to a
// processor, because the kernel might otherwise put two threads that wait for each other on the same one.
func OwnThread(t Thread) {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: t.priority},
		0)
	var allowed, one unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil || allowed.Count() < 2 {
		return
	}
	one.Set(nthLast(&allowed, int(t.processor)))
	_ = unix.SchedSetaffinity(0, &one)
}

// nthLast returns the n-th last processor in a set, counted from 0. Processors at the end are used because the first
// ones handle most interrupts.
func nthLast(set *unix.CPUSet, n int) int {
	for cpu := 64*len(set) - 1; cpu >= 0; cpu-- {
		if set.IsSet(cpu) {
			if n == 0 {
				return cpu
			}
			n--
		}
	}
	return 0
}
