package program

// Tally counts a program's packets by class and its contributions, in the order of NewLedger. Programs embed it.
type Tally struct {
	// Used is the number of slots in use.
	Used int
	// counts has the counters from first to end; those of contributions start at the constant sums, which saves time.
	counts     [32]uint64
	first, end int
}

// sums leaves room before it for the counters of classes.
const sums = 24

// NewTally returns the counters of a program with the given number of classes and of counters after those of NewLedger.
func NewTally(classes Class, others int) Tally {
	return Tally{first: sums - int(classes), end: sums + Sums + others}
}

// Counts returns the values of the counters in the description's ledger.
func (t *Tally) Counts() []uint64 { return t.counts[t.first:t.end] }

// CountOccupied returns the number of slots in use.
func (t *Tally) CountOccupied() int { return t.Used }

// CountClass counts a packet in the given class and returns the class.
func (t *Tally) CountClass(class Class) Class {
	t.counts[t.first+int(class)]++
	return class
}

// CountAdded counts vectors that were added to a slot.
func (t *Tally) CountAdded(vectors uint32) {
	t.counts[sums+VectorsIn] += uint64(vectors)
	t.counts[sums+VectorsHeld] += uint64(vectors)
}

// CountSent counts vectors that left a slot in a sum.
func (t *Tally) CountSent(vectors uint32) {
	t.counts[sums+VectorsOut] += uint64(vectors)
	t.counts[sums+VectorsHeld] -= uint64(vectors)
}

// CountCleared counts vectors that were discarded from a slot.
func (t *Tally) CountCleared(vectors uint32) {
	t.counts[sums+VectorsCleared] += uint64(vectors)
	t.counts[sums+VectorsHeld] -= uint64(vectors)
}

// ResetCounts sets all counts to 0.
func (t *Tally) ResetCounts() {
	t.counts = [32]uint64{}
	t.Used = 0
}
