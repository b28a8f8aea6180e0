package closedloop

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// ErrConfig is matched by the error for any rejected configuration.
var ErrConfig = olaf.NewError(olaf.Usage, "bad network")

// Link is a cable between two nodes, with the same properties in both directions.
type Link struct {
	Rate     olaf.Rate
	Delay    olaf.Duration
	Overhead olaf.Size // on the line per frame: preamble, check sequence, gap
	Loss     float64   // share of lost frames, 0 to 1
	Every    int       // every n-th frame is lost as well, per direction; 0 for none
	// Frame is the minimum time per frame, of any length: the limit of a host's network card. The resulting queue is
	// before the link.
	Frame olaf.Duration
	// Mark is the backlog at a switch's port from which arriving frames get a congestion mark; 0 marks none.
	Mark olaf.Size
}

// Costs is the time that a host's software takes per message: a fixed time, and a time proportional to the message's
// length.
type Costs struct {
	PerMessage olaf.Duration
	PerMiB     olaf.Duration
}

func (c *Costs) timeOfBytes(n olaf.Size) int64 { return int64(c.PerMiB) / 1024 * int64(n) / 1024 }

// Accelerator models the unit in a switch that runs the program. Frames pass through the unit's bus one at a time. The
// zero value takes no time.
type Accelerator struct {
	BusBytes int           // per beat
	Beat     olaf.Duration // period of the bus clock
	Pipeline int           // beats from a frame's last beat to a result's first
}

// Network is a set of hosts around one switch, or around racks of switches below a root.
type Network struct {
	Workers int // per job
	Jobs    int // at the same time, with separate workers and servers; 0 means 1
	PerRack int // workers per switch; 0 puts all on one
	Link    Link
	Trunk   Link // between switches; defaults to Link
	// Access contains the links of the first workers, if they differ; the others use Link.
	Access []Link
	// Through makes the switch forward a frame while it is still arriving (cut-through), like a switch between
	// servers, instead of storing it first.
	Through bool
	// Tree runs the program on servers that are connected to the switch like workers; nil runs it on switches.
	Tree *Tree
	// Hops arranges the switches as a tree of any depth, with each job on one of them; nil for racks, or one switch.
	Hops *Hops
	// Worker is the cost of sending at a worker, Server the cost of receiving and sending at a server.
	Worker, Server Costs
	Accelerator    Accelerator
	// Cycle is the period of the switches' clock. A frame is processed at the next edge, and its results leave then;
	// with 0, both happen at once.
	Cycle olaf.Duration
}

// Job describes the work that the hosts do. Its JSON form does not include its callbacks.
type Job struct {
	endpoint.Layout
	Updates uint32
	// Compute is the time for a gradient at a worker, uniform within ± Jitter of it; Apply is the time for an update
	// at a worker, ServerApply at a server.
	Compute, Apply, ServerApply olaf.Duration
	Jitter                      float64
	// Late is the additional time for each gradient, by worker; missing entries are 0.
	Late []olaf.Duration
	// Begin, if set, returns the compute time in place of Compute, Jitter and Late. It is called when a worker starts
	// to compute.
	Begin func(worker int, vector uint32) olaf.Duration `json:"-"`
	// Values returns the gradients when they are due; nil for none.
	Values func(now olaf.Time, worker int, vector uint32) []uint32 `json:"-"`
	// Applied is called with every sum that a host applies. A server's sum may be replaced by the weights that it
	// returns.
	Applied func(now olaf.Time, host int, a *endpoint.Aggregate) `json:"-"`
	// Tap, if set, is called with every frame that arrives at a host or at a switch.
	Tap func(f *Frame) `json:"-"`
	// Observer, if set, is notified of the measured events.
	Observer Observer `json:"-"`
	Follow   Follow   `json:"-"` // may be nil
	// Limit is the time after which an unfinished job is stopped; its result is Hung. 0 means an hour.
	Limit olaf.Duration
	// Apart spreads the starts of hosts over this time, by the seed.
	Apart olaf.Duration
}

func (n *Network) checkNetwork() error {
	n.Trunk, n.Jobs = cmp.Or(n.Trunk, n.Link), cmp.Or(n.Jobs, 1)
	links := []*Link{&n.Link, &n.Trunk}
	for i := range n.Access {
		links = append(links, &n.Access[i])
	}
	for _, l := range links {
		switch {
		case l.Rate <= 0:
			return fmt.Errorf("%w: a link of %s", ErrConfig, l.Rate)
		case !(l.Loss >= 0 && l.Loss <= 1):
			return fmt.Errorf("%w: a loss of %g; it must be 0 to 1", ErrConfig, l.Loss)
		case l.Every < 0 || l.Every == 1:
			return fmt.Errorf("%w: every %d-th frame lost; it must be 0 or 2 and more", ErrConfig, l.Every)
		case l.Delay < 0 || l.Overhead < 0 || l.Frame < 0 || l.Mark < 0:
			return fmt.Errorf("%w: a link with a delay of %s, %s beside each frame, %s a frame and marks from %s",
				ErrConfig, l.Delay, l.Overhead, l.Frame, l.Mark)
		}
	}
	switch {
	case n.Workers < 1 || n.Workers > MaxWorkers:
		return fmt.Errorf("%w: %d workers; frames name 1 to %d of a job", ErrConfig, n.Workers, MaxWorkers)
	case n.Jobs < 1 || n.Jobs > MaxJobs:
		return fmt.Errorf("%w: %d jobs; frames name 1 to %d", ErrConfig, n.Jobs, MaxJobs)
	case len(n.Access) > n.Workers:
		return fmt.Errorf("%w: links for %d of %d workers", ErrConfig, len(n.Access), n.Workers)
	case n.PerRack < 0:
		return fmt.Errorf("%w: %d workers a rack", ErrConfig, n.PerRack)
	case n.Accelerator.BusBytes < 0 || n.Accelerator.Beat < 0 || n.Accelerator.Pipeline < 0:
		return fmt.Errorf("%w: an accelerator of %d bytes a beat of %s", ErrConfig, n.Accelerator.BusBytes,
			n.Accelerator.Beat)
	case n.Cycle < 0:
		return fmt.Errorf("%w: a clock with a cycle of %s", ErrConfig, n.Cycle)
	}
	return errors.Join(n.Tree.checkTree(n), n.Hops.checkHops(n))
}

func (j *Job) checkJob() error {
	switch {
	case !(j.Jitter >= 0 && j.Jitter <= 1):
		return fmt.Errorf("%w: computing times spread by %g of themselves; it must be 0 to 1", ErrConfig, j.Jitter)
	case j.Compute < 0 || j.Apply < 0 || j.ServerApply < 0 || j.Limit < 0 || j.Apart < 0:
		return fmt.Errorf("%w: computing takes %s, applying %s and %s, within %s", ErrConfig, j.Compute, j.Apply,
			j.ServerApply, j.Limit)
	}
	for worker, late := range j.Late {
		if late < 0 {
			return fmt.Errorf("%w: worker %d is late by %s", ErrConfig, worker, late)
		}
	}
	j.Limit = cmp.Or(j.Limit, 3600*olaf.Second)
	return nil
}

// SetLoss sets the loss rate of every link to share.
func (n *Network) SetLoss(share float64) {
	n.Link.Loss = share
	for i := range n.Access {
		n.Access[i].Loss = share
	}
	if n.Tree != nil {
		for i := range n.Tree.Servers {
			n.Tree.Servers[i].Link.Loss = share
		}
	}
	if n.Hops != nil {
		for i := range n.Hops.Switches {
			n.Hops.Switches[i].Up.Loss = share
		}
	}
}
