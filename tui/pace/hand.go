package pace

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/num"
)

// Run is what goes at a pace. Nothing in it waits; Player is one.
type Run interface {
	Pace() Pace
	SetPace(Pace)
	Step()
	Advance(to olaf.Time)
}

// Hand is a dashboard's hand on a run: what was last seen of it, and the keys that change its pace.
type Hand struct {
	run   Run
	what  string // the run is, with its article
	pace  Pace
	now   olaf.Time
	speed Meter
}

// NewHand takes a run in hand, which messages call by a word with its article.
func NewHand(run Run, what string) Hand { return Hand{run: run, what: what, pace: run.Pace()} }

// Forward says why nothing goes back.
func (h *Hand) Forward() string { return h.what + " goes forward only" }

// Look notes where the run is, and its pace.
func (h *Hand) Look(wall time.Time, now olaf.Time) {
	h.pace, h.now = h.run.Pace(), now
	h.speed.Note(wall, now, h.pace)
}

// Acts are the keys of pace.
func (h *Hand) Acts() tui.Acts {
	return tui.Acts{
		keys.Pause:     h.change(func(p *Pace) { p.Paused = !p.Paused }),
		keys.Faster:    h.change(func(p *Pace) { p.Speed = p.Speed.Faster() }),
		keys.Slower:    h.change(func(p *Pace) { p.Slower(&h.speed) }),
		keys.FullSpeed: h.change(func(p *Pace) { p.Speed = Full }),
		keys.RealTime:  h.change(func(p *Pace) { p.Speed = 1 }),
		keys.Step: tui.Do(func(*tui.Frame) {
			h.set(Pace{Speed: h.pace.Speed, Paused: true})
			h.run.Step()
		}),
	}
}

// change makes an act of a change of pace.
func (h *Hand) change(do func(*Pace)) func(*tui.Frame) tea.Cmd {
	return tui.Do(func(*tui.Frame) {
		p := h.run.Pace()
		do(&p)
		h.set(p)
	})
}

func (h *Hand) set(p Pace) {
	h.run.SetPace(p)
	h.pace, h.speed = p, Meter{}
}

// Seek lets the run go on to an instant, or says why not.
func (h *Hand) Seek(to olaf.Time) string {
	if to < h.now {
		return h.Forward()
	}
	h.run.Advance(to)
	return ""
}

// Status is that of a run that goes on to an end.
func (h *Hand) Status(end olaf.Time) tui.Status {
	out := tui.Status{
		State: tui.Running, Speed: h.speed.Text(h.pace), Now: h.now, End: end, Left: h.speed.Left(end.Sub(h.now)),
		Progress: num.Percent(100 * float64(h.now) / float64(max(end, 1))),
	}
	if h.pace.Paused {
		out.State = tui.Paused
	}
	return out
}
