// Package system says what a published way to aggregate is made of: its switch program, the discipline of its ports, the
// endpoints of its workers and servers, what its runs count and measure. The set of systems is a value that cmd builds, without
// registration, and a new one is a file here. Rooms above find systems in a set that they are handed, also those that read a name from
// a file; the root test TestSetsAreHandedDown holds them to it.
package system

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/pass"
	"github.com/olafctl/olaf/pktgen/endpoint"
	"github.com/olafctl/olaf/results/metric"
)

// ErrUnknown says that there is no system of a name, ErrMode that one that there is has no such mode.
var (
	ErrUnknown = olaf.NewError(olaf.Usage, "unknown system")
	ErrMode    = olaf.NewError(olaf.Usage, "no such mode")
)

// ErrOptions is the kind of options that do not go together.
var ErrOptions = olaf.NewError(olaf.Usage, "bad options of a system")

// System is a published way to aggregate, as a whole.
type System struct {
	Name  string
	Title string // as prose calls it
	About string // one line
	// Paper is the name that its published numbers go by; empty of a baseline.
	Paper string
	// Discipline is what its ports do with frames that wait, by the name that package engine knows.
	Discipline string
	// Program is what its switches do beside that; nil where they only forward.
	Program *program.Description
	// Frame is how updates that nobody waits for go over the wire; nil as OLAF's.
	Frame *frame.Format
	// Unit is the published hardware that this program ran on; nil where none is known.
	Unit *aggregator.Unit
	// OnServers says that this program runs on servers, which hang on switches that only forward.
	OnServers bool
	// Declares is what its runs count and measure where workers send without waiting; nil for what passes a queue alone.
	Declares *metric.Declaration
	// loops is what its runs count and measure where they wait beside a device; nil where they can't.
	loops *metric.Declaration
	// Modes are how its workers can go about it when they wait for answers, the usual one first; none of a system whose
	// workers do not wait.
	Modes []Mode
}

// Mode is one way in which hosts of a system wait for each other.
type Mode struct {
	Name  string
	About string
	// Sync says that no worker begins a gradient before all have the sum of the last.
	Sync bool
	// Takes lists the options that mean something here.
	Takes []string
	Parts func(*Options) (Parts, error)
}

// Parts are what a job's hosts and switches are built from.
type Parts struct {
	Worker func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error)
	// Server is nil where there is none.
	Server func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error)
	// Program is what switches run, built by Build; nil where they only forward. Passes says that it sees packets that are
	// addressed to hosts and does nothing but count them.
	Program *program.Description
	Build   program.Config
	Passes  bool
	// Root makes the program of the root switch in place of Program, where a device is that switch; nil where none is.
	Root func(program.Config) (program.Program, error)
	Fan  int // vectors that complete a sum at the root; 0 follows the number of its children
	// Share is the part of every table that a job has to itself, counted from 0; nil shares all of it.
	Share func(job int) (base, slots int)
	// Window is how many packets a worker whose Server only adds up has on their way; workers apply the sums themselves. 0 of
	// all other systems.
	Window int
	// Inexact says that where frames are lost its sums may hold other than one contribution of every worker, as published.
	Inexact bool
	// Whole says that a table holds a place for every packet of a vector.
	Whole bool
	// Renewal is what the management tells workers when it has changed the tree of servers for the Value-th time; nil where
	// none can be changed.
	Renewal *program.Packet
	// Arithmetic is what words are to hosts that add them up where no Program does.
	Arithmetic program.Arithmetic
	// Frame is how packets go over the wire; nil of those of which only a length is known: Header is then the bytes in front of
	// the lanes, without the check sequence. PerPacket is the lanes of a full one.
	Frame     *frame.Format
	Header    olaf.Size
	PerPacket int
	// Numbers is how many packets of a worker its frames tell apart over all rounds; 0 where each round begins anew.
	Numbers int
}

// Numbered says whether frames can number so many packets a round. The error matches ErrOptions.
func (p *Parts) Numbered(packets, rounds int) error {
	if p.Numbers == 0 || packets*rounds <= p.Numbers {
		return nil
	}
	fits := fmt.Sprintf("use --updates %d", p.Numbers/packets)
	if packets > p.Numbers {
		fits = fmt.Sprintf("use vectors of %d values at most", p.Numbers*p.PerPacket)
	}
	return fmt.Errorf("%w: %s of %s can't be written as frames, which number %d over all rounds; %s",
		ErrOptions, olaf.Plural(rounds, "round"), olaf.Plural(packets, "packet"), p.Numbers, fits)
}

// Lose refuses links that lose frames where nobody sends again what is lost: of hosts whose switches only forward. The error matches
// ErrOptions.
func (p *Parts) Lose(name string, share float64) error {
	if p.Program != nil || !(share > 0) {
		return nil
	}
	return fmt.Errorf("%w: nothing that is lost is sent again, as the transport of %s is taken to be reliable; leave the loss out", ErrOptions, name)
}

// Size is the length of a packet's frame, without the check sequence; past says that it goes past the aggregators.
func (p *Parts) Size(packet *program.Packet, past bool) olaf.Size {
	if p.Frame != nil {
		return p.Frame.SizeOf(packet, past)
	}
	return max(frame.Least, p.Header+olaf.LaneBytes*olaf.Size(packet.Lanes))
}

// Options are what users may choose about a system; zero values are the system's own. Whether one means something is said
// by the mode.
type Options struct {
	H        int           // vectors that complete a sum
	Bound    int           // staleness beyond which a gradient is discarded
	Slots    int           // of a switch's table
	Wrap     bool          // vectors longer than the table use it again from its start
	Profile  string        // of the program
	Recovery string        // from loss
	Timeout  olaf.Duration // until it begins
	Packet   olaf.Size     // of the packet's payload, where a system has several
	Window   int           // packets of a worker on their way
	Sharing  string        // of a table by jobs
	Ranges   []Range       // of a table's slots, one a job; none divides it evenly
	// Congestion lets windows follow marks of congestion.
	Congestion bool

	// What the network says, not the user.

	Jobs    int  // that run at the same time; 0 is one
	PerRack int  // workers on a switch below the root; 0 is all on the root
	Floats  bool // gradients are float32, to be scaled where a program adds integers
}

// The names of options, as flags and documents call them.
const (
	OptionH        = "h"
	OptionBound    = "bound"
	OptionSlots    = "slots"
	OptionWrap     = "wrap"
	OptionProfile  = "program-profile"
	OptionRecovery = "recovery"
	OptionTimeout  = "timeout"
	OptionPacket   = "packet"
	OptionWindow   = "window"
	OptionSharing  = "sharing"

	OptionCongestion = "congestion"
)

// DefaultBound is the staleness bound of workers that do not wait for each other, where nobody says otherwise; 0 is one as well.
const DefaultBound = 3

// Refuse says which of the given options mean nothing in a mode. The error matches ErrOptions.
func (m *Mode) Refuse(system *System, given []string) error {
	for _, name := range given {
		if !slices.Contains(m.Takes, name) {
			takes := "no options"
			if len(m.Takes) > 0 {
				takes = "--" + strings.Join(m.Takes, ", --")
			}
			return fmt.Errorf("%w: --%s does not apply to %s in mode %s, which takes %s", ErrOptions, name, system.Name, m.Name, takes)
		}
	}
	return nil
}

// Mode finds a mode by its name, the usual one without a name. The error matches ErrMode and lists what there is.
func (s *System) Mode(name string) (*Mode, error) {
	if len(s.Modes) == 0 {
		return nil, fmt.Errorf("%w: workers of %s do not wait for answers, so it has no modes", ErrMode, s.Name)
	}
	if name == "" {
		return &s.Modes[0], nil
	}
	for i := range s.Modes {
		if s.Modes[i].Name == name {
			return &s.Modes[i], nil
		}
	}
	return nil, fmt.Errorf("%w: %s has no mode %q; its workers wait for each other in mode %s", ErrMode, s.Name, name, strings.Join(s.ModeNames(), " or "))
}

// Mode is System.Mode of one of them, whose error says as well with which of them the mode goes.
func (s Set) Mode(of *System, name string) (*Mode, error) {
	mode, err := of.Mode(name)
	if err == nil {
		return mode, nil
	}
	having := slices.DeleteFunc(slices.Clone(s), func(one System) bool { return !slices.Contains(one.ModeNames(), name) })
	if len(having) == 0 {
		return nil, fmt.Errorf("%w; no system has mode %q", err, name)
	}
	return nil, fmt.Errorf("%w; mode %s goes with %s", err, name, strings.Join(having.Names(), ", "))
}

// ModeNames are those of all of them, each once.
func (s Set) ModeNames() (names []string) {
	for i := range s {
		for _, m := range s[i].ModeNames() {
			if !slices.Contains(names, m) {
				names = append(names, m)
			}
		}
	}
	return names
}

// ModeNames are what people type.
func (s *System) ModeNames() []string {
	var names []string
	for i := range s.Modes {
		names = append(names, s.Modes[i].Name)
	}
	return names
}

// Set is the systems that there are, in the order in which reports show them.
type Set []System

// All are the systems of this build. A discipline that is of no system is one by itself.
func All() Set {
	all := Set{olafSystem(), fifo(), iswitchSystem(), switchmlSystem(), atpSystem(), p4incSystem(), xaggSystem(), parameterServer(), ring()}
	for _, name := range engine.DisciplineNames() {
		if !slices.ContainsFunc(all, func(s System) bool { return s.Discipline == name }) {
			all = append(all, System{Name: name, Title: name, Discipline: name, About: "a queue discipline"})
		}
	}
	for i := range all {
		if s := &all[i]; s.Looped() {
			d := s.Switched()
			s.loops = metric.OfLoop(s.Name+" loop", d.Ledger, d.Classes, endpoint.Describe())
		}
	}
	return all
}

// Find returns the named system. The error matches ErrUnknown and lists what there is.
func (s Set) Find(name string) (*System, error) {
	for i := range s {
		if s[i].Name == name {
			return &s[i], nil
		}
	}
	return nil, fmt.Errorf("%w %q; there are %s", ErrUnknown, name, strings.Join(s.Names(), ", "))
}

// Names are what people type.
func (s Set) Names() []string {
	var names []string
	for i := range s {
		names = append(names, s[i].Name)
	}
	return names
}

// Programs are those of their switches and servers, each once.
func (s Set) Programs() (all []program.Description) {
	for i := range s {
		p := s[i].Program
		if p != nil && !slices.ContainsFunc(all, func(have program.Description) bool { return have.Name == p.Name }) {
			all = append(all, *p)
		}
	}
	return all
}

// Waiting are those whose workers wait for answers.
func (s Set) Waiting() Set {
	return slices.DeleteFunc(slices.Clone(s), func(s System) bool { return len(s.Modes) == 0 })
}

// Framed says whether its packets have frames of their own, not only a length.
func (s *System) Framed() bool {
	for i := range s.Modes {
		if parts, err := s.Modes[i].Parts(&Options{}); err == nil && parts.Frame != nil {
			return true
		}
	}
	return false
}

// Open are those whose workers can send without waiting for answers, as those of a bench do.
func (s Set) Open() Set {
	return slices.DeleteFunc(slices.Clone(s), func(s System) bool { return !s.Open() })
}

// Rising are those whose sums can go on to a server above the switches that add up.
func (s Set) Rising() Set {
	return slices.DeleteFunc(slices.Clone(s), func(s System) bool { return !s.Rises() })
}

// Rises says whether its sums can go on to a server above the switch that its workers hang on: one of its own, or what stands
// in a parent's place. A baseline's transport is taken to be reliable, and so is not asked.
func (s *System) Rises() bool {
	if s.Program == nil || s.OnServers || len(s.Modes) == 0 {
		return false
	}
	parts, err := s.Modes[0].Parts(&Options{})
	if err != nil || parts.Server != nil {
		return err == nil
	}
	p, err := s.Program.New(parts.Build)
	return err == nil && p.Configure(program.Job{ID: 1, Members: []program.Member{{}}, Parent: true}) == nil
}

// Adding are those whose switches add up what workers send without waiting.
func (s Set) Adding() Set {
	return slices.DeleteFunc(slices.Clone(s), func(s System) bool { return !s.Adds() })
}

// Looped are those whose workers can wait for what a device sends back or passes on.
func (s Set) Looped() Set {
	return slices.DeleteFunc(slices.Clone(s), func(s System) bool { return !s.Looped() })
}

// Looped says whether its workers can wait for what a device sends back or passes on.
func (s *System) Looped() bool { return !s.OnServers && len(s.Modes) > 0 }

// Switched is the program that a device runs for workers that wait: its own, or the one that only passes packets on.
func (s *System) Switched() *program.Description {
	if s.Program != nil {
		return s.Program
	}
	d := pass.Describe()
	return &d
}

// Benched are those that a bench runs, whether or not their workers wait.
func (s Set) Benched() Set {
	return slices.DeleteFunc(slices.Clone(s), func(s System) bool { return !s.Open() && !s.Looped() })
}

// Open says whether its workers can send without waiting for answers.
func (s *System) Open() bool { return len(s.Modes) == 0 || s.Adds() }

// Adds says whether its switches add up what workers send without waiting, so that H means something.
func (s *System) Adds() bool { return s.Program != nil && s.Program.Open }

// Declaration is what its runs count and measure where workers send without waiting.
func (s *System) Declaration() *metric.Declaration {
	if s.Declares == nil {
		return queued
	}
	return s.Declares
}

// LoopDeclaration is what its runs count and measure where they wait for what a switch sends back.
func (s *System) LoopDeclaration() *metric.Declaration { return s.loops }

// queued is the account of any queue of package engine.
var queued = metric.OfQueue(engine.FlowLedger(), engine.SumsLedger())

// networked adds to queued what networks count after their warm-up.
var networked = metric.OfNetwork(queued)

// Queued declares the runs of what passes one queue.
func Queued() *metric.Declaration { return queued }

// Networked declares the runs of a network: the whole run with the network taken as one queue, and the time after the warm-up.
func Networked() *metric.Declaration { return networked }

// Declared finds what the runs of a system or of a network declare, by its name; nil where there is none of that name.
func (s Set) Declared(system string) *metric.Declaration {
	switch system {
	case queued.System:
		return queued
	case networked.System:
		return networked
	}
	for i := range s {
		for _, d := range []*metric.Declaration{s[i].Declares, s[i].loops} {
			if d != nil && d.System == system {
				return d
			}
		}
	}
	return nil
}

// adding declares the runs of a system whose switches add up.
func adding(d *program.Description) *metric.Declaration {
	return metric.OfProgram(d.Name, d.Ledger, d.Classes, engine.FlowLedger(), engine.SumsLedger())
}
