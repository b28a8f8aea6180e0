package agent

import (
	"cmp"
	"fmt"
	"slices"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// part is the range of slots that a table entry assigns to its job.
type part struct {
	program.Range
	entry *Entry
}

// findClash returns two entries that contradict each other, and the reason. At least one of them satisfies matches.
// description is empty if there is no contradiction.
func (t *added) findClash(matches func(*Entry) bool) (a, b *Entry, description string) {
	if a, b, found := t.findOverlap(matches); found {
		return a.entry, b.entry, fmt.Sprintf("gives two jobs the same slots: job %d has %v and job %d %v",
			t.jobOf(a.entry).ID, a.Range, t.jobOf(b.entry).ID, b.Range)
	}
	if a, b, found := t.findRivals(matches); found {
		return a, b, fmt.Sprintf("names two switches above job %d: %d and %d", t.jobOf(a).ID, t.jobOf(a).Above,
			t.jobOf(b).Above)
	}
	return nil, nil, ""
}

// canClash reports whether entry e can contradict another entry.
func (t *added) canClash(e *Entry) bool {
	return e != nil && e.Table == t.ID && (t.HasPartitions() || t.NamesParent(e.Params[:len(t.Params)]))
}

// jobOf returns the job that an entry describes.
func (t *added) jobOf(e *Entry) program.Job {
	j, _ := t.ReadEntry(t.Fields(e.Key), e.Params[:len(t.Params)])
	return j
}

// findRivals returns two entries that both name a parent switch for the same job. At least one of them satisfies
// matches.
func (t *added) findRivals(matches func(*Entry) bool) (a, b *Entry, found bool) {
	above := map[olaf.ClusterID]*Entry{}
	for _, b := range sortedValues(t.entries) {
		if !t.NamesParent(b.Params[:len(t.Params)]) {
			continue
		}
		j := t.jobOf(b).ID
		if a := above[j]; a != nil && (matches(a) || matches(b)) {
			return a, b, true
		}
		above[j] = b
	}
	return nil, nil, false
}

// findOverlap returns two entries that assign the same slot to different jobs. At least one of them satisfies matches.
// If several entries begin before the second one, the first one is the entry that extends furthest.
func (t *added) findOverlap(matches func(*Entry) bool) (a, b part, found bool) {
	var parts []part
	if !t.HasPartitions() {
		return a, b, false
	}
	for _, e := range sortedValues(t.entries) {
		if r := t.Partition(e.Params[:len(t.Params)]); r.End > r.First {
			parts = append(parts, part{r, e})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.First, b.First) })
	for k, furthest := 1, 0; k < len(parts); k++ {
		a, b = parts[furthest], parts[k]
		if b.First < a.End && (matches(a.entry) || matches(b.entry)) {
			return a, b, true
		}
		if b.End > a.End {
			furthest = k
		}
	}
	return a, b, false
}

// touches reports whether the update wrote the entry e.
func (m *appliedUpdate) touches(e *Entry) bool {
	w := m.do.Entry
	return w != nil && m.do.Op != v1.Update_DELETE && w.Table == e.Table && w.Key == e.Key
}

// lastWrite returns the index of the last update in the batch that wrote an entry, or -1.
func (t *tried) lastWrite(e *Entry) int {
	for i := len(t.applied) - 1; i >= 0; i-- {
		if t.applied[i].touches(e) {
			return i
		}
	}
	return -1
}

// findClash returns the index of the last update in a batch that left two contradicting entries, such as two jobs with
// the same slots, and the error for it. The index is -1 if there is no such update. Contradictions from before the
// batch are ignored.
func (t *tried) findClash() (last int, fault error) {
	for i := range t.state.added {
		in := &t.state.added[i]
		if !slices.ContainsFunc(t.applied, func(m appliedUpdate) bool { return in.canClash(m.do.Entry) }) {
			continue
		}
		if a, b, description := in.findClash(func(e *Entry) bool { return t.lastWrite(e) >= 0 }); description != "" {
			return max(t.lastWrite(a), t.lastWrite(b)), status.Errorf(codes.FailedPrecondition,
				"%q %s; change or delete one of them first, or in the same batch", in.Name, description)
		}
	}
	return -1, nil
}
