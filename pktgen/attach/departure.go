package attach

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// departure describes the host that ended after the fewest sums. In the zero value, no host has ended.
type departure struct {
	host string
	sums uint32 // number of sums that the host had
}

// note stores that a host ended. The server's number follows the workers' numbers, and the switch's number is higher.
func (d *departure) note(host olaf.WorkerID, workers int, sums uint32) {
	if d.host != "" && d.sums <= sums {
		return
	}
	switch d.sums = sums; {
	case int(host) < workers:
		d.host = fmt.Sprintf("worker %d", host)
	case int(host) == workers:
		d.host = "the server"
	default:
		d.host = "the switch"
	}
}

// check returns an error that matches ErrEarlyEnd if a host ended before the sum of a round.
func (d *departure) check(round uint32) error {
	if d.host == "" || round < d.sums {
		return nil
	}
	return fmt.Errorf("%w: %s ended, and without it there are no more sums", ErrEarlyEnd, d.host)
}

// HandleLeave handles that another host ended after a number of sums. It returns an error that matches ErrEarlyEnd if
// the client waits for a sum that needs this host. A later vector that needs the host ends the worker.
func (r *Rounds) HandleLeave(host olaf.WorkerID, sums uint32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.departure.note(host, r.config.Workers, sums)
	if !r.waits {
		return nil
	}
	return r.departure.check(r.flying.round)
}

// HandleLeave handles that a worker or the switch ended. It returns an error that matches ErrEarlyEnd if it was the
// switch, because a server serves the workers that are left.
func (c *Config) HandleLeave(host olaf.WorkerID, _ uint32) error {
	if int(host) <= c.Workers {
		return nil
	}
	return fmt.Errorf("%w: the switch ended", ErrEarlyEnd)
}

// HandleLeave handles that another host ended. It returns an error that matches ErrEarlyEnd if it was the server or the
// switch, because this worker does not need the other workers.
func (w *Pushes) HandleLeave(host olaf.WorkerID, _ uint32) error {
	if int(host) < w.config.Workers {
		return nil
	}
	var d departure
	d.note(host, w.config.Workers, 0)
	return fmt.Errorf("%w: %s ended, and without it there are no more models", ErrEarlyEnd, d.host)
}
