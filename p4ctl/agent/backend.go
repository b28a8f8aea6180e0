package agent

import (
	"sync/atomic"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// Backend is the device behind the tables: a driver or plain memory. The agent calls it from only one goroutine at a
// time and passes only changes that it has checked.
type Backend interface {
	// Verify returns an error if the device cannot run a pipeline of our shape. It changes nothing.
	Verify(info *configv1.P4Info, deviceConfig []byte) error
	// Commit replaces the device's state with a new one.
	Commit(*State) error
	// Do applies one change. If it returns an error, the device is unchanged.
	Do(Change) error
	// AtomicBatches reports whether each packet sees either all or none of a batch, as DATAPLANE_ATOMIC requires.
	AtomicBatches() bool
	// Publish hands over the state after a batch whose changes were all applied.
	Publish(*State)
}

// Embedded is the backend of the twin. The published state is the device. The methods for the data path take no lock.
type Embedded struct{ state atomic.Pointer[State] }

// Tables returns the newest committed state. It is nil before the first commit, which counts as empty.
func (b *Embedded) Tables() *State { return b.state.Load() }

// Verify accepts every pipeline, because the agent has already checked its shape.
func (b *Embedded) Verify(*configv1.P4Info, []byte) error { return nil }

// Commit replaces the state.
func (b *Embedded) Commit(s *State) error { b.state.Store(s); return nil }

// Do does nothing, because Publish makes the whole batch visible at once.
func (b *Embedded) Do(Change) error { return nil }

// AtomicBatches returns true, because Publish only swaps one pointer.
func (b *Embedded) AtomicBatches() bool { return true }

// Publish replaces the state.
func (b *Embedded) Publish(s *State) { b.state.Store(s) }
