package p4ctl

import (
	"fmt"
	"strings"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// change is a write in a plan.
type change struct {
	op            v1.Update_Type
	before, after object
}

// Plan lists the writes that turn the actual tables into the desired ones. They are ordered so that the cluster of
// every packet always has a group: groups, clusters, servers, workers, tables of switch programs, and finally deletions
// in reverse order.
type Plan struct{ changes []change }

// Diff returns the plan that turns actual into desired. Both must be valid.
func Diff(actual, desired Tables) Plan {
	have := actual.objects()
	old := make(map[identity]object, len(have))
	for _, o := range have {
		old[o.identity()] = o
	}
	var p Plan
	// Workers and entries of programs are inserted after the deletions, so that a full table can be replaced.
	var late []change
	for _, want := range desired.objects() {
		was, exists := old[want.identity()]
		delete(old, want.identity())
		switch {
		case exists && was.equal(want):
		case exists:
			p.changes = append(p.changes, change{v1.Update_MODIFY, was, want})
		case want.kind >= kindWorker:
			late = append(late, change{op: v1.Update_INSERT, after: want})
		default:
			p.changes = append(p.changes, change{op: v1.Update_INSERT, after: want})
		}
	}
	var leftovers []change
	for i := len(have) - 1; i >= 0; i-- {
		o, gone := old[have[i].identity()]
		switch {
		case !gone:
		case o.kind >= kindWorker:
			p.changes = append(p.changes, change{op: v1.Update_DELETE, before: o})
		default:
			leftovers = append(leftovers, change{op: v1.Update_DELETE, before: o})
		}
	}
	p.changes = append(p.changes, late...)
	p.changes = append(p.changes, leftovers...)
	return p
}

// Empty reports whether there is nothing to write.
func (p Plan) Empty() bool { return len(p.changes) == 0 }

// Len returns the number of updates.
func (p Plan) Len() int { return len(p.changes) }

// Count returns the number of added, changed and deleted objects.
func (p Plan) Count() (added, changed, deleted int) {
	for _, c := range p.changes {
		switch c.op {
		case v1.Update_INSERT:
			added++
		case v1.Update_MODIFY:
			changed++
		case v1.Update_DELETE:
			deleted++
		}
	}
	return added, changed, deleted
}

// String lists the changes, one per line. Lines begin with + for added, ~ for changed and - for deleted objects.
func (p Plan) String() string {
	if p.Empty() {
		return "no changes\n"
	}
	var b strings.Builder
	for _, c := range p.changes {
		switch c.op {
		case v1.Update_INSERT:
			b.WriteString(strings.TrimRight(fmt.Sprintf("+ %s  %s", c.after.name(), c.after.value()), " ") + "\n")
		case v1.Update_MODIFY:
			fmt.Fprintf(&b, "~ %s  %s -> %s\n", c.after.name(), c.before.value(), c.after.value())
		case v1.Update_DELETE:
			b.WriteString(strings.TrimRight(fmt.Sprintf("- %s  %s", c.before.name(), c.before.value()), " ") + "\n")
		}
	}
	added, changed, deleted := p.Count()
	fmt.Fprintf(&b, "%d to add, %d to change, %d to delete\n", added, changed, deleted)
	return b.String()
}

// toUpdates returns the plan as P4Runtime updates.
func (p Plan) toUpdates() []*v1.Update {
	updates := make([]*v1.Update, len(p.changes))
	for i, c := range p.changes {
		o := c.after
		if c.op == v1.Update_DELETE {
			o = c.before
		}
		updates[i] = o.toUpdate(c.op)
	}
	return updates
}
