// Package program defines switch programs. A program processes each packet before it is queued. It drops the packet,
// adds it to a slot, or sends packets up, down or back. A port of a switch consists of a program and, for each output,
// an engine discipline with its serializer. With the program pass the switch only forwards. A Program is pure: it
// receives times and packets, sends packets through an Out, and does not allocate per packet. The formats of frames are
// in fpga/frame; timers and retransmissions are in the endpoints. The folder of each program contains its rules, its
// golden vectors and a slow reference that shares no code with it.
package program

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/olafctl/olaf"
)

// ErrConfig is matched by errors about invalid configurations.
var ErrConfig = olaf.NewError(olaf.Usage, "bad program configuration")

// Port identifies the switch link on which a packet arrived. Children's links are numbered from 0; Uplink is the link
// towards the root.
type Port int32

// Uplink is the link to the parent switch, or to the parameter server at the root.
const Uplink Port = -1

// Dest is the destination of a packet that a program sends. It is the number of a child's port, or one of the
// directions declared below.
type Dest int32

const (
	Up     Dest = -1 - iota // through the uplink port
	Down                    // to every member of the packet's job
	Others                  // like Down, but not to the port of the current packet
)

// String returns the destination's name in golden vectors.
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

// Kind is a kind of packet.
type Kind uint8

const (
	Other   Kind = iota // other protocols: forwarded unchanged
	Data                // gradient lanes to be summed
	Result              // a sum on its way to the workers
	Ack                 // confirms a result or releases a slot
	Control             // membership, thresholds, recovery; see Action
	kinds
)

var kindNames = [kinds]string{"other", "data", "result", "ack", "control"}

// String returns the kind's name in golden vectors.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Flags are the one-bit fields in packets of all protocols.
type Flags uint8

const (
	Resend    Flags = 1 << iota // retransmission
	Collision                   // the slot belonged to another sender
	ECN                         // congestion on the path
	Overflow                    // lanes left the integer range
	Second                      // passed the second level of switches
	Set1                        // belongs to the second of two sets of slots
	Last                        // last packet of a vector or chunk whose length varies
)

// Packet is a packet of any protocol, without its lanes. The fields before Trace are transmitted in protocols that have
// them. Trace is used by simulators and twins for measurements. Programs only merge it, and it does not appear in
// captures.
type Packet struct {
	Seg    uint64 // position in the vector, sequence number, or packet id
	Bitmap uint64 // contributors, numbered as in the protocol
	Value  uint64 // argument of Action
	Index  uint32 // slot or aggregator chosen by the sender
	Job    olaf.ClusterID
	Worker olaf.WorkerID // sender; meaningless for a result
	Count  uint16        // vectors in the sum
	Fan    uint16        // vectors that complete the sum, if the packet specifies that
	Round  uint16        // round in which the slot is used, if the protocol has rounds
	Lanes  uint16        // 32-bit words of payload
	Kind   Kind
	Action uint8 // the protocol's code for the action of a Control packet
	Flags  Flags

	Trace
}

// Trace identifies the gradients whose sum is in a packet.
type Trace struct {
	// Inside is Σ ContributionMark(worker, vector) over the contributions, modulo 2^64. Equal sets of contributions
	// have equal sums, so that exactly-once delivery and torn vectors can be checked at constant cost.
	Inside uint64
	// NewestNS and OldestNS are the latest and the earliest generation time, and SumNS is the sum of all generation
	// times, in ns.
	NewestNS, OldestNS, SumNS uint64
	// ReadSum is a sum over the contributions: each adds the number of updates in the weights with which it was
	// computed.
	ReadSum uint64
	// Vectors is the number of contributions, independent of the protocol's own count.
	Vectors uint32
}

// ContributionMark returns the value that one contribution adds to Trace.Inside, which is a hash of the worker and the
// vector.
func ContributionMark(worker olaf.WorkerID, vector uint32) uint64 {
	z := (uint64(worker)<<32 | uint64(vector)) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// MarkWorkers returns the Trace.Inside of a sum with one contribution from each worker. Workers are numbered from 0.
func MarkWorkers(workers int, vector uint32) (inside uint64) {
	for w := range workers {
		inside += ContributionMark(olaf.WorkerID(w), vector)
	}
	return inside
}

// NewTrace returns the trace for one vector of one worker, generated at genNS.
func NewTrace(worker olaf.WorkerID, vector uint32, genNS uint64) Trace {
	return Trace{Inside: ContributionMark(worker, vector), NewestNS: genNS, OldestNS: genNS, SumNS: genNS, Vectors: 1}
}

// Set copies u to t word by word. Sums are sent immediately after their last contribution was added, and a wider read
// of words that were just written would stall the processor.
func (t *Trace) Set(u *Trace) {
	t.Inside, t.NewestNS, t.OldestNS = u.Inside, u.NewestNS, u.OldestNS
	t.SumNS, t.ReadSum, t.Vectors = u.SumNS, u.ReadSum, u.Vectors
}

// Add merges u into t. Merging with a zero Trace changes nothing.
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

// Class is the program's decision on an arriving packet. Every arrival has exactly one class, which is an index into
// the program's counters.
type Class uint8

// Out receives the packets that a program sends. p and lanes belong to the program and are valid only during the call.
// Emit must not change them and must not call the program.
type Out interface {
	Emit(to Dest, p *Packet, lanes []uint32)
}

// Config configures a program. Programs reject settings that they do not support.
type Config struct {
	Slots      int    // size of the table: segments, aggregators or pool slots
	LaneMemory int    // 32-bit words stored per slot; 0 means that lanes are not stored
	Lanes      int    // lanes for which a slot is built, which determines Memory; 0 means the program's default
	Profile    string // one of the program's profiles; empty means the first
	Wrap       bool   // segments beyond the table reuse its slots from the start
}

// Job is one training job in a switch.
type Job struct {
	ID      olaf.ClusterID
	Members []Member      // children that contribute and receive results
	Fan     int           // vectors that complete a slot; 0 means as many as there are members
	Base    int           // first slot of a static partition
	Slots   int           // size of the partition; 0 means that jobs share the complete table
	Parent  bool          // results go up to a parent and return from it
	Above   olaf.WorkerID // the parent switch, if tables identify it by a member number
	Level   int           // level of the switch: 0 if its children are workers, else higher
	// In and Out are the capacities of the node's link, for programs that divide it among the members; 0 means
	// unlimited.
	In, Out olaf.Rate
}

// Member is a child of a switch that takes part in a job.
type Member struct {
	Worker olaf.WorkerID
	Port   Port
}

// Slot is a view of one slot in a program's table. Lanes is valid until the program receives its next packet.
type Slot struct {
	Occupied bool
	Job      olaf.ClusterID
	Seg      uint64
	Bitmap   uint64
	Count    int
	Since    olaf.Time // time of the first contribution
	Lanes    []uint32
	Trace
}

// Arithmetic is the type of the 32-bit lanes and the rule by which they are added.
type Arithmetic uint8

const (
	Opaque     Arithmetic = iota // never added
	Float32                      // IEEE 754, added in order of arrival, without fused operations
	Wrapping                     // int32 modulo 2^32
	Saturating                   // int32, clamped to its range
	Sticky                       // like Saturating, and a lane that has reached a limit stays there
)

var arithmetics = [...]string{"opaque", "float32", "int32 wrapping", "int32 saturating", "int32 saturating, sticky"}

// String returns the lane type and the rule for addition, such as "int32 saturating".
func (a Arithmetic) String() string {
	if int(a) < len(arithmetics) {
		return arithmetics[a]
	}
	return fmt.Sprintf("arithmetic(%d)", uint8(a))
}

// Program is the state of one protocol in one switch. It is not safe for concurrent use. The same calls always have the
// same results.
type Program interface {
	// Receive processes a packet, with its lanes, that arrived at now on port from, and returns its class. It emits
	// resulting packets before it returns. The arguments are not retained. lanes must be nil or p.Lanes long.
	Receive(now olaf.Time, from Port, p *Packet, lanes []uint32, out Out) Class
	// Configure admits or changes a job; its error matches ErrConfig. Remove ends a job and frees its slots.
	Configure(j Job) error
	Remove(job olaf.ClusterID)

	// Slots returns the size of the table, Slot returns a view of one slot, and Occupied returns the number of occupied
	// slots.
	Slots() int
	Slot(i int) Slot
	CountOccupied() int
	// Memory returns the memory that the table occupies in a switch.
	Memory() olaf.Size
	// Counts returns the values of the counters in the description's ledger, in its order, since creation or the last
	// reset. The identities of a run are checked with them.
	Counts() []uint64
	// Reset empties the table and zeroes the counts. It keeps jobs and memory.
	Reset()
}

// Description describes a program for code outside its folder.
type Description struct {
	Name       string
	Code       uint32   // value of the register aggregator.program
	Open       bool     // any H contributions complete a sum, so workers need not wait for results
	Profiles   []string // possible values of Config.Profile, the default first
	Arithmetic Arithmetic
	// Completes describes how many contributions complete a sum and how to change that. It is empty for a program that
	// adds nothing.
	Completes string
	// Ledger declares the program's counters: first a counter of arrivals per Class, then the contribution counters.
	Ledger  *olaf.Ledger
	Classes int              // number of classes
	Actions map[string]uint8 // codes of control packets, by their names in vectors
	// Tables are the tables that controllers write for the program's jobs; nil if controllers do not manage them.
	// Stranger is the class for packets from workers that no table admits.
	Tables   []Table
	Stranger Class
	ToS      uint8 // type of service of data packets, for switches that recognize data by it
	// Above selects one of the given parent switches; there is at least one. It is nil if the program does not select a
	// parent.
	Above func([]netip.Addr) int
	New   func(Config) (Program, error)
}

// ProgramNames returns the names of the given programs, in order.
func ProgramNames(programs []Description) (names []string) {
	for i := range programs {
		names = append(names, programs[i].Name)
	}
	return names
}

// ProgramName returns the name of the program with the given code in the register map, or the code as text if there is
// none.
func ProgramName(programs []Description, code uint32) string {
	if i := slices.IndexFunc(programs, func(d Description) bool { return d.Code == code }); i >= 0 {
		return programs[i].Name
	}
	return strconv.FormatUint(uint64(code), 10)
}

// CountsOf returns the counts of program p, with the names in the description's ledger.
func (d *Description) CountsOf(p Program) olaf.Counts {
	c := olaf.NewCounts(d.Ledger)
	for i, n := range p.Counts() {
		c.SetAt(i, int64(n))
	}
	return c
}

// ClassNames returns the names of all classes, in order.
func (d *Description) ClassNames() (names []string) {
	for c := range d.Classes {
		names = append(names, d.ClassName(Class(c)))
	}
	return names
}

// ClassName returns the name of a class, as used in ledgers and golden vectors.
func (d *Description) ClassName(c Class) string {
	if int(c) < d.Classes {
		return d.Ledger.Counters[c].Name
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}
