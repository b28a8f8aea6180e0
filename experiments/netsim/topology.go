package netsim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/internal/yamlfile"
)

// topologySchema is the schema of the topology files that ParseTopology reads.
const topologySchema = "olafctl.topology/v1"

// Topology describes a network, the clusters that train over it, and the duration of the measurement. It has the yaml
// fields of a topology file; docs/reference/topology-file.md explains each field.
type Topology struct {
	Pos      `yaml:"-"`
	File     string        `yaml:"-"` // path, for messages
	systems  system.Set    // known systems
	Schema   string        `yaml:"schema"`
	Name     string        `yaml:"name"`
	Duration olaf.Duration `yaml:"duration"`         // measured time, after the warm-up
	Warmup   olaf.Duration `yaml:"warmup,omitempty"` // run before the measurement
	Seed     uint64        `yaml:"seed"`
	Queue    string        `yaml:"queue"`  // default discipline of output ports
	Update   olaf.Size     `yaml:"update"` // L2 frame of an update
	// RewardFilter compares rewards before updates merge (paper §3). RewardThreshold is the maximum difference in
	// reward for merging. Rewards are standard normal, as in a bench; without the filter, they are all 0.
	RewardFilter    bool    `yaml:"reward_filter,omitempty"`
	RewardThreshold float64 `yaml:"reward_threshold,omitempty"`
	// Timing is exact (default) or ns3. With exact, times are integer ps, remainders are carried over, and departures
	// precede arrivals at equal instants. With ns3, each transmission time is rounded to ns, and simultaneous events
	// happen in the order of their causes, as in ns-3.
	Timing Timing `yaml:"timing,omitempty"`
	// Acks selects whether ACKs are multicast to the cluster's workers (default) or not sent at all.
	Acks    Acks    `yaml:"acks,omitempty"`
	Control Control `yaml:"transmission_control,omitempty"`
	// Waiting is the system of closed-loop workers; nil for open loop.
	Waiting *Waiting `yaml:"waiting,omitempty"`
	// Program is the system whose switches add open-loop updates, H per sum; empty if switches only forward.
	Program string `yaml:"program,omitempty"`
	H       int    `yaml:"h,omitempty"`
	// Sends is the path of a CSV file with the columns time_ns,worker that replaces all arrivals. Workers are numbered
	// from 0 over all clusters.
	Sends      string `yaml:"sends,omitempty"`
	sends      []send
	Switches   []Switch     `yaml:"switches"`
	Servers    []Server     `yaml:"servers"`
	Links      []Link       `yaml:"links"`
	Routes     []Route      `yaml:"routes,omitempty"`
	Clusters   []Clusters   `yaml:"clusters"`
	Background []Background `yaml:"background,omitempty"`
	Schedule   []Change     `yaml:"schedule,omitempty"`
	// Expect contains expectations on the results, in the syntax of package expect. They are not checked here.
	Expect []string `yaml:"expect,omitempty"`
}

// Control configures the transmission control of all workers (paper §5), and the counts that ACKs contain for it.
type Control struct {
	Pos       `yaml:"-"`
	Enabled   bool          `yaml:"enabled"`
	Threshold olaf.Duration `yaml:"threshold,omitempty"` // Δ̄T
	Slope     tc.Slope      `yaml:"slope,omitempty"`
	Law       tc.LawName    `yaml:"law,omitempty"`    // default tc.PaperLaw
	Ack       tc.AckContent `yaml:"ack,omitempty"`    // default tc.NumberAck
	Count     Count         `yaml:"count,omitempty"`  // meaning of N
	Window    olaf.Duration `yaml:"window,omitempty"` // a cluster is active at a switch for one to two windows after its last update; default 1s
}

// buildLaw returns the control law. Unknown laws were already rejected by Check.
func (c *Control) buildLaw() tc.Law {
	law, err := tc.NewLaw(c.Law, tc.Config{Threshold: c.Threshold, Slope: c.Slope, Ack: c.Ack})
	if err != nil {
		return tc.Free{}
	}
	return law
}

// Switch is a switch that forwards by static routes. It has one engine per output port.
type Switch struct {
	Pos     `yaml:"-"`
	Name    string `yaml:"name"`
	Slots   int    `yaml:"slots"`
	HoldTx  bool   `yaml:"slot_held_during_tx,omitempty"`
	Queue   string `yaml:"queue,omitempty"`
	Profile string `yaml:"profile,omitempty"`      // engine cycles: ideal (default), calibrated, measured or measured-shared
	Bypass  int    `yaml:"bypass_slots,omitempty"` // background packets per port; default 64
}

// Server is a parameter server. It answers every update after the time Processing and processes one request at a time.
type Server struct {
	Pos        `yaml:"-"`
	Name       string        `yaml:"name"`
	Processing olaf.Duration `yaml:"processing,omitempty"`
}

// Link is a full-duplex cable between two nodes. It has an output port at each end that is a switch.
type Link struct {
	Pos      `yaml:"-"`
	From     string        `yaml:"from"`
	To       string        `yaml:"to"`
	Rate     olaf.Rate     `yaml:"rate"`
	Delay    olaf.Duration `yaml:"delay,omitempty"`
	Overhead olaf.Size     `yaml:"overhead,omitempty"`  // bytes on the wire per frame beyond its L2 length
	Loss     float64       `yaml:"loss,omitempty"`      // share of frames lost in each direction, 0 to 1
	AckRate  olaf.Rate     `yaml:"ack_rate,omitempty"`  // rate in the ACKs' direction; if absent, ACKs only take the delay
	AckSlots int           `yaml:"ack_slots,omitempty"` // ACKs that can wait besides the one on the wire; if absent, any number
}

// Route overrides the shortest path. At node At, frames for server To are sent to Via.
type Route struct {
	Pos `yaml:"-"`
	At  string `yaml:"at"`
	To  string `yaml:"to"`
	Via string `yaml:"via"`
}

// Access is the link between a worker and its switch.
type Access struct {
	Pos      `yaml:"-"`
	Rate     olaf.Rate     `yaml:"rate,omitempty"` // if absent, frames take only the delay
	Delay    olaf.Duration `yaml:"delay,omitempty"`
	Overhead olaf.Size     `yaml:"overhead,omitempty"`
	Loss     float64       `yaml:"loss,omitempty"` // share of frames lost in each direction, 0 to 1
}

// Clusters describes Count identical clusters with Workers workers each. Their ids are consecutive and begin at ID.
type Clusters struct {
	Pos      `yaml:"-"`
	Group    string        `yaml:"group,omitempty"` // groups for averages in reports
	ID       int           `yaml:"id"`
	Count    int           `yaml:"count,omitempty"` // default 1
	Workers  int           `yaml:"workers"`
	At       Names         `yaml:"at"` // switches; workers are assigned to them in turn
	Server   string        `yaml:"server,omitempty"`
	Access   Access        `yaml:"access,omitempty"`
	Arrivals Arrivals      `yaml:"arrivals,omitempty"` // periodic (default) or poisson
	Period   olaf.Duration `yaml:"period,omitempty"`
	Phase    Span          `yaml:"phase,omitempty"`  // each worker's offset, fixed for the run; if absent, anywhere in the period
	Jitter   olaf.Duration `yaml:"jitter,omitempty"` // upper limit of each send's random delay
	Spread   Percent       `yaml:"spread,omitempty"` // each worker's period differs by up to this share either way
	Start    olaf.Duration `yaml:"start,omitempty"`
	Stop     olaf.Duration `yaml:"stop,omitempty"` // if absent, the end of the run
}

// Background is traffic that does not belong to training. It bypasses the engines and shares the links.
type Background struct {
	Pos      `yaml:"-"`
	At       string        `yaml:"at"`
	To       string        `yaml:"to"`
	Rate     olaf.Rate     `yaml:"rate"` // of L2 frames, on average
	Size     olaf.Size     `yaml:"size"`
	Arrivals Arrivals      `yaml:"arrivals,omitempty"`
	Start    olaf.Duration `yaml:"start,omitempty"`
	Stop     olaf.Duration `yaml:"stop,omitempty"`
}

// Change changes a link at an instant. It sets the rate in the direction from From to To, or takes both directions down
// or up.
type Change struct {
	Pos  `yaml:"-"`
	At   olaf.Duration `yaml:"at"`
	From string        `yaml:"from"`
	To   string        `yaml:"to"`
	Rate olaf.Rate     `yaml:"rate,omitempty"`
	Link LinkState     `yaml:"link,omitempty"`
}

// Timing selects how times are computed and how simultaneous events are ordered.
type Timing string

const (
	Exact Timing = "exact"
	NS3   Timing = "ns3"
)

// Acks selects the workers that receive ACKs.
type Acks string

const (
	AcksMulticast Acks = "multicast"
	AcksNone      Acks = "none"
)

// Count selects the meaning of N in an ACK.
type Count string

const (
	// CountClusters counts the clusters whose updates a switch has seen recently, as in the paper.
	CountClusters Count = "clusters"
	// CountSenders counts the workers in the clusters whose updates a switch has seen recently.
	CountSenders Count = "senders"
	// CountInside counts the clusters that have an update in the queue at the time, like the hardware register.
	CountInside Count = "inside"
)

// LinkState is the state of a link, up or down.
type LinkState string

const (
	LinkUp   LinkState = "up"
	LinkDown LinkState = "down"
)

// Arrivals is the distribution of gaps between updates.
type Arrivals string

const (
	Periodic Arrivals = "periodic"
	Poisson  Arrivals = "poisson"
)

// Names is a single name or a list of names.
type Names []string

// Percent is a share. In memory it is at least 0 and below 1; in text it is written like 10%.
type Percent float64

// Span is a range of offsets from From (inclusive) to To (exclusive). Equal ends mean a single value. The text 54ms
// means 0..54ms, and =54ms means exactly 54 ms.
type Span struct{ From, To olaf.Duration }

// IsZero reports whether no span was set.
func (s Span) IsZero() bool { return s == Span{} }

// UnmarshalText parses a span in the form lo..hi, hi, or =value.
func (s *Span) UnmarshalText(b []byte) error {
	text := string(b)
	low, high := "0s", text
	if v, ok := strings.CutPrefix(text, "="); ok {
		low, high = v, v
	} else if l, h, ok := strings.Cut(text, ".."); ok {
		low, high = l, h
	}
	if strings.TrimSpace(low) == "0" {
		low = "0s"
	}
	from, err := olaf.ParseDuration(low)
	if err != nil {
		return err
	}
	to, err := olaf.ParseDuration(high)
	if err != nil {
		return err
	}
	if from < 0 || to < from {
		return fmt.Errorf("span %q: the ends must not be negative and must not decrease", text)
	}
	*s = Span{from, to}
	return nil
}

// MarshalText formats the span for UnmarshalText.
func (s Span) MarshalText() ([]byte, error) {
	if s.From == s.To {
		return []byte("=" + s.From.String()), nil
	}
	return []byte(s.From.String() + ".." + s.To.String()), nil
}

// UnmarshalText parses a percentage such as 10%.
func (p *Percent) UnmarshalText(b []byte) error {
	number, ok := strings.CutSuffix(string(b), "%")
	v, err := olaf.ParseNumber(number)
	if !ok || err != nil || !(v >= 0 && v < 100) {
		return fmt.Errorf("share %q is not a percentage from 0%% to below 100%%", b)
	}
	*p = Percent(v / 100)
	return nil
}

// MarshalText formats the share for UnmarshalText.
func (p Percent) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatFloat(float64(p)*100, 'g', -1, 64) + "%"), nil
}

func oneOf[T ~string](dst *T, what string, b []byte, values ...T) error {
	if v := T(b); slices.Contains(values, v) {
		*dst = v
		return nil
	}
	return fmt.Errorf("%s %q is not one of %v", what, b, values)
}

// Allowed values of a file's enumerations. The schema lists the same values.
var (
	timings    = []Timing{Exact, NS3}
	acks       = []Acks{AcksMulticast, AcksNone}
	counting   = []Count{CountClusters, CountSenders, CountInside}
	linkStates = []LinkState{LinkUp, LinkDown}
	arrivals   = []Arrivals{Periodic, Poisson}
)

// CountNames returns the possible meanings of N in an ACK.
func CountNames() []Count { return counting }

func (t *Timing) UnmarshalText(b []byte) error    { return oneOf(t, "timing", b, timings...) }
func (a *Acks) UnmarshalText(b []byte) error      { return oneOf(a, "acks", b, acks...) }
func (c *Count) UnmarshalText(b []byte) error     { return oneOf(c, "count", b, counting...) }
func (l *LinkState) UnmarshalText(b []byte) error { return oneOf(l, "link state", b, linkStates...) }
func (a *Arrivals) UnmarshalText(b []byte) error  { return oneOf(a, "arrivals", b, arrivals...) }

// Pos is a position in a topology file.
type Pos = yamlfile.Pos

// formatIDs formats the range of cluster ids in an entry.
func (k *Clusters) formatIDs() string {
	if k.clusterCount() == 1 {
		return strconv.Itoa(k.ID)
	}
	return fmt.Sprintf("%d–%d", k.ID, k.ID+k.clusterCount()-1)
}

// formatLabel describes an entry in a few lines of text.
func (k *Clusters) formatLabel() string {
	arrivals := "every " + k.Period.String()
	if k.Arrivals == Poisson {
		arrivals = "Poisson, mean " + k.Period.String()
	}
	return fmt.Sprintf("clusters %s\n%s each, %s", k.formatIDs(), olaf.Plural(k.Workers, "worker"), arrivals)
}

// sweepable maps each parameter that can be swept to its setter. A phase of 0 starts all workers at the same instant.
var sweepable = []struct {
	name string
	set  func(*Clusters, olaf.Duration)
}{
	{"phase", func(k *Clusters, v olaf.Duration) { k.Phase = Span{0, max(v, olaf.Nanosecond)} }},
	{"jitter", func(k *Clusters, v olaf.Duration) { k.Jitter = v }},
	{"period", func(k *Clusters, v olaf.Duration) { k.Period = v }},
}

// SweepableNames returns the names of the worker parameters that With can set.
func SweepableNames() []string {
	var names []string
	for _, p := range sweepable {
		names = append(names, p.name)
	}
	return names
}

// With returns a copy of the topology in which a parameter is set to v for all workers. If the parameter is unknown,
// the copy is unchanged.
func (t *Topology) With(parameter string, v olaf.Duration) *Topology {
	one := *t
	one.Clusters = append([]Clusters(nil), t.Clusters...)
	for _, p := range sweepable {
		if p.name != parameter {
			continue
		}
		for i := range one.Clusters {
			p.set(&one.Clusters[i], v)
		}
	}
	return &one
}
