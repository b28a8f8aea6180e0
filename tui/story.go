package tui

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/live"
)

// Scene is one part of a guided tour: a caption, and what is to be seen meanwhile.
type Scene struct {
	Ticks   int // how long, in frames
	Caption string
	Seek    olaf.Time // where the run is set to at the beginning; negative leaves it
	Speed   live.Speed
	Whole   bool // show the whole run
}

const second = 15 // ticks

// Demo is the story of OLAF in a minute.
func Demo() []Scene {
	us := func(n int64) olaf.Time { return olaf.Time(n) * olaf.Time(olaf.Microsecond) }
	speed := func(d olaf.Duration) live.Speed { return live.Speed(d) }
	return []Scene{
		{7 * second, "27 workers train 9 models and send their updates through one switch. Left, Olaf; right, a FIFO queue. Both get the same input.", 0, speed(100 * olaf.Nanosecond), false},
		{8 * second, "A burst arrives at 100 Gbps, but only 20 Gbps leave. Both queues have 8 slots; FIFO's are taken within half a microsecond.", -1, speed(50 * olaf.Nanosecond), false},
		{9 * second, "FIFO is FULL: every further update is dropped (✗), and the gradients in it are lost.", -1, speed(50 * olaf.Nanosecond), false},
		{9 * second, "Olaf merges instead (⊕): an update whose cluster already waits is added to it. ×5 means five updates in one slot.", -1, speed(100 * olaf.Nanosecond), false},
		{9 * second, "So a frame that leaves Olaf carries news of many workers, and the Age of Model stays low; under FIFO it grows.", us(4), speed(5 * olaf.Microsecond), false},
		{10 * second, "Burst after burst: watch 'lost', 'merged', and the age of the models.", -1, speed(15 * olaf.Microsecond), false},
		{8 * second, "The whole run: same traffic, same link, same number of slots. Try it: 'olafctl tui', then space, '.', enter and '?'.", us(330), speed(8 * olaf.Microsecond), true},
	}
}

// tell moves the tour on, as long as nobody has taken over.
func (m *Model) tell() {
	if m.touched || m.scene >= len(m.options.Story) {
		return
	}
	at := m.ticks - 1
	for i := range m.scene {
		at -= m.options.Story[i].Ticks
	}
	scene := &m.options.Story[m.scene]
	if at >= scene.Ticks {
		m.scene++
		m.tell()
		return
	}
	if at == 0 {
		m.whole = scene.Whole
		if scene.Seek >= 0 {
			m.options.Source.Do(live.Seek{To: scene.Seek})
		}
		m.options.Source.Do(live.SetSpeed{Speed: scene.Speed})
		m.options.Source.Do(live.Pause{On: false})
	}
}

// caption is what the tour says now.
func (m *Model) caption() string {
	if m.touched || m.scene >= len(m.options.Story) {
		return ""
	}
	return m.options.Story[m.scene].Caption
}
