// Package system says what the runs of a published system count and measure. It is below simulator, training and bench, and
// they are handed what it declares.
package system

import (
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/results/metric"
)

// queued is the account of any queue of package engine.
var queued = metric.OfQueue(engine.Flow(), engine.Sums())

// Queued declares the runs of what passes one queue, and of a network that is taken as one.
func Queued() *metric.Declaration { return queued }

// Declared finds what the runs of a system declare, by the system's name; nil where there is none of that name. Runs that
// were kept before systems had names have none, and passed a queue.
func Declared(system string) *metric.Declaration {
	if system != queued.System {
		return nil
	}
	return queued
}
