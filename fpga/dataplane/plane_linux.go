package dataplane

import (
	"io"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/program"
)

// Plane decides what happens to the frames that arrive at the interfaces to which it is attached. xdp.Queue is an
// implementation. Only one caller at a time may request departures.
type Plane interface {
	// SetSenders replaces the table of workers. Each frame is handled with either the old or the new table.
	SetSenders([]Sender) error
	// Configure and Reset require an empty, stopped queue. Reset restarts the numbering of decisions.
	Configure(Settings) error
	Reset() error
	Run(on bool) error
	// Turn releases the frame on the wire and starts the head, each if requested. It writes the started frame to buf.
	Turn(release, start bool, buf []byte) (Exchange, []byte, error)
	Flush() (Exchange, error)
	Inspect(index int, buf []byte) (Exchange, error)
	// Latch returns the counts since the last latch; see xdp.Queue.
	Latch(clear bool) (Exchange, map[string]uint64, error)
	Cluster(olaf.ClusterID) (ClusterCounts, error)
	// Decisions calls visit for the decisions since its last call.
	Decisions(visit func(*Decision)) error
	Attach(at *netlab.Interface, mode Mode) (io.Closer, error)
	Close() error
}

// Backend describes a kind of plane and how to load it.
type Backend struct {
	Kind    string // kind in fpga.Identity
	Address string // address that opens the device again
	Build   string // name of the part that decides
	Mode    Mode
	Rights  []netlab.Right // rights needed to load its planes
	// Forwards is set if the backend's planes forward packets between hosts. Otherwise the switch's kernel does so.
	Forwards bool
	// LogBytes is the size of the decision log, a power of two and a multiple of the page size. 0 selects the default,
	// which is enough for runs of any length.
	LogBytes int
	// AnyRate, for tests, disables the check of the offered rate. Beyond the machine's capacity frames are not sent on
	// time.
	AnyRate bool
	// Load creates a plane for a discipline. Disciplines lists the disciplines for which it can.
	Load        func(discipline string, b Build) (Plane, error)
	Disciplines []string
	// Programs lists the programs available to closed-loop hosts.
	Programs []program.Description
}
