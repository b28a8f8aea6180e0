package agent

import (
	"cmp"
	"slices"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf/fpga/program"
)

// part is the slots that an entry gives its job.
type part struct {
	program.Range
	entry *Entry
}

// clash finds two entries that give jobs the same slot, of which one matches: of those that begin before the other the one that
// reaches furthest.
func (t *added) clash(matches func(*Entry) bool) (a, b part, found bool) {
	var parts []part
	for _, e := range sorted(t.entries) {
		if r := t.Part(e.Params[:len(t.Params)]); r.End > r.First {
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

// touches says whether an update wrote an entry.
func (m *made) touches(e *Entry) bool {
	w := m.do.Entry
	return w != nil && m.do.Op != v1.Update_DELETE && w.Table == e.Table && w.Key == e.Key
}

// wrote is the last update of the batch that wrote an entry, -1 where none did.
func (t *tried) wrote(e *Entry) int {
	for i := len(t.made) - 1; i >= 0; i-- {
		if t.made[i].touches(e) {
			return i
		}
	}
	return -1
}

// clash finds the last update of a batch that leaves two jobs with the same slots, and says so; -1 where none does. What stood
// before the batch is none of its faults.
func (t *tried) clash() (last int, fault error) {
	for i := range t.state.added {
		in := &t.state.added[i]
		if !in.Parts() || !slices.ContainsFunc(t.made, func(m made) bool { return m.do.Entry != nil && m.do.Entry.Table == in.ID }) {
			continue
		}
		if a, b, found := in.clash(func(e *Entry) bool { return t.wrote(e) >= 0 }); found {
			return max(t.wrote(a.entry), t.wrote(b.entry)), status.Errorf(codes.FailedPrecondition,
				"%q gives two jobs the same slots: job %d has %v and job %d %v; change or delete one of them before, or in the same batch",
				in.Name, in.Fields(a.entry.Key)[0], a.Range, in.Fields(b.entry.Key)[0], b.Range)
		}
	}
	return -1, nil
}
