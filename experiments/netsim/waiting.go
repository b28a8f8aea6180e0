package netsim

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
)

// Waiting says that workers wait for answers, in the way of a published system: clusters are its jobs. Options that are absent
// are the system's own, by the names of flags.
type Waiting struct {
	Pos        `yaml:"-"`
	System     string        `yaml:"system"`
	Mode       string        `yaml:"mode,omitempty"` // absent: the system's usual one
	Loss       float64       `yaml:"loss,omitempty"` // share of frames that every link loses, 0 to 1
	H          int           `yaml:"h,omitempty"`
	Bound      *int          `yaml:"bound,omitempty"` // 0 is a bound, too
	Slots      int           `yaml:"slots,omitempty"`
	Wrap       bool          `yaml:"wrap,omitempty"`
	Profile    string        `yaml:"program_profile,omitempty"`
	Recovery   string        `yaml:"recovery,omitempty"`
	Timeout    olaf.Duration `yaml:"timeout,omitempty"`
	Packet     olaf.Size     `yaml:"packet,omitempty"`
	Window     int           `yaml:"window,omitempty"`
	Congestion bool          `yaml:"congestion,omitempty"`
}

// options are what was chosen, and by which names.
func (w *Waiting) options() (o system.Options, given []string) {
	o = system.Options{
		H: w.H, Bound: system.DefaultBound, Slots: w.Slots, Wrap: w.Wrap, Profile: w.Profile, Recovery: w.Recovery,
		Timeout: w.Timeout, Packet: w.Packet, Window: w.Window, Congestion: w.Congestion,
	}
	if w.Bound != nil {
		o.Bound = *w.Bound
	}
	for _, one := range []struct {
		name  string
		given bool
	}{
		{system.OptionH, w.H != 0}, {system.OptionBound, w.Bound != nil}, {system.OptionSlots, w.Slots != 0}, {system.OptionWrap, w.Wrap},
		{system.OptionProfile, w.Profile != ""}, {system.OptionRecovery, w.Recovery != ""}, {system.OptionTimeout, w.Timeout != 0},
		{system.OptionPacket, w.Packet != 0}, {system.OptionWindow, w.Window != 0}, {system.OptionCongestion, w.Congestion},
	} {
		if one.given {
			given = append(given, one.name)
		}
	}
	return o, given
}

// resolve finds the system in a set, and how its workers go about it. The error matches system.ErrUnknown or system.ErrOptions.
func (w *Waiting) resolve(all system.Set) (*system.System, *system.Mode, error) {
	s, err := all.Waiting().Find(w.System)
	if err != nil {
		return nil, nil, err
	}
	if !s.Rises() {
		return nil, nil, fmt.Errorf("%w: the sums of %s do not go on to a server above the switches; those of %s do", system.ErrOptions, s.Name,
			strings.Join(all.Rising().Names(), ", "))
	}
	mode, err := s.Mode(w.Mode)
	if err != nil {
		return nil, nil, err
	}
	_, given := w.options()
	return s, mode, mode.Refuse(s, given)
}

// waiting refuses what can be told without the network.
func (c *checker) waiting() {
	w := c.t.Waiting
	if w == nil {
		return
	}
	s, _, err := w.resolve(c.t.systems)
	switch {
	case err != nil:
		c.errs = append(c.errs, c.t.locate(w.Pos, "system", err))
	case c.t.Queue != s.Discipline:
		c.fail(c.t.Pos, "queue", "ports of %s are %s, not %s", s.Name, s.Discipline, c.t.Queue)
	}
	c.loss(w.Pos, w.Loss)
}

// Lose makes every link lose a share of its frames, 0 to 1, whatever they lost before.
func (t *Topology) Lose(share float64) {
	if t.Waiting != nil {
		t.Waiting.Loss, share = share, 0 // which says it of all links
	}
	for i := range t.Links {
		t.Links[i].Loss = share
	}
	for i := range t.Clusters {
		t.Clusters[i].Access.Loss = share
	}
}

// locate puts an error of another room where it was said.
func (t *Topology) locate(p Pos, key string, err error) error {
	if t.File == "" {
		return err
	}
	return &Error{t.File, p.Of(key), err.Error()}
}

// System is the name of what the network is simulated with: the system whose workers wait, what its switches add up as, or what its queues do.
func (t *Topology) System() string {
	if t.Waiting != nil {
		return t.Waiting.System
	}
	return cmp.Or(t.Program, t.Queue)
}

// Title names the network by what people compare: the system and how its workers go about it, or the queue and whether its workers
// control themselves.
func (t *Topology) Title() string {
	switch {
	case t.Waiting != nil:
		if _, mode, err := t.Waiting.resolve(t.systems); err == nil {
			return t.Waiting.System + " " + mode.Name
		}
	case t.Control.Enabled:
		return t.System() + " tc"
	case t.Program != "":
		return t.Program + " " + Open
	}
	return t.System()
}

// Hears is where captures of what its server receives come from; nil where they are of OLAF's frames, which Observers make. The
// error is that of Resolve.
func (t *Topology) Hears() (*capture.Interface, error) {
	if t.Waiting == nil {
		return nil, nil
	}
	j, err := NewJobs(t)
	if err != nil {
		return nil, err
	}
	from := closedloop.Heard(t.Servers[0].Name, j.parts.Frame, false)
	return &from, nil
}
