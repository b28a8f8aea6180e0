// Package program is what a switch does with a packet beside queueing it: consume it, merge it into a slot, and emit
// results up, down or back. A switch port is a program followed, per output, by an engine discipline and its serialiser;
// where the program is Pass, the switch only forwards.
//
// A Program is pure: times and packets come in, packets go out through an Out, and nothing allocates per packet. Frames on
// the wire are fpga/frame's matter, timers and retransmissions the endpoints'. Each program's folder holds its page of
// rules, its golden vectors and a slow reference that shares no code with it.
package program

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/olafctl/olaf"
)

// ErrConfig is the kind of every refused configuration.
var ErrConfig = olaf.NewError(olaf.Usage, "bad program configuration")

// Port is a link of the switch that a packet came in by: a child's, numbered from 0, or the one towards the root.
type Port int32

// Uplink is the link towards the parent switch or, at the root, towards the parameter server.
const Uplink Port = -1

// Dest is where an emitted packet goes: a child's port by its number, or one of the directions below.
type Dest int32

const (
	Up     Dest = -1 - iota // by the uplink
	Down                    // one copy to every member of the packet's job
	Others                  // the same without the port that the packet at hand came in by
)

// String is the word of golden vectors.
func (d Dest) String() string {
	switch d {
	case Up:
		return "up"
	case Down:
		return "down"
	case Others:
		return "others"
	}
	return fmt.Sprintf("port:%d", int32(d))
}

// Kind says what a packet is to a program.
type Kind uint8

const (
	Other   Kind = iota // of no aggregation protocol: forwarded, never touched
	Data                // lanes of a gradient on their way to be summed
	Result              // a sum on its way back
	Ack                 // confirms a result or releases a slot
	Control             // membership, thresholds, recovery; Action says which
	kinds
)

var kindNames = [kinds]string{"other", "data", "result", "ack", "control"}

// String is the word of golden vectors.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Flags are the single bits that protocols carry.
type Flags uint8

const (
	Resend    Flags = 1 << iota // sent before
	Collision                   // the slot belonged to somebody else
	ECN                         // congestion was met on the way
	Overflow                    // lanes left the range of integers
	Second                      // met the second level of switches
	Set1                        // the second of two sets of slots
)

// Packet is one packet of any of the protocols, without its lanes. The fields above the line are on the wire of the
// protocols that have them; those below are carried along by simulators and twins to measure by, never looked at by a
// program beyond merging them, and absent from captures.
type Packet struct {
	Seg    uint64 // place in the vector, or sequence number, or packet id
	Bitmap uint64 // contributors, by the protocol's own numbering
	Value  uint64 // argument of Action
	Index  uint32 // slot or aggregator that the sender chose
	Job    olaf.ClusterID
	Worker olaf.WorkerID // who sent it; of a result nobody in particular
	Count  uint16        // vectors inside
	Fan    uint16        // vectors that complete it, where the packet says so
	Round  uint16        // of the slot's use, where the protocol has one
	Lanes  uint16        // 32-bit words of payload
	Kind   Kind
	Action uint8 // of Control: the protocol's code
	Flags  Flags

	Trace
}

// Trace says which gradients are inside a packet.
type Trace struct {
	// Inside is Σ Mark(worker, vector) over the contributions inside, modulo 2^64: equal sets have equal sums, so that
	// exactly-once and torn vectors can be checked at constant cost.
	Inside uint64
	// NewestNS and OldestNS are the latest and the earliest generation time inside, SumNS their sum, in ns.
	NewestNS, OldestNS, SumNS uint64
	// ReadSum is the sum over contributions of how many updates the weights had seen that they were computed with.
	ReadSum uint64
	// Vectors is how many contributions are inside, whatever the protocol's own count says.
	Vectors uint32
}

// Mark is what one contribution adds to Trace.Inside: a mix of its worker and of the vector's number.
func Mark(worker olaf.WorkerID, vector uint32) uint64 {
	z := (uint64(worker)<<32 | uint64(vector)) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// MarkAll is what a sum of one contribution of every worker, numbered from 0, has inside.
func MarkAll(workers int, vector uint32) (inside uint64) {
	for w := range workers {
		inside += Mark(olaf.WorkerID(w), vector)
	}
	return inside
}

// Contribution is the trace of one worker's vector, generated at genNS.
func Contribution(worker olaf.WorkerID, vector uint32, genNS uint64) Trace {
	return Trace{Inside: Mark(worker, vector), NewestNS: genNS, OldestNS: genNS, SumNS: genNS, Vectors: 1}
}

// Set makes t a copy of another trace, word by word: wider reads of words that were written a moment ago make a processor wait until
// these are in its cache, and sums leave right after their last contribution was added.
func (t *Trace) Set(u *Trace) {
	t.Inside, t.NewestNS, t.OldestNS = u.Inside, u.NewestNS, u.OldestNS
	t.SumNS, t.ReadSum, t.Vectors = u.SumNS, u.ReadSum, u.Vectors
}

// Add merges another trace into t; the zero Trace is neutral.
func (t *Trace) Add(u *Trace) {
	switch {
	case u.Vectors == 0:
		return
	case t.Vectors == 0:
		t.Set(u)
		return
	}
	t.Inside += u.Inside
	t.NewestNS = max(t.NewestNS, u.NewestNS)
	t.OldestNS = min(t.OldestNS, u.OldestNS)
	t.SumNS += u.SumNS
	t.ReadSum += u.ReadSum
	t.Vectors += u.Vectors
}

// Class is what became of an arriving packet: an index into the counters that the program declares. Every arrival is in
// exactly one.
type Class uint8

// Out takes what a program emits. p and lanes are valid during the call and the program's own: Emit neither changes them nor calls it.
type Out interface {
	Emit(to Dest, p *Packet, lanes []uint32)
}

// Config is what a program is built with; a program states which of it it needs and refuses the rest.
type Config struct {
	Slots      int    // of the table: segments, aggregators or pool slots
	LaneMemory int    // 32-bit words that a slot stores; 0 decides without moving lanes
	Lanes      int    // that a slot is built for, for what it takes in a switch; 0 is the program's usual
	Profile    string // of the program's own profiles; empty is the first
	Wrap       bool   // segments beyond the table use it again from its start
}

// Job is one training job as a switch knows it.
type Job struct {
	ID      olaf.ClusterID
	Members []Member      // the children that may contribute and are answered
	Fan     int           // vectors that complete a slot; 0 follows the number of members
	Base    int           // first slot of a static partition,
	Slots   int           // which is this long; 0 shares the whole table
	Parent  bool          // results go up, and come down again from there
	Above   olaf.WorkerID // who is there, where tables name it by a number among the members
	Level   int           // of the switch: 0 where workers hang on it, 1 above such
	// In and Out are what the node's link takes and gives, for programs that divide it among the members; 0 is without a limit.
	In, Out olaf.Rate
}

// Member is one child of a switch in a job.
type Member struct {
	Worker olaf.WorkerID
	Port   Port
}

// Slot is a view of one place of the table. Lanes is valid until the program's next packet.
type Slot struct {
	Held   bool
	Job    olaf.ClusterID
	Seg    uint64
	Bitmap uint64
	Count  int
	Since  olaf.Time // of the first contribution
	Lanes  []uint32
	Trace
}

// Arithmetic says what the 32-bit words of a lane are and how two are added.
type Arithmetic uint8

const (
	Opaque     Arithmetic = iota // never added
	Float32                      // IEEE 754, in order of arrival, no fused operations
	Wrapping                     // int32 modulo 2^32
	Saturating                   // int32, held within its range
	Sticky                       // saturating, and a lane on the rail stays there
)

var arithmetics = [...]string{"opaque", "float32", "int32 wrapping", "int32 saturating", "int32 saturating, sticky"}

// String says what a lane is and how two are added.
func (a Arithmetic) String() string {
	if int(a) < len(arithmetics) {
		return arithmetics[a]
	}
	return fmt.Sprintf("arithmetic(%d)", uint8(a))
}

// Program is one switch's state for one protocol. It is not safe for concurrent use, and the same calls always give the
// same results.
type Program interface {
	// Receive presents a packet that came in by from at now, with its lanes, and says what became of it. What it causes
	// to leave is emitted before it returns. Nothing is kept of the arguments. lanes is nil, or p.Lanes long.
	Receive(now olaf.Time, from Port, p *Packet, lanes []uint32, out Out) Class
	// Configure admits a job or changes it; Remove ends it and frees what it held. The error matches ErrConfig.
	Configure(j Job) error
	Remove(job olaf.ClusterID)

	// Slots is the length of the table, Slot views a place of it, and Occupied is how many are held.
	Slots() int
	Slot(i int) Slot
	Occupied() int
	// Memory is what the table takes in a switch.
	Memory() olaf.Size
	// Counts are the values of the description's ledger since the program was made or reset, in its order. They are what
	// the identities of a run are checked by.
	Counts() []uint64
	// Reset empties the table and the counts and keeps jobs and memory.
	Reset()
}

// Description is what others may ask about a program, so that only its own folder knows it by name.
type Description struct {
	Name       string
	Code       uint32   // in the register aggregator.program
	Open       bool     // H contributions complete a sum whoever they are of, so that workers need not wait for answers
	Profiles   []string // of Config.Profile, the default first
	Arithmetic Arithmetic
	// Completes says how many contributions complete a sum, and who says otherwise; empty of one that adds nothing.
	Completes string
	// Ledger declares what the program counts: the arrivals of each class first, by Class, then sums over what is inside.
	Ledger  *olaf.Ledger
	Classes int              // how many of these are classes
	Actions map[string]uint8 // codes of control packets, by the word of vectors
	// Tables are what controllers write about its jobs; nil of one whose jobs are not theirs. Stranger is the class of what a
	// worker sends whom none of them admitted.
	Tables   []Table
	Stranger Class
	ToS      uint8 // of data on the wire, where switches tell it by that
	// Above chooses one of several switches above; nil of a program that does not say which. There is one at least.
	Above func([]netip.Addr) int
	New   func(Config) (Program, error)
}

// Names are those of programs, in their order.
func Names(programs []Description) (names []string) {
	for i := range programs {
		names = append(names, programs[i].Name)
	}
	return names
}

// NameOf is what the program of a code of the register map is called; of a code that none of them has, the code.
func NameOf(programs []Description, code uint32) string {
	if i := slices.IndexFunc(programs, func(d Description) bool { return d.Code == code }); i >= 0 {
		return programs[i].Name
	}
	return strconv.FormatUint(uint64(code), 10)
}

// Account is what a program has counted, by name.
func (d *Description) Account(p Program) olaf.Counts {
	c := olaf.NewCounts(d.Ledger)
	for i, n := range p.Counts() {
		c.SetAt(i, int64(n))
	}
	return c
}

// ClassNames are those of all classes.
func (d *Description) ClassNames() (names []string) {
	for c := range d.Classes {
		names = append(names, d.ClassName(Class(c)))
	}
	return names
}

// ClassName is the name of a class in ledgers and vectors.
func (d *Description) ClassName(c Class) string {
	if int(c) < d.Classes {
		return d.Ledger.Counters[c].Name
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}
