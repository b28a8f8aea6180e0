package queues

import (
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui"
)

// demo returns the scenes of the one-minute tour of OLAF.
func (s *session) demo() []tui.Scene {
	const stay = -1
	scene := func(seconds int, seek, speed olaf.Duration, whole bool, caption string) tui.Scene {
		return tui.Scene{Length: time.Duration(seconds) * time.Second, Caption: caption, Begin: func() {
			s.wholeRun = whole
			if seek >= 0 {
				s.options.Source.Do(slowmotion.Seek{To: olaf.Time(seek)})
			}
			s.options.Source.Do(slowmotion.SetSpeed{Speed: slowmotion.Speed(speed)})
			s.options.Source.Do(slowmotion.Pause{On: false})
		}}
	}
	return []tui.Scene{
		scene(7, 0, 100*olaf.Nanosecond, false,
			"27 workers train 9 models and send their updates through one switch. Left, Olaf; right, a FIFO queue. Both "+
				"get the same input."),
		scene(8, stay, 50*olaf.Nanosecond, false,
			"A burst arrives at 100 Gbps, but only 20 Gbps leave. Both queues have 8 slots; FIFO's are taken within half "+
				"a microsecond."),
		scene(9, stay, 50*olaf.Nanosecond, false,
			"FIFO is FULL: every further update is dropped (✗), and the gradients in it are lost."),
		scene(9, stay, 100*olaf.Nanosecond, false,
			"Olaf merges instead (⊕): an update is added to its cluster's waiting one. ×5 means five updates in one slot."),
		scene(9, 4*olaf.Microsecond, 5*olaf.Microsecond, false,
			"So a frame that leaves Olaf carries news of many workers, and the Age of Model stays low; under FIFO it grows."),
		scene(10, stay, 15*olaf.Microsecond, false, "Burst after burst: watch 'lost', 'merged', and the age of the models."),
		scene(8, 330*olaf.Microsecond, 8*olaf.Microsecond, true,
			"The whole run: same traffic, same link, same number of "+
				"slots. Try it: 'olafctl tui', then space, '.', enter and '?'."),
	}
}
