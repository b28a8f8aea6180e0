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

// Waiting makes workers closed loop, as in a published system: each cluster is one of its jobs. Fields are named like
// flags; absent ones take the system's defaults.
type Waiting struct {
	Pos        `yaml:"-"`
	System     string        `yaml:"system"`
	Mode       string        `yaml:"mode,omitempty"` // if absent, the system's default
	Loss       float64       `yaml:"loss,omitempty"` // share of frames lost on every link, 0 to 1
	H          int           `yaml:"h,omitempty"`
	Bound      *int          `yaml:"bound,omitempty"` // a pointer, because 0 is a valid bound
	Slots      int           `yaml:"slots,omitempty"`
	Wrap       bool          `yaml:"wrap,omitempty"`
	Profile    string        `yaml:"program_profile,omitempty"`
	Recovery   string        `yaml:"recovery,omitempty"`
	Timeout    olaf.Duration `yaml:"timeout,omitempty"`
	Packet     olaf.Size     `yaml:"packet,omitempty"`
	Window     int           `yaml:"window,omitempty"`
	Congestion bool          `yaml:"congestion,omitempty"`
}

// systemOptions returns the chosen options and the names of those given.
func (w *Waiting) systemOptions() (o system.Options, given []string) {
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
		{system.OptionH, w.H != 0}, {system.OptionBound, w.Bound != nil}, {system.OptionSlots, w.Slots != 0},
		{system.OptionWrap, w.Wrap},
		{system.OptionProfile, w.Profile != ""}, {system.OptionRecovery, w.Recovery != ""},
		{system.OptionTimeout, w.Timeout != 0},
		{system.OptionPacket, w.Packet != 0}, {system.OptionWindow, w.Window != 0},
		{system.OptionCongestion, w.Congestion},
	} {
		if one.given {
			given = append(given, one.name)
		}
	}
	return o, given
}

// resolveMode finds the system and its mode in a set. The error matches system.ErrUnknown or system.ErrOptions.
func (w *Waiting) resolveMode(all system.Set) (*system.System, *system.Mode, error) {
	s, err := all.ClosedLoop().Find(w.System)
	if err != nil {
		return nil, nil, err
	}
	if !s.Rises() {
		return nil, nil, fmt.Errorf("%w: the sums of %s do not go on to a server above the switches; those of %s do",
			system.ErrOptions, s.Name,
			strings.Join(all.Rising().Names(), ", "))
	}
	mode, err := s.Mode(w.Mode)
	if err != nil {
		return nil, nil, err
	}
	_, given := w.systemOptions()
	return s, mode, mode.CheckOptions(s, given)
}

// checkWaiting checks the closed-loop settings without the network.
func (c *checker) checkWaiting() {
	w := c.t.Waiting
	if w == nil {
		return
	}
	s, _, err := w.resolveMode(c.t.systems)
	switch {
	case err != nil:
		c.errs = append(c.errs, c.t.locateError(w.Pos, "system", err))
	case c.t.Queue != s.Discipline:
		c.addError(c.t.Pos, "queue", "ports of %s are %s, not %s", s.Name, s.Discipline, c.t.Queue)
	}
	c.checkLoss(w.Pos, w.Loss)
}

// SetLoss sets the loss of every link, 0 to 1, in place of earlier values.
func (t *Topology) SetLoss(share float64) {
	if t.Waiting != nil {
		t.Waiting.Loss, share = share, 0 // Waiting.Loss applies to all links
	}
	for i := range t.Links {
		t.Links[i].Loss = share
	}
	for i := range t.Clusters {
		t.Clusters[i].Access.Loss = share
	}
}

// locateError adds the position in the file to an error from another package.
func (t *Topology) locateError(p Pos, key string, err error) error {
	if t.File == "" {
		return err
	}
	return &Error{t.File, p.LineOf(key), err.Error()}
}

// System returns the name of the system that the network uses: that of the closed-loop workers, of the switches'
// program, or of the queues.
func (t *Topology) System() string {
	if t.Waiting != nil {
		return t.Waiting.System
	}
	return cmp.Or(t.Program, t.Queue)
}

// Title names the network for comparisons: the system with its mode, or the queue with whether transmission control is
// on.
func (t *Topology) Title() string {
	switch {
	case t.Waiting != nil:
		if _, mode, err := t.Waiting.resolveMode(t.systems); err == nil {
			return t.Waiting.System + " " + mode.Name
		}
	case t.Control.Enabled:
		return t.System() + " tc"
	case t.Program != "":
		return t.Program + " " + Open
	}
	return t.System()
}

// CaptureInterface returns the interface description for captures at the server; nil for OLAF's frames, which come from Observers.
// Errors are those of Resolve.
func (t *Topology) CaptureInterface() (*capture.Interface, error) {
	if t.Waiting == nil {
		return nil, nil
	}
	j, err := NewJobs(t)
	if err != nil {
		return nil, err
	}
	from := closedloop.CaptureInterface(t.Servers[0].Name, j.parts.Frame, false)
	return &from, nil
}
