package slowmotion

import (
	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/aggregator"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/results"
)

// Snapshot is the state of a live session at one instant. It never changes after it is published.
type Snapshot struct {
	Plan   *bench.Plan
	Device fpga.Identity
	Rate   int // index of the specification's output rate, from 0
	Seed   uint64
	// Sampled is set if the device provides only counters and deliveries, timed by the capture, but no single slots.
	Sampled bool
	// Logs is set if the device logs the arrivals at its queue, so there will be a Pair.
	Logs bool
	// Hosts is set if the device is a testbed with roles on hosts, which inspections describe.
	Hosts bool

	State State
	Speed Speed
	Now   olaf.Time // on the generator's run clock
	End   olaf.Time // expected time at which the last update has left
	Sent  int64
	Total int64
	Err   error

	Watched olaf.ClusterID  // the cluster in Teeth
	Queues  []QueueSnapshot // one or two, on one time axis
}

// State is the state of a live session, such as running or paused.
type State uint8

const (
	Paused State = iota
	Running
	Done // everything was sent, and the queue is empty
	Failed
)

// String returns the state as a word.
func (s State) String() string {
	return [...]string{"paused", "running", "done", "failed"}[min(s, Failed)]
}

// QueueSnapshot is the state of one queue in a Snapshot. Times are on the clock of the run.
type QueueSnapshot struct {
	Name    string
	OutRate olaf.Rate
	Slots   int

	Items     []SlotSnapshot // in departure order, the leaving one first
	Occupancy int
	Answers   bool // sums go to the workers
	// OnTheWay is the number of sums in flight from the queue to the workers, if the switch answers them.
	OnTheWay int
	Clusters []ClusterSnapshot // by id

	InRate, OutputRate float64 // bits per second over the last RateWindow
	RateWindow         olaf.Duration

	// Ages are in ns, means over clusters. MeanAoM averages each sawtooth from its first delivery to its last one so
	// far, like a bench (docs/reference/metrics.md); AoMNow excludes finished sawtooths.
	MeanAoM, AoMNow [olaf.Readings]results.Float
	NoAges          string // the reason why the snapshot has no ages; empty if it has them

	Counters olaf.Counts
	Invalid  string // the broken accounting identity; empty for none
	// Pair compares the run with the twin's runs of the plan and of the logged arrivals; nil before its end.
	Pair   *results.Row
	Merges []int64 // delivered frames by number of aggregations
	Series []SeriesPoint
	Teeth  []Tooth // sawtooth of the watched cluster, oldest tooth first, if stored
	Log    []Event // newest last
	Events int64   // total, including those no longer in Log
}

// SlotSnapshot describes one update in the queue.
type SlotSnapshot struct {
	Frame   int64 // in the order of appends, from 0
	Update  int64 // newest contributor, for Life
	Slot    engine.Slot
	Cluster olaf.ClusterID
	Worker  olaf.WorkerID
	Count   int
	Age     olaf.Duration // since the newest contributor was generated
	Waited  olaf.Duration // since the slot was filled
	Locked  bool          // it is leaving
	Sent    float64       // fraction that has left, 0 … 1
}

// ClusterSnapshot contains one cluster's counts and ages so far.
type ClusterSnapshot struct {
	ID        olaf.ClusterID
	Sent      int64 // updates that reached the queue
	Merged    int64
	Replaced  int64
	Dropped   int64
	Delivered int64 // frames
	// Done is set if nothing more can come: all its updates were sent, and none is in the queue. Its sawtooth has
	// ended.
	Done bool
	AoM  [olaf.Readings]results.Float // ns, now; missing before the first delivery and at the end
	Mean [olaf.Readings]results.Float // ns, time average from the first delivery to the last; missing before the second
	Peak results.Float                // ns, mean over deliveries of the age that they ended
}

// LostPct returns the percentage of the cluster's updates that were dropped or replaced.
func (c *ClusterSnapshot) LostPct() float64 {
	if c.Sent == 0 {
		return 0
	}
	return 100 * float64(c.Dropped+c.Replaced) / float64(c.Sent)
}

// SeriesPoint describes a queue's activity in the interval that ends at time At.
type SeriesPoint struct {
	At        olaf.Time
	AoM       [olaf.Readings]float64   // ns, mean over clusters at At; 0 if none has an age
	Ages      [olaf.Readings][]float32 // ns, per cluster; NaN if it has none. nil for too many clusters
	InBits    int64
	OutBits   int64
	Dropped   int32
	Merged    int32
	Occupancy int32 // largest in the interval
}

// Tooth is one delivery in a cluster's sawtooth. At time At the age fell to Age.
type Tooth struct {
	At     olaf.Time
	Before olaf.Duration // the age before; negative for the first delivery
	Age    olaf.Duration
}

// Kind is the kind of an event at a queue: an engine.Class, or the start or end of a frame.
type Kind uint8

const (
	Started   = Kind(engine.Classes) + iota // a frame began to leave
	Delivered                               // its last bit left
)

// String returns the kind's name in the log.
func (k Kind) String() string {
	switch k {
	case Started:
		return "started"
	case Delivered:
		return "delivered"
	}
	return engine.Class(k).String()
}

// IsDrop reports whether the event is the drop of an update.
func (k Kind) IsDrop() bool {
	c := engine.Class(k)
	return c == engine.DroppedFull || c == engine.DroppedReward || c == engine.DroppedMismatch
}

// Event is one line in the event log of a queue.
type Event struct {
	At      olaf.Time
	Kind    Kind
	Update  int64 // number of the update, in order of arrival, for Life; for a frame, of its newest contributor
	Frame   int64 // number of the frame; -1 for a dropped update
	Slot    engine.Slot
	Cluster olaf.ClusterID
	Worker  olaf.WorkerID
	Seq     uint32
	Count   int // updates in the frame after the event
}

// Member is one of the updates that a frame contains.
type Member struct {
	Update  int64
	Worker  olaf.WorkerID
	Seq     uint32
	Kind    Kind
	Created olaf.Time
	Arrived olaf.Time
}

// Life is the history of one update at the queue.
type Life struct {
	Queue   string
	Member  // the update itself
	Cluster olaf.ClusterID
	Frame   int64 // -1 if it entered none
	With    []Member
	// ReplacedBy is the update that took this update's place in the frame; it may be nil.
	ReplacedBy *Member
	Started    olaf.Time // negative: not yet
	Delivered  olaf.Time // negative: not yet
	// The cluster's age just before and just after the delivery. They are equal if something newer had been delivered,
	// and AoMBefore is negative for the first delivery.
	AoMBefore, AoMAfter olaf.Duration
	Forgotten           bool // the frame's history is incomplete
}

// Inspection contains the tables and registers of a session and the state of its devices. It takes longer to read than
// a snapshot.
type Inspection struct {
	Tables      p4ctl.Tables
	Role        string // primary, backup, …
	ElectionID  string
	Target      string
	RoleErr     error
	Registers   []RegisterValue
	Cards       []CardState
	Hosts       []results.Host // hosts of a testbed with roles, with their clocks now
	TablesError error
}

// RegisterValue is the value of one readable register of the first card.
type RegisterValue struct {
	Name    string
	Address uint32
	Wide    bool
	Value   uint64
	Decoded string // fields by name, or the value with its unit
	Doc     string
}

// CardState is the state of one card or twin in the testbed.
type CardState struct {
	Queue       string
	Device      fpga.Identity
	Table       *aggregator.Table // table of the program in front of the queue; nil if there is none, or it cannot be read
	Virtual     bool              // its links and time are virtual
	Generator   string            // state of the generator
	Observed    int64             // updates in the capture
	CaptureLost int64
	Late        uint64 // packets that the generator sent late
	Slots       uint32 // number of slots built
	Clusters    uint32
	Flows       uint32
	Descriptors uint32
}
