package realtime

import (
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/xdp"
)

// Plane decides what happens to the frames that arrive at the interfaces to which it is attached. xdp.Queue is an
// implementation. Only one caller at a time may request departures.
type Plane interface {
	// SetSenders replaces the table of workers; each frame sees either the old or the new one.
	SetSenders([]xdp.Sender) error
	// Configure and Reset need an empty, stopped queue. Reset restarts the numbering of decisions.
	Configure(xdp.Settings) error
	Reset() error
	Run(on bool) error
	// Turn releases the frame on the wire and starts the head, each if requested. The started frame is written to
	// buf.
	Turn(release, start bool, buf []byte) (xdp.Exchange, []byte, error)
	Flush() (xdp.Exchange, error)
	Inspect(index int, buf []byte) (xdp.Exchange, error)
	// Latch returns the counts since its last call; see xdp.Queue.
	Latch(clear bool) (xdp.Exchange, map[string]uint64, error)
	Cluster(olaf.ClusterID) (xdp.ClusterCounts, error)
	// Decisions visits the decisions since its last call.
	Decisions(visit func(*xdp.Decision)) error
	Attach(at *netlab.Interface, mode xdp.Mode) (io.Closer, error)
	Close() error
}

// Backend describes a kind of plane and how to load it.
type Backend struct {
	Kind    string // of fpga.Identity
	Address string // address that opens the device again
	Build   string // name of the deciding part
	Mode    xdp.Mode
	Rights  []netlab.Right // needed to load its planes
	// Forwards is set if its planes forward packets between hosts; otherwise the switch's kernel does.
	Forwards bool
	// LogBytes is the size of the decision log, a power of two and whole pages; 0 is enough for runs of any length.
	LogBytes int
	// AnyRate, for tests, disables the check of the offered rate; beyond the machine's capacity times are not kept.
	AnyRate bool
	// Load creates the plane of a discipline; Disciplines lists the available ones.
	Load        func(discipline string, b xdp.Build) (Plane, error)
	Disciplines []string
	// Programs lists the programs available to closed-loop hosts.
	Programs []program.Description
}
