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

// clock reads the kernel's monotonic clock, on which programs stamp what they decide, without asking the kernel.
type clock struct {
	zero   time.Time
	zeroNS int64
}

func newClock() (clock, error) {
	return clockOf(func() (int64, error) {
		var t unix.Timespec
		err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
		return t.Nano(), err
	})
}

// readings is how often the two clocks are read: the kernel may take the processor away between them, and what passes then would
// stand between the programs' stamps and ours for as long as the card is open.
const readings = 16

// clockOf keeps the two readings that were closest together.
func clockOf(read func() (int64, error)) (best clock, err error) {
	closest := time.Duration(math.MaxInt64)
	for range readings {
		zero := time.Now()
		ns, err := read()
		if err != nil {
			return clock{}, err
		}
		if apart := time.Since(zero); apart < closest {
			best, closest = clock{zero, ns}, apart
		}
	}
	return best, nil
}

func (c *clock) now() int64 { return c.zeroNS + int64(time.Since(c.zero)) }

// Waiting is sleeping until shortly before, and then looking again and again: the kernel wakes a thread late, and by a
// millisecond where another is inside of it. Who looks again and again for longer is more often in time, and takes the processor
// from the others. Some sleep there must be: the kernel stops for long who goes before all others and never sleeps.
const (
	senderSpinNS = 40_000
	outputSpinNS = 600_000
	sleepShare   = 4         // a quarter of every wait at least
	napNS        = 1_000_000 // at most, so that a thread hears that it shall stop
)

// until waits for an instant, looking again and again for the last spin ns, or until stop says true.
func (c *clock) until(at, spin int64, stop *atomic.Bool) bool {
	left := at - c.now()
	for asleep := max(left/sleepShare, left-spin); !stop.Load(); left = at - c.now() {
		switch {
		case left <= 0:
			return true
		case asleep > leastNapNS:
			nap(min(asleep, napNS))
			asleep = at - c.now() - spin
		}
	}
	return false
}

// leastNapNS is what it takes to fall asleep and to wake up.
const leastNapNS = 10_000

// spin passes some time awake.
func (c *clock) spin(ns int64) {
	for until := c.now() + ns; c.now() < until; {
		yield()
	}
}

// yield lets threads of the same priority run, such as those of another card.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// nap sleeps without telling Go's scheduler, as a netlab.Socket sends: ownPlaces are there for those who do.
func nap(ns int64) {
	t := unix.NsecToTimespec(ns)
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0) // a signal ends it early, and whoever naps looks at the clock
}

// Thread is what keeps time: each on a processor of its own where there are two.
type Thread struct{ processor, priority uint32 }

// Threads. Who decides about a frame interrupts who sends it, as an interrupt of the kernel does.
var (
	Senders = Thread{0, 1}
	Arrival = Thread{0, 2}
	Output  = Thread{1, 1}
)

// PriorityRight is what threads need to go before all other programs. Without it they keep time among these, and carry less.
var PriorityRight = netlab.Right{Name: "CAP_SYS_NICE", Number: unix.CAP_SYS_NICE,
	For: "let threads that keep time go before other programs"}

// OwnThread keeps the calling goroutine on a thread, whose naps end in time, and which goes before all others where that is
// allowed: it sleeps most of the time, and the kernel keeps some of every second for the others. Which processor it gets is not left to the kernel: it may put two who wait for each other on one.
func OwnThread(t Thread) {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: t.priority},
		0)
	var allowed, one unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil || allowed.Count() < 2 {
		return
	}
	one.Set(nth(&allowed, int(t.processor)))
	_ = unix.SchedSetaffinity(0, &one)
}

// nth is the n-th last processor of a set, which has as many: the first ones hear most interrupts.
func nth(set *unix.CPUSet, n int) int {
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
