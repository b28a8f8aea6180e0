// Package system defines each published aggregation system by its parts: the switch program, the discipline of its
// ports, the endpoints of its workers and servers, and the counters and metrics of its runs. The set of systems is a
// value that cmd builds; there is no registration. A new system is a new file in this package. Packages that use
// systems receive the set as an argument, even to look up a system by name; the root test TestSetsArePassedAsArguments
// checks this.
package system

import (
	"cmp"
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

// ErrUnknown reports that there is no such system, ErrMode that the system has no such mode.
var (
	ErrUnknown = olaf.NewError(olaf.Usage, "unknown system")
	ErrMode    = olaf.NewError(olaf.Usage, "no such mode")
)

// ErrOptions is matched by the error for any combination of options that a system rejects.
var ErrOptions = olaf.NewError(olaf.Usage, "bad options of a system")

// System describes a published aggregation system.
type System struct {
	Name  string
	Title string // title for prose
	About string // one line
	// Paper is the prefix of the system's published numbers; empty for a baseline.
	Paper string
	// Discipline is the queue discipline of the system's ports, by its name in package engine.
	Discipline string
	// Program is the program of the system's switches; nil if they only forward.
	Program *program.Description
	// Frame is the wire format of open-loop updates; nil for OLAF's.
	Frame *frame.Format
	// Unit is the published hardware for this program; nil if unknown.
	Unit *aggregator.Unit
	// OnServers is set if the program runs on servers, connected to switches that only forward.
	OnServers bool
	// Declares lists the counters and metrics of open-loop runs; nil for those of a plain queue.
	Declares *metric.Declaration
	// loops lists the counters and metrics of closed-loop runs on a device; nil if it has none.
	loops *metric.Declaration
	// Modes lists the modes of the system's closed-loop workers, the default first; empty if its workers never wait.
	Modes []Mode
}

// Mode is one way in which the workers of a system wait for results.
type Mode struct {
	Name  string
	About string
	// Sync is set if no worker begins a gradient before all have the last sum.
	Sync bool
	// Takes lists the options that apply.
	Takes []string
	Parts func(*Options) (Parts, error)
}

// Parts contains the building blocks for the hosts and switches of a job.
type Parts struct {
	Worker func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error)
	// Server may be nil.
	Server func(cfg endpoint.Config, host endpoint.Host) (endpoint.Endpoint, error)
	// Program runs on the switches, built by Build; nil if they only forward. Passes is set if the program sees packets
	// addressed to hosts and only counts them.
	Program *program.Description
	Build   program.Config
	Passes  bool
	// Root makes the root switch's program in place of Program if a device is that switch; else nil.
	Root func(program.Config) (program.Program, error)
	Fan  int // vectors that complete a sum at the root; 0 for the number of its children
	// Share returns the part of every table that is reserved for a job, counted from 0; nil if jobs share the whole
	// table.
	Share func(job int) (base, slots int)
	// Window is the number of packets in flight per worker if the Server only adds and workers apply the sums
	// themselves; 0 for other systems.
	Window int
	// Inexact is set if, as published, a sum may miss or repeat a worker's contribution after frame loss.
	Inexact bool
	// FitsVector is set if a table has room for every packet of a vector.
	FitsVector bool
	// Renewal is the packet that management sends to workers when it has changed the tree of servers for the Value-th
	// time; nil if the tree is fixed.
	Renewal *program.Packet
	// Conversion converts float32 to lanes at the hosts, with Options.Floats.
	Conversion endpoint.Conversion
	// Arithmetic defines how hosts interpret and add words if there is no Program.
	Arithmetic program.Arithmetic
	// Frame is the packets' wire format. If it is nil, only lengths are known: Header is then the number of bytes
	// before the lanes, without the check sequence. PerPacket is the number of lanes in a full packet.
	Frame     *frame.Format
	Header    olaf.Size
	PerPacket int
	// Numbers is the number of packets per worker that frames can number distinctly over all rounds; 0 if numbering
	// restarts each round.
	Numbers int
}

// CheckNumbers checks that the packet numbers in the system's frames are large enough for the given numbers of packets
// per round and of rounds. The error matches ErrOptions.
func (p *Parts) CheckNumbers(packets, rounds int) error {
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

// CheckLoss rejects lossy links for systems whose hosts do not retransmit. These are the systems whose switches only
// forward. The error matches ErrOptions.
func (p *Parts) CheckLoss(name string, share float64) error {
	if p.Program != nil || !(share > 0) {
		return nil
	}
	return fmt.Errorf("%w: nothing that is lost is sent again, as the transport of %s is taken to be reliable; leave the loss out", ErrOptions, name)
}

// FrameSize returns the length of the frame for a packet, without the check sequence. past is set if the packet
// bypasses the aggregators.
func (p *Parts) FrameSize(packet *program.Packet, past bool) olaf.Size {
	if p.Frame != nil {
		return p.Frame.SizeOf(packet, past)
	}
	return max(frame.Least, p.Header+olaf.LaneBytes*olaf.Size(packet.Lanes))
}

// Options contains the options that a user chose for a system. Zero values select the system's defaults. The mode
// determines which options apply.
type Options struct {
	H        int           // vectors that complete a sum
	Bound    int           // staleness beyond which a gradient is discarded
	Slots    int           // in a switch's table
	Wrap     bool          // vectors longer than the table wrap around
	Profile  string        // program profile
	Recovery string        // way of handling loss
	Timeout  olaf.Duration // time before recovery
	Packet   olaf.Size     // payload of a packet, if the system has several sizes
	Window   int           // packets in flight per worker
	Sharing  string        // how jobs share a table
	Ranges   []Range       // reserved slots, one range per job; empty for an even division
	// Congestion adapts windows to congestion marks.
	Congestion bool

	// The fields below are set by the network, not the user.

	Jobs    int  // jobs at the same time; 0 means 1
	PerRack int  // workers on a switch below the root; 0 if all are on the root
	Floats  bool // gradients are float32, to be scaled for programs that add integers
	// Longest bounds timeouts that grow, for hosts that wait for programs; 0 for no bound.
	Longest olaf.Duration `json:"-"`
}

// The options' names in flags and documents.
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

// DefaultBound is the default bound on the staleness of asynchronous workers. A bound of 0 in Options also selects it.
const DefaultBound = 3

// CheckOptions returns an error if one of the given options does not apply in this mode. The error matches ErrOptions.
func (m *Mode) CheckOptions(system *System, given []string) error {
	for _, name := range given {
		if !slices.Contains(m.Takes, name) {
			takes := "no options"
			if len(m.Takes) > 0 {
				takes = "--" + strings.Join(m.Takes, ", --")
			}
			return fmt.Errorf("%w: --%s does not apply to %s in mode %s, which takes %s", ErrOptions, name, system.Name,
				m.Name, takes)
		}
	}
	return nil
}

// Mode returns the mode with the given name, or the default mode if the name is empty. The error matches ErrMode and
// lists the modes.
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
	return nil, fmt.Errorf("%w: %s has no mode %q; its workers wait for each other in mode %s", ErrMode, s.Name, name,
		strings.Join(s.ModeNames(), " or "))
}

// Mode returns the named mode of a system, like System.Mode. The error also lists the systems that have the mode.
func (s Set) Mode(of *System, name string) (*Mode, error) {
	mode, err := of.Mode(name)
	if err == nil {
		return mode, nil
	}
	having := s.Where(func(one *System) bool { return slices.Contains(one.ModeNames(), name) })
	if len(having) == 0 {
		return nil, fmt.Errorf("%w; no system has mode %q", err, name)
	}
	return nil, fmt.Errorf("%w; mode %s goes with %s", err, name, strings.Join(having.Names(), ", "))
}

// FindMode returns the named system and its named mode. The error matches ErrUnknown or ErrMode.
func (s Set) FindMode(name, mode string) (*System, *Mode, error) {
	of, err := s.Find(name)
	if err != nil {
		return nil, nil, err
	}
	m, err := of.Mode(mode)
	return of, m, err
}

// ModeNames returns the names of the modes of all systems, without duplicates.
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

// ModeNames returns the names of the system's modes.
func (s *System) ModeNames() []string {
	return olaf.Map(s.Modes, func(m Mode) string { return m.Name })
}

// Set is a list of systems, in the order in which reports list them.
type Set []System

// All returns all systems in this build. A queue discipline that has no system with its name is added as a system.
func All() Set {
	all := Set{olafSystem(), fifoSystem(), iswitchSystem(), switchmlSystem(), atpSystem(), p4incSystem(), xaggSystem(),
		parameterServerSystem(), ringAllReduce()}
	for _, name := range engine.DisciplineNames() {
		if !slices.ContainsFunc(all, func(s System) bool { return s.Discipline == name }) {
			all = append(all, System{Name: name, Title: name, Discipline: name, About: "a queue discipline"})
		}
	}
	for i := range all {
		if s := &all[i]; s.CanLoop() {
			d := s.SwitchProgram()
			s.loops = metric.OfLoop(s.Name+" loop", d.Ledger, d.Classes, endpoint.Describe())
		}
	}
	return all
}

// Find returns the system with the given name. The error matches ErrUnknown and lists all systems.
func (s Set) Find(name string) (*System, error) {
	for i := range s {
		if s[i].Name == name {
			return &s[i], nil
		}
	}
	return nil, fmt.Errorf("%w %q; there are %s", ErrUnknown, name, strings.Join(s.Names(), ", "))
}

// Names returns the names of the systems.
func (s Set) Names() []string { return olaf.Map(s, func(one System) string { return one.Name }) }

// Programs returns the programs of the systems' switches and servers, without duplicates.
func (s Set) Programs() (all []program.Description) {
	for i := range s {
		p := s[i].Program
		if p != nil && !slices.ContainsFunc(all, func(have program.Description) bool { return have.Name == p.Name }) {
			all = append(all, *p)
		}
	}
	return all
}

// Where returns the systems for which holds returns true.
func (s Set) Where(holds func(*System) bool) Set {
	return slices.DeleteFunc(slices.Clone(s), func(one System) bool { return !holds(&one) })
}

// ClosedLoop returns the systems that have closed-loop workers.
func (s Set) ClosedLoop() Set { return s.Where(func(one *System) bool { return len(one.Modes) > 0 }) }

// HasFrames reports whether the format of the system's frames is known, not only their length.
func (s *System) HasFrames() bool {
	for i := range s.Modes {
		if parts, err := s.Modes[i].Parts(&Options{}); err == nil && parts.Frame != nil {
			return true
		}
	}
	return false
}

// Open returns the systems whose workers can send in an open loop, as in a bench.
func (s Set) Open() Set { return s.Where((*System).Open) }

// Rising returns the systems whose sums can be forwarded to a server above the switches that add.
func (s Set) Rising() Set { return s.Where((*System).Rises) }

// Rises reports whether the system's sums can be forwarded to a server above the workers' switch. The server is the
// system's own, or replaces a parent switch. For baselines it returns false, because their transport is assumed to be
// reliable.
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

// Adding returns the systems whose switches add up updates from open-loop workers.
func (s Set) Adding() Set { return s.Where((*System).Adds) }

// LoopedOnes returns the systems whose workers can run in a closed loop through a device.
func (s Set) LoopedOnes() Set { return s.Where((*System).CanLoop) }

// CanLoop reports whether the system's workers can run in a closed loop through a device.
func (s *System) CanLoop() bool { return !s.OnServers && len(s.Modes) > 0 }

// SwitchProgram returns the program that a device runs for closed-loop workers. It is the system's own program or, if
// the system has none, the program that only forwards.
func (s *System) SwitchProgram() *program.Description {
	if s.Program != nil {
		return s.Program
	}
	d := pass.Describe()
	return &d
}

// ForBench returns the systems that a bench can run, in an open or a closed loop.
func (s Set) ForBench() Set {
	return s.Where(func(one *System) bool { return one.Open() || one.CanLoop() })
}

// Open reports whether the system's workers can send in an open loop.
func (s *System) Open() bool { return len(s.Modes) == 0 || s.Adds() }

// Adds reports whether the system's switches add up updates from open-loop workers, so that the option H applies.
func (s *System) Adds() bool { return s.Program != nil && s.Program.Open }

// Declaration returns the declaration of the counters and metrics in open-loop runs.
func (s *System) Declaration() *metric.Declaration { return cmp.Or(s.Declares, queueDeclared) }

// LoopDeclaration returns the declaration of the counters and metrics in closed-loop runs, or nil if the system has no
// such runs.
func (s *System) LoopDeclaration() *metric.Declaration { return s.loops }

// queueDeclared is the declaration for runs through any queue of package engine.
var queueDeclared = metric.OfQueue(engine.FlowLedger(), engine.SumsLedger())

// networkDeclared is queueDeclared extended by the counts of a network after its warm-up.
var networkDeclared = metric.OfNetwork(queueDeclared)

// QueueDeclaration returns the declaration for runs through a single queue.
func QueueDeclaration() *metric.Declaration { return queueDeclared }

// NetworkDeclaration returns the declaration for runs of a network. Its counts cover the whole run, as if the network
// were a single queue, and the time after the warm-up.
func NetworkDeclaration() *metric.Declaration { return networkDeclared }

// FindDeclaration returns the declaration with the given name, which is that of a system, a queue or a network. It
// returns nil if there is none.
func (s Set) FindDeclaration(system string) *metric.Declaration {
	switch system {
	case queueDeclared.System:
		return queueDeclared
	case networkDeclared.System:
		return networkDeclared
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

// declareAdding returns the declaration for a system whose switches add updates with the program d.
func declareAdding(d *program.Description) *metric.Declaration {
	return metric.OfProgram(d.Name, d.Ledger, d.Classes, engine.FlowLedger(), engine.SumsLedger())
}

// FiltersReward reports whether the ports of s can filter updates by reward.
func (s *System) FiltersReward() bool {
	kind, _ := engine.FindDiscipline(s.Discipline)
	return kind.FiltersReward
}

// Arithmetic returns a description of how s adds updates.
func (s *System) Arithmetic() string {
	switch kind, _ := engine.FindDiscipline(s.Discipline); {
	case s.Adds():
		return s.Program.Arithmetic.String()
	case kind.Merges:
		return "int32 that saturates"
	}
	return "adds nothing"
}
