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

// Snapshot is what a live session looked like at one instant. It is never changed after it was published; whoever
// shows it pulls the newest one.
type Snapshot struct {
	Plan   *bench.Plan
	Device fpga.Identity
	Rate   int // which of the specification's output rates, from 0
	Seed   uint64
	// Sampled says that the device tells counters and deliveries only: nothing about single slots, and times are those
	// of the capture.
	Sampled bool
	// Logs says that the device tells what reached its queue, so that there will be a Pair.
	Logs bool

	State State
	Speed Speed
	Now   olaf.Time // on the generator's run clock
	End   olaf.Time // when the last update is expected to have left
	Sent  int64
	Total int64
	Err   error

	Watched olaf.ClusterID  // whose Teeth are shown
	Queues  []QueueSnapshot // one or two, on one time axis
}

// State is where a live session stands.
type State uint8

const (
	Paused State = iota
	Running
	Done // everything was sent, and the queue is empty
	Failed
)

// String is the state in a word.
func (s State) String() string {
	return [...]string{"paused", "running", "done", "failed"}[min(s, Failed)]
}

// QueueSnapshot is one queue at the instant of a Snapshot. Ages and times are those of the run clock.
type QueueSnapshot struct {
	Name    string
	OutRate olaf.Rate
	Slots   int

	Items     []SlotSnapshot // in departure order, the leaving one first
	Occupancy int
	Answers   bool // its sums go to the workers
	// OnTheWay is how many sums have left the queue for the workers and not reached them yet, where the switch answers them.
	OnTheWay int
	Clusters []ClusterSnapshot // by id

	InRate, OutputRate float64 // bits per second over the last RateWindow
	RateWindow         olaf.Duration

	// Ages are in ns, means over clusters. MeanAoM averages each sawtooth from its first delivery to its last one so far,
	// as a bench does (docs/reference/metrics.md); AoMNow leaves out what has ended.
	MeanAoM, AoMNow [olaf.Readings]results.Float

	Counters olaf.Counts
	Invalid  string // which accounting identity is broken; empty for none
	// Pair is the run beside the twin's of its plan and of the arrivals that were logged; nil before its end.
	Pair   *results.Row
	Merges []int64 // delivered frames by how many aggregations they carried
	Series []SeriesPoint
	Teeth  []Tooth // of the watched cluster, oldest first, as far as remembered
	Log    []Event // newest last
	Events int64   // in all, also those that Log no longer holds
}

// SlotSnapshot is one update inside the queue.
type SlotSnapshot struct {
	Frame   int64 // number of the frame, from 0 in the order of appends
	Update  int64 // newest contributor, for Life
	Slot    engine.Slot
	Cluster olaf.ClusterID
	Worker  olaf.WorkerID
	Count   int
	Age     olaf.Duration // since the newest contributor was generated
	Waited  olaf.Duration // since the slot was filled
	Locked  bool          // it is leaving
	Sent    float64       // how much of it has left, 0 … 1
}

// ClusterSnapshot is one cluster's fate so far.
type ClusterSnapshot struct {
	ID        olaf.ClusterID
	Sent      int64 // updates that reached the queue
	Merged    int64
	Replaced  int64
	Dropped   int64
	Delivered int64 // frames
	// Done says that nothing more can come: all its updates were sent, and none is inside. Its sawtooth ends.
	Done bool
	AoM  [olaf.Readings]results.Float // ns, now; missing before the first delivery and when it is done
	Mean [olaf.Readings]results.Float // ns, time average from the first delivery to the last; missing before the second
	Peak results.Float                // ns, mean over deliveries of the age that they ended
}

// LostPct is the share of the cluster's updates that were dropped or replaced.
func (c *ClusterSnapshot) LostPct() float64 {
	if c.Sent == 0 {
		return 0
	}
	return 100 * float64(c.Dropped+c.Replaced) / float64(c.Sent)
}

// SeriesPoint is what a queue did within one interval that ends at At.
type SeriesPoint struct {
	At        olaf.Time
	AoM       [olaf.Readings]float64   // ns, mean over clusters at At; 0 where none has an age
	Ages      [olaf.Readings][]float32 // ns, of each cluster; NaN where it has none. nil where clusters are too many
	InBits    int64
	OutBits   int64
	Dropped   int32
	Merged    int32
	Occupancy int32 // largest
}

// Tooth is one delivery in a cluster's sawtooth: at At the age fell to Age.
type Tooth struct {
	At     olaf.Time
	Before olaf.Duration // the age that it ended; negative for the first delivery
	Age    olaf.Duration
}

// Kind is what an event of a queue was: an engine.Class, or a frame's start or end.
type Kind uint8

const (
	Started   = Kind(engine.Classes) + iota // a frame began to leave
	Delivered                               // its last bit left
)

// String is the kind's name in the log.
func (k Kind) String() string {
	switch k {
	case Started:
		return "started"
	case Delivered:
		return "delivered"
	}
	return engine.Class(k).String()
}

// Dropped says that the update of the event went no further.
func (k Kind) Dropped() bool {
	c := engine.Class(k)
	return c == engine.DroppedFull || c == engine.DroppedReward || c == engine.DroppedMismatch
}

// Event is one line of a queue's log.
type Event struct {
	At      olaf.Time
	Kind    Kind
	Update  int64 // number of the update, in order of arrival, for Life; of the newest contributor for a frame
	Frame   int64 // number of the frame; -1 for a dropped update
	Slot    engine.Slot
	Cluster olaf.ClusterID
	Worker  olaf.WorkerID
	Seq     uint32
	Count   int // updates inside the frame after the event
}

// Member is one update inside a frame.
type Member struct {
	Update  int64
	Worker  olaf.WorkerID
	Seq     uint32
	Kind    Kind
	Created olaf.Time
	Arrived olaf.Time
}

// Life is what became of one update.
type Life struct {
	Queue   string
	Member  // the update itself
	Cluster olaf.ClusterID
	Frame   int64 // -1: it entered none
	With    []Member
	// ReplacedBy took its place in the frame; nil when nobody did.
	ReplacedBy *Member
	Started    olaf.Time // negative: not yet
	Delivered  olaf.Time // negative: not yet
	// The cluster's age just before and after the delivery; the same when something newer had been delivered. Before is
	// negative for the first delivery.
	AoMBefore, AoMAfter olaf.Duration
	Forgotten           bool // the session no longer remembers the whole frame
}

// Inspection is what a session's tables, registers and device hold; it costs more than a snapshot.
type Inspection struct {
	Tables      p4ctl.Tables
	Role        string // primary, backup, …
	ElectionID  string
	Target      string
	RoleErr     error
	Registers   []RegisterValue
	Cards       []CardState
	TablesError error
}

// RegisterValue is one readable register of the first card.
type RegisterValue struct {
	Name    string
	Address uint32
	Wide    bool
	Value   uint64
	Decoded string // fields by name, or the value with its unit
	Doc     string
}

// CardState is one card or twin of the testbed.
type CardState struct {
	Queue       string
	Device      fpga.Identity
	Table       *aggregator.Table // of the program in front of the queue; nil where there is none, or nobody can look
	Virtual     bool              // its links are, as its time is
	Generator   string            // its state
	Observed    int64             // updates that the capture handed over
	CaptureLost int64
	Late        uint64 // packets that the generator sent late
	Slots       uint32 // built
	Clusters    uint32
	Flows       uint32
	Descriptors uint32
}
