package fpga

import (
	"fmt"
	"slices"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/regmap"
)

// QuietCable is the advice to keep other traffic off the cable to a card. The card's MAC counts every frame, so that
// other frames could hide losses.
const QuietCable = "a card's ports count every frame, so stop LLDP, ARP, IPv6 and other traffic on the cable between them, and " +
	"measure again"

// BookCable counts the updates lost on the cable from another card's generator to the queue, and returns the reasons to
// doubt the counts. others is the number of frames at the queue's input that were not OLAF's. BookCable subtracts them
// from the counts. If the queue does not count such frames, others is nil and the counters of the ports at both ends
// are used. later is others when the ports were read, or more. Without such a cable, or if another program latched the
// ports' counters, losses are not counted.
func BookCable(n olaf.Counts, ports []Port, others *uint64, later uint64) (why []string) {
	if others != nil && n.Index("bypassed") >= 0 {
		n.Add("bypassed", -int64(*others))
	}
	i := slices.IndexFunc(ports, func(p Port) bool { return p.Feeds })
	if i < 0 || n.Index("lost_on_cable") < 0 || ports[i].ForeignTicks+ports[0].ForeignTicks > 0 {
		return nil
	}
	if others != nil {
		return bookUpdates(n, ports[i].Sent, ports[0].Received, later)
	}
	sent, received := int64(ports[i].Sent), int64(ports[0].Received)
	if all := n.Of("sent"); sent != all {
		why = append(why, fmt.Sprintf("the generator sent %s, but %d left its port: something else sends there, or frames were lost "+
			"inside; %s", olaf.Plural(all, "update"), sent, QuietCable))
	}
	if received > sent {
		return append(why, fmt.Sprintf("%s reached the queue's port and %d left the generator's: something else sends to the queue; %s",
			olaf.Plural(received, "frame"), sent, QuietCable))
	}
	if others := n.Of("bypassed"); others > 0 {
		why = append(why, fmt.Sprintf("lost_on_cable may be up to %d too low: that many frames at the queue's port were not updates of "+
			"the bench's workers; %s", others, QuietCable))
	}
	n.Add("lost_on_cable", sent-received)
	n.Add("lost_before_engine", sent-received)
	return append(why, doubtAllLost(sent-received, sent)...)
}

// doubtAllLost returns a reason to doubt a run in which all updates were lost on the cable.
func doubtAllLost(lost, sent int64) []string {
	if lost < sent || sent == 0 {
		return nil
	}
	return []string{"no update reached the queue: check the cable, and the MTU at both ends"}
}

// bookUpdates counts the updates lost on the cable to a queue that can distinguish them from other frames. left and
// arrived are the numbers of frames that left one end of the cable and arrived at the other, of which up to later were
// not OLAF's.
func bookUpdates(n olaf.Counts, left, arrived, later uint64) (why []string) {
	sent := n.Of("sent")
	met := n.Of("in") + n.Of("bypassed") + n.Of("malformed") + n.Of("lost_before_engine")
	if int64(left) < sent {
		why = append(why, fmt.Sprintf("the generator sent %s, but %d frames left its interface: the others were lost inside its host",
			olaf.Plural(sent, "update"), left))
	}
	switch lost := sent - met; {
	case lost < 0:
		why = append(why, fmt.Sprintf("%s reached the queue and the generator sent %d: something else sends updates to the queue",
			olaf.Plural(met, "update"), sent))
	case int64(arrived) > met+int64(later):
		why = append(why, fmt.Sprintf("%s reached the queue's interface, but its program met %d: frames were lost inside the queue's host",
			olaf.Plural(int64(arrived), "frame"), met+int64(later)))
	default:
		n.Add("lost_on_cable", lost)
		n.Add("lost_before_engine", lost)
		why = append(why, doubtAllLost(lost, sent)...)
	}
	return why
}

// ListStrangers lists the queue's counts of OLAF frames that its tables could not attribute to the bench's workers. others
// is the number of bypassed frames that were not OLAF's, or nil if the queue does not count them.
func ListStrangers(q *regmap.QueueCounters, others *uint64) (why []string) {
	bypassed := q.Bypassed
	if others != nil {
		bypassed -= *others
	}
	if n := bypassed; n > 0 {
		why = append(why, fmt.Sprintf("%s bypassed the queue: not updates, or from workers that are not in the tables", olaf.Plural(n, "frame")))
	}
	if n := q.Misidentified; n > 0 {
		why = append(why, fmt.Sprintf("%s reached the queue with another identity than their worker's: the "+
			"tables were changed during the run", olaf.Plural(n, "update")))
	}
	return why
}

// SubtractPorts returns the difference between two readings of the port counters. It fails if a counter decreased,
// because the difference is then meaningless.
func SubtractPorts(before, after []Port) ([]Port, error) {
	rose := make([]Port, min(len(before), len(after)))
	for i := range rose {
		a, b := &after[i], &before[i]
		if a.Sent < b.Sent || a.Received < b.Received || a.SentDamaged < b.SentDamaged ||
			a.ReceivedDamaged < b.ReceivedDamaged ||
			a.ReceivedBadFCS < b.ReceivedBadFCS || a.ReceivedOversize < b.ReceivedOversize || a.Dropped < b.Dropped ||
			a.Stray < b.Stray || a.ForeignTicks < b.ForeignTicks {
			return nil, fmt.Errorf("%w: a count of port %d fell during the run, so its MAC or adapter was reset; measure again", ErrDoubtful, i)
		}
		rose[i] = Port{
			Sent: a.Sent - b.Sent, Received: a.Received - b.Received,
			SentDamaged: a.SentDamaged - b.SentDamaged, ReceivedDamaged: a.ReceivedDamaged - b.ReceivedDamaged,
			ReceivedBadFCS:   a.ReceivedBadFCS - b.ReceivedBadFCS,
			ReceivedOversize: a.ReceivedOversize - b.ReceivedOversize,
			Dropped:          a.Dropped - b.Dropped, Stray: a.Stray - b.Stray,
			ForeignTicks: a.ForeignTicks - b.ForeignTicks, Feeds: a.Feeds,
		}
	}
	return rose, nil
}
