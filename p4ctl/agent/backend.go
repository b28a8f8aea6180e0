package agent

import (
	"sync/atomic"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// Backend is what stands behind the tables: a device's driver, or nothing but memory. The agent calls it from one
// goroutine at a time and only with changes that it has checked.
type Backend interface {
	// Verify says whether the device can realise a pipeline that has the shape of ours; it changes nothing.
	Verify(info *configv1.P4Info, deviceConfig []byte) error
	// Commit makes the device hold exactly this state, whatever it held before.
	Commit(*State) error
	// Do makes one change. When it returns nil the device has it; on an error the device is as it was.
	Do(Change) error
	// AtomicBatches says whether packets see a batch wholly or not at all, which DATAPLANE_ATOMIC asks for.
	AtomicBatches() bool
	// Publish hands over the state after a batch, when every change of it was done.
	Publish(*State)
}

// Embedded is the backend of the twin: the published state is the device. Its methods for the data path take no lock.
type Embedded struct{ state atomic.Pointer[State] }

// Tables is the newest committed state; nil, which is empty, before the first commit.
func (b *Embedded) Tables() *State { return b.state.Load() }

// Verify accepts every pipeline of our shape.
func (b *Embedded) Verify(*configv1.P4Info, []byte) error { return nil }

// Commit replaces the state.
func (b *Embedded) Commit(s *State) error { b.state.Store(s); return nil }

// Do has nothing to do: Publish shows the whole batch at once.
func (b *Embedded) Do(Change) error { return nil }

// AtomicBatches holds, because Publish swaps one pointer.
func (b *Embedded) AtomicBatches() bool { return true }

// Publish replaces the state.
func (b *Embedded) Publish(s *State) { b.state.Store(s) }
