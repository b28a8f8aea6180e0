package engine

import (
	"fmt"

	"github.com/olafctl/olaf"
)

// account is the ledger with all counters and identities of a queue.
var account = olaf.JoinLedgers(FlowLedger(), SumsLedger())

// CheckAccounts verifies the queue's accounting identities. Every arrival has one class; every appended frame has left,
// is waiting or was flushed; and the number of updates in frames is unchanged. queuedFrames and queuedUpdates must be
// results of QueuedCount at the same instant. The error matches olaf.ErrAccounting and shows both sides.
func CheckAccounts(s Stats, queuedFrames, queuedUpdates uint64) error {
	c := olaf.NewCounts(account)
	s.AddTo(c, queuedFrames, queuedUpdates)
	if n := c.Of(premerged.Name); n < 0 {
		return fmt.Errorf("%w: the accepted arrivals held %d updates, fewer than they are", olaf.ErrAccounting,
			s.SumAccepted)
	}
	return c.Balance()
}

// AuditDiscipline verifies the accounting identities for the current counts of d.
func AuditDiscipline(d Discipline) error {
	frames, updates := d.QueuedCount()
	return CheckAccounts(d.Stats(), frames, updates)
}

// AddTo adds the counts in s, and the numbers of queued frames and updates, to the counters of c. The counters have the
// names that FlowLedger and SumsLedger declare.
func (s *Stats) AddTo(c olaf.Counts, queuedFrames, queuedUpdates uint64) {
	add := func(name string, n int64) {
		if i := c.Index(name); i >= 0 {
			c.SetAt(i, c.At(i)+n)
		}
	}
	for i := range rows {
		if rows[i].Name != "" {
			add(rows[i].Name, int64(rows[i].Of(s)))
		}
	}
	accepted := s.Class[Appended] + s.Class[Aggregated] + s.Class[Replaced] + s.Class[ReplacedReward]
	add(queued.Name, int64(queuedFrames))
	add(countQueued.Name, int64(queuedUpdates))
	add(premerged.Name, int64(s.SumAccepted)-int64(accepted))
}
