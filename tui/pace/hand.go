package pace

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/num"
)

// Run is a run whose pace can be changed. None of its methods blocks. Player implements it.
type Run interface {
	Pace() Pace
	SetPace(Pace)
	Step()
	Advance(to olaf.Time)
}

// Hand lets a dashboard control a run. It contains the run's last known state and the keys that change its pace.
type Hand struct {
	run   Run
	what  string // the run's name, with an article
	pace  Pace
	now   olaf.Time
	speed Meter
}

// NewHand returns a Hand for run. what is the name of the run with its article, for use in messages.
func NewHand(run Run, what string) Hand { return Hand{run: run, what: what, pace: run.Pace()} }

// ForwardOnly returns the message that the run cannot go back in time.
func (h *Hand) ForwardOnly() string { return h.what + " goes forward only" }

// Look records the current position and pace of the run.
func (h *Hand) Look(wall time.Time, now olaf.Time) {
	h.pace, h.now = h.run.Pace(), now
	h.speed.Note(wall, now, h.pace)
}

// Acts returns functions for the keys that change the pace.
func (h *Hand) Acts() tui.Acts {
	return tui.Acts{
		keys.Pause:     h.changeAct(func(p *Pace) { p.Paused = !p.Paused }),
		keys.Faster:    h.changeAct(func(p *Pace) { p.Speed = p.Speed.Faster() }),
		keys.Slower:    h.changeAct(func(p *Pace) { p.Slower(&h.speed) }),
		keys.FullSpeed: h.changeAct(func(p *Pace) { p.Speed = Full }),
		keys.RealTime:  h.changeAct(func(p *Pace) { p.Speed = 1 }),
		keys.Step: tui.AsAct(func(*tui.Frame) {
			h.setPace(Pace{Speed: h.pace.Speed, Paused: true})
			h.run.Step()
		}),
	}
}

// changeAct returns a key function that changes the pace.
func (h *Hand) changeAct(do func(*Pace)) func(*tui.Frame) tea.Cmd {
	return tui.AsAct(func(*tui.Frame) {
		p := h.run.Pace()
		do(&p)
		h.setPace(p)
	})
}

func (h *Hand) setPace(p Pace) {
	h.run.SetPace(p)
	h.pace, h.speed = p, Meter{}
}

// Seek advances the run to an instant. If this is not possible, it returns the reason.
func (h *Hand) Seek(to olaf.Time) string {
	if to < h.now {
		return h.ForwardOnly()
	}
	h.run.Advance(to)
	return ""
}

// Status returns the status of a run that ends at end.
func (h *Hand) Status(end olaf.Time) tui.Status {
	out := tui.Status{
		State: tui.Running, Speed: h.speed.Text(h.pace), Now: h.now, End: end, Left: h.speed.TimeLeft(end.Sub(h.now)),
		Progress: num.FormatPercent(100 * float64(h.now) / float64(max(end, 1))),
	}
	if h.pace.Paused {
		out.State = tui.Paused
	}
	return out
}
