package closedloop

import (
	"errors"
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// ErrConfig is the kind of every refused configuration.
var ErrConfig = olaf.NewError(olaf.Usage, "bad network")

// Link is a cable between two nodes; both directions are alike.
type Link struct {
	Rate     olaf.Rate
	Delay    olaf.Duration
	Overhead olaf.Size // on the line beside each frame: preamble, check sequence, gap
	Loss     float64   // share of frames that vanish, 0 to 1
	Every    int       // every so-many-th frame vanishes as well, in each direction by itself; 0 is none
	// Frame is the least time that a frame takes of a link, whatever its length: what the network card of a host manages. A
	// queue that grows by it stands in front of the link.
	Frame olaf.Duration
	// Mark is how much may wait for a switch's port before what comes then is marked as having met congestion; 0 marks nothing.
	Mark olaf.Size
}

// Costs is what a host's software takes for a message: a fixed part, and one that grows with its length.
type Costs struct {
	PerMessage olaf.Duration
	PerMiB     olaf.Duration
}

func (c *Costs) bytes(n olaf.Size) int64 { return int64(c.PerMiB) / 1024 * int64(n) / 1024 }

// Accelerator is the unit of a switch that the program runs on: frames pass it one after the other on its bus. The zero
// value takes no time.
type Accelerator struct {
	BusBytes int           // a beat
	Beat     olaf.Duration // of the bus clock
	Pipeline int           // beats from the last of a frame to the first of a result
}

// Network is hosts around one switch, or around racks of switches below a root.
type Network struct {
	Workers int // of a job
	Jobs    int // that run at the same time, with workers and servers of their own; 0 is one
	PerRack int // workers on a switch; 0 puts all on one
	Link    Link
	Trunk   Link // between switches; the zero value is Link
	// Access are the links of workers that have one of their own; the others have Link.
	Access []Link
	// Through says that a switch forwards a frame while it still arrives, as one between servers does, instead of taking it in
	// first.
	Through bool
	// Tree puts the program on servers, which hang on the switch as workers do; nil leaves it on switches.
	Tree *Tree
	// Hops hangs the jobs on a tree of switches of any depth, each on one of them; nil has racks, or one switch.
	Hops *Hops
	// Worker is what a worker pays for what it sends, Server what a server pays for what it receives and sends.
	Worker, Server Costs
	Accelerator    Accelerator
	// Cycle is of the switches' clock: a frame is met at its next edge, and what that makes leave leaves then. 0 is at once.
	Cycle olaf.Duration
}

// Job is what the hosts do. What it hands over and asks for is no part of its JSON form.
type Job struct {
	endpoint.Layout
	Updates uint32
	// Compute is a gradient's time at a worker, spread evenly by ± Jitter of it; Apply an update's at a worker,
	// ServerApply at a server.
	Compute, Apply, ServerApply olaf.Duration
	Jitter                      float64
	// Late is what every gradient of a worker takes beside that, by worker; those that are not listed nothing.
	Late []olaf.Duration
	// Begin hears that a worker starts to compute and says how long it will; nil takes Compute, Jitter and Late.
	Begin func(worker int, vector uint32) olaf.Duration `json:"-"`
	// Values gives the gradients when they are due; nil carries none.
	Values func(now olaf.Time, worker int, vector uint32) []uint32 `json:"-"`
	// Applied sees what a host applies. A server's may be replaced by the weights that it answers with.
	Applied func(now olaf.Time, host int, a *endpoint.Aggregate) `json:"-"`
	// Tap hears every frame that arrives at a host or at a switch; nil for nobody.
	Tap func(f *Frame) `json:"-"`
	// Observer hears what the network is measured by; nil for nobody.
	Observer Observer `json:"-"`
	Follow   Follow   `json:"-"` // nil lets the run pass
	// Limit ends a job that is not over by then; it hung, unless nobody meant it to end. 0 is an hour.
	Limit olaf.Duration
	// Apart spreads the starts of hosts over this time, by the seed.
	Apart olaf.Duration
}

func (n *Network) check() error {
	if n.Trunk == (Link{}) {
		n.Trunk = n.Link
	}
	if n.Jobs == 0 {
		n.Jobs = 1
	}
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
			return fmt.Errorf("%w: a link with a delay of %s, %s beside each frame, %s a frame and marks from %s", ErrConfig, l.Delay, l.Overhead, l.Frame, l.Mark)
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
		return fmt.Errorf("%w: an accelerator of %d bytes a beat of %s", ErrConfig, n.Accelerator.BusBytes, n.Accelerator.Beat)
	case n.Cycle < 0:
		return fmt.Errorf("%w: a clock with a cycle of %s", ErrConfig, n.Cycle)
	}
	return errors.Join(n.Tree.check(n), n.Hops.check(n))
}

func (j *Job) check() error {
	switch {
	case !(j.Jitter >= 0 && j.Jitter <= 1):
		return fmt.Errorf("%w: computing times spread by %g of themselves; it must be 0 to 1", ErrConfig, j.Jitter)
	case j.Compute < 0 || j.Apply < 0 || j.ServerApply < 0 || j.Limit < 0 || j.Apart < 0:
		return fmt.Errorf("%w: computing takes %s, applying %s and %s, within %s", ErrConfig, j.Compute, j.Apply, j.ServerApply, j.Limit)
	}
	for worker, late := range j.Late {
		if late < 0 {
			return fmt.Errorf("%w: worker %d is late by %s", ErrConfig, worker, late)
		}
	}
	if j.Limit == 0 {
		j.Limit = 3600 * olaf.Second
	}
	return nil
}

// Lose makes every link lose a share of its frames.
func (n *Network) Lose(share float64) {
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
