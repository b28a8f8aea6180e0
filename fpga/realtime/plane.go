package realtime

import (
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/xdp"
)

// Plane decides about frames: xdp.Queue is one. Frames come to it by the interface that it is attached to; it is asked for what
// leaves, by one caller at a time.
type Plane interface {
	// SetSenders replaces the table of workers; a frame sees the old one or the new one.
	SetSenders([]xdp.Sender) error
	// Configure and Reset need an empty queue that does not run. Reset begins to number decisions anew.
	Configure(xdp.Settings) error
	Reset() error
	Run(on bool) error
	// Turn releases the frame on the wire and starts the head, as asked, which is written into buf.
	Turn(release, start bool, buf []byte) (xdp.Exchange, []byte, error)
	Flush() (xdp.Exchange, error)
	Inspect(index int, buf []byte) (xdp.Exchange, error)
	// Latch takes the counters since it was last called; see xdp.Queue.
	Latch(clear bool) (xdp.Exchange, map[string]uint64, error)
	Cluster(olaf.ClusterID) (xdp.ClusterCounts, error)
	// Decisions hands out what was decided since the last call.
	Decisions(visit func(*xdp.Decision)) error
	Attach(at *netlab.Interface, mode xdp.Mode) (io.Closer, error)
	Close() error
}

// Backend is a kind of planes.
type Backend struct {
	Kind    string // of fpga.Identity
	Address string // that opens the device again
	Build   string // what decides, in a word
	Mode    xdp.Mode
	Rights  []netlab.Right // to load its planes
	// Forwards says that its planes pass packets on between hosts themselves; else the kernel of the switch does.
	Forwards bool
	// LogBytes is the room of the decision log, a power of two and pages; 0 is what a run of every length has room in.
	LogBytes int
	// AnyRate lets frames come as fast as descriptors say, which is for tests: the times of what is beyond the machine are not kept.
	AnyRate bool
	// Load makes the plane of a discipline; Disciplines are those that there are.
	Load        func(discipline string, b xdp.Build) (Plane, error)
	Disciplines []string
	// Programs are those that hosts can wait for; nil of a backend that has none.
	Programs []program.Description
}
