package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/pktgen"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/text"
)

// judgeRun builds the result of a run from counters and observations, including the reasons why it may be invalid.
func (b *station) judgeRun(id RunID, counters *fpga.Counters, ports []fpga.Port, seen *fpga.Capture) results.Run {
	totals := b.Account(counters, b.collector.ObservedCount())
	for i := range ports {
		if !ports[i].Feeds {
			totals.Add("lost_before_engine", int64(ports[i].Dropped))
		}
	}
	if b.withheld > 0 {
		totals.Add("tc_withheld", b.withheld)
	}
	var others *uint64
	later := uint64(0)
	if seen != nil {
		others, later = seen.Others, seen.OthersNow
	}
	doubts := fpga.BookCable(totals, ports, others, later)
	run := b.collector.Finish(totals)
	config := &b.plan.Configs[id.Config]
	run.Queue, run.OutRateBPS = config.Queue, int64(config.OutRate)
	run.Index, run.Seed = id.Index, b.plan.Seeds[id.Index]
	run.Invalid = slices.Concat(doubts, findDoubts(&run, ports, seen), run.Invalid) // first, as more specific reasons
	b.bookCapture(&run, seen)
	run.Invalid = append(run.Invalid, b.traffic.Faults(olaf.Duration(counters.Generator.LateCyclesMax)*olaf.Cycle)...)
	run.Invalid = append(run.Invalid, fpga.ListStrangers(&counters.Queue, others)...)
	return run
}

// findDoubts returns the reasons, found in port counters and captures, why a run on a card is invalid.
func findDoubts(r *results.Run, ports []fpga.Port, c *fpga.Capture) []string {
	var why []string
	addDoubt := func(format string, a ...any) { why = append(why, fmt.Sprintf(format, a...)) }
	if c != nil {
		why = append(why, c.Faults...) // they explain missing frames
		if r.Counters.Of("capture_lost") > 0 {
			addDoubt("%s", PlaceLoss(r.Counters, ports, c))
		}
		captureDoubts(r, c, addDoubt)
		if d := c.Decisions; d != nil && d.Differ() {
			addDoubt("%d of %d decisions differ from the engine's; the first: %s", d.Checked-d.Equal, d.Checked, d.First)
		}
	}
	for i := range ports {
		for _, d := range []struct {
			n   uint64
			how string
		}{
			{ports[i].SentDamaged, "with a wrong FCS left"},
			{ports[i].ReceivedDamaged, "with a wrong FCS, too long or cut came to"},
			{ports[i].Stray, "without a destination port were dropped by the adapter of"},
		} {
			switch {
			case d.n > 0 && ports[i].Feeds:
				addDoubt("%s %s the generator's port", olaf.Plural(d.n, "frame"), d.how)
			case d.n > 0:
				addDoubt("%s %s port %d", olaf.Plural(d.n, "frame"), d.how, i)
			}
		}
	}
	return why
}

// captureDoubts calls addDoubt for every reason to doubt the numbers in a capture.
func captureDoubts(r *results.Run, c *fpga.Capture, addDoubt func(string, ...any)) {
	if more := -r.Counters.Of("capture_lost"); more > 0 {
		addDoubt("%s handed over %s more than the queue delivered: something else sends OLAF frames there", c.Interface,
			olaf.Plural(more, "frame"))
	}
	if c.Duplicates > 0 {
		addDoubt("%s handed over %s twice", c.Interface, olaf.Plural(c.Duplicates, "frame"))
	}
	if c.Malformed > 0 {
		addDoubt("%s were damaged %s", olaf.Plural(c.Malformed, "OLAF frame"), onTheWay(c))
	}
	if c.SocketLost > 0 && r.Counters.Of("capture_lost") <= 0 {
		addDoubt("the socket at %s lost %s", c.Interface, olaf.Plural(c.SocketLost, "OLAF frame"))
	}
}

// clockErrorNS returns an upper limit, in ns, on the error that clocks and timestamps cause in a run's ages.
func clockErrorNS(c *fpga.Capture) int64 {
	return c.UncertaintyNS + max(c.DriftNS, -c.DriftNS) + c.LateNS
}

// withholdAges removes the ages from a run if their possible error exceeds the given percentage of its mean AoM, and
// reports whether it did. Ages above the fastest path are renamed. Counts are kept.
func withholdAges(r *results.Run, c *fpga.Capture, percent float64) bool {
	if c.Withheld != "" {
		r.Withhold(c.Withheld)
		return true
	}
	mean, off := r.Metrics.Of("aom_cluster_ns"), clockErrorNS(c)
	if !mean.Known() || float64(off) <= percent/100*float64(mean) {
		if c.AbovePath {
			r.KeepAbovePath()
		}
		return false
	}
	r.Withhold(fmt.Sprintf("ages may be off by %v, which is more than %g %% of their mean of %v (--age-error)",
		time.Duration(off), percent, time.Duration(mean)))
	return true
}

// latePct is the largest accepted percentage by which a late software output, and the path from it to the server, may
// raise a run's mean age. A measured age may deviate from the twin's by 5 % in total. 1 % of it is reserved for an
// effect without a bound: a slightly late frame changes which of several updates finds no room.
const latePct = 5 - 1

// withholdLate removes the ages from a run if the output reported itself late, or if lateness may have raised the mean
// age too much.
func withholdLate(r *results.Run, p *fpga.Pacing, c *results.Collector) {
	if p.Withheld != "" {
		r.Withhold(p.Withheld)
		return
	}
	if why := lateReason(p, c, r.Metrics.Of("aom_cluster_ns"), r.Metrics.Of("peak_aom_ns")); why != "" {
		r.Withhold(why)
	}
}

// lateReason returns the reason why a late output makes the mean age doubtful, or "" if it does not.
func lateReason(p *fpga.Pacing, c *results.Collector, mean, peak results.Float) string {
	stamped, span := c.TimeSpan()
	if !mean.Known() || p.Frames != c.ObservedCount() || span <= 0 {
		return "" // there are no ages, or frames were lost and the run is invalid
	}
	if !(peak > mean) {
		peak = mean
	}
	way, stalls := ageIncrease(p, stamped, span, peak)
	off := way + stalls
	if in := mean - off; off <= latePct*in/100 { // relative to a punctual output, like the twin's
		return ""
	}
	return fmt.Sprintf("the mean age may be %v too high, by more than %d %% (it is %v): on average frames were "+
		"stamped %v after they were due, and stalls of %v in all account for %v",
		time.Duration(off), latePct, time.Duration(mean), time.Duration(way), time.Duration(p.StallNS),
		time.Duration(stalls))
}

// ageIncrease returns two upper limits, in ns, on how much a late output raises the mean age. Delays of single frames
// raise it by at most their mean, because each delivery lowers an age that much later. While the output stalls for d,
// every age rises by up to d, which adds an area of d²/2. Until a later update is delivered, which takes as long as an
// age at its peak, the age stays higher by at most d.
func ageIncrease(p *fpga.Pacing, stamped, span, peak results.Float) (way, stalls results.Float) {
	way = max(stamped-results.Float(p.DueNS), results.Float(p.DueNS)-stamped)
	return way, (results.Float(p.StallAreaNS2) + results.Float(results.Float(p.StallNS)*peak)) / span
}

// PlaceLoss describes where frames were lost between the queue and the capture. It returns the first place on their
// path where frames are missing or a loss is reported.
func PlaceLoss(n olaf.Counts, ports []fpga.Port, c *fpga.Capture) string {
	if c.Pacing != nil { // without a card, queue and socket are both on this machine
		return fmt.Sprintf("%s lost %s: the queue delivered %d, %s handed over %d (its socket dropped %d)",
			wereLost(n.Of("capture_lost")), onTheWay(c), n.Of("delivered"), c.Interface, n.Of("received"), c.SocketLost)
	}
	mac, counted := "the MAC's counts are unknown", false
	var sent uint64
	if c.ServerPort < len(ports) {
		p := &ports[c.ServerPort]
		sent, counted = p.Sent, p.ForeignTicks == 0
		mac = fmt.Sprintf("the MAC of port %d sent %d", c.ServerPort, sent)
		if !counted {
			mac += " or more, because another program latched the counters"
		}
	}
	where := onTheWay(c)
	switch {
	case counted && sent < uint64(n.Of("delivered")):
		where = "inside the card, behind the queue"
	case counted && c.SocketLost == 0 && c.InterfaceLost == 0:
		where = fmt.Sprintf("on the cable from port %d to %s", c.ServerPort, c.Interface)
	case c.SocketLost > 0:
		where = "in the socket's buffer at " + c.Interface
	case c.InterfaceLost > 0:
		where = "by " + namedDropper(c)
	}
	left := ""
	if c.LeftOver > 0 {
		left = fmt.Sprintf("; %s stamped before the run were passed over%s", olaf.Plural(c.LeftOver, "frame"),
			testbed.HardwareAdvice(c))
	}
	return fmt.Sprintf("%s lost %s: the queue delivered %d, %s, %s handed over %d (its socket dropped %d, its network card or driver %d)%s",
		wereLost(n.Of("capture_lost")), where, n.Of("delivered"), mac, c.Interface, n.Of("received"), c.SocketLost,
		c.InterfaceLost, left)
}

// onTheWay returns a description of the path from the device to the capture.
func onTheWay(c *fpga.Capture) string {
	if c.Pacing != nil {
		return "between the queue and " + c.Interface
	}
	return "between the card and " + c.Interface
}

func wereLost(n int64) string {
	if n == 1 {
		return "1 frame was"
	}
	return olaf.Plural(n, "frame") + " were"
}

// namedDropper names the components that may drop frames before a capture receives them. An output served by a process
// has no network card.
func namedDropper(c *fpga.Capture) string {
	if c.Pacing != nil {
		return "the interface " + c.Interface
	}
	return "the network card of " + c.Interface + " or its driver"
}

// captured summarises the quality of an experiment's captures by the worst value of each indicator.
type captured struct {
	runs     int
	withheld int // runs without ages
	percent  float64
	worst    fpga.Capture // sums of counts, the largest errors, the smallest age
}

func (s *captured) addCapture(c *fpga.Capture, withheld bool) {
	w := &s.worst
	if withheld {
		s.withheld++
	}
	if c.Updates > 0 && (w.Updates == 0 || c.YoungestNS < w.YoungestNS) {
		w.YoungestNS = c.YoungestNS
	}
	w.Updates += c.Updates
	s.runs++
	w.Interface, w.Hardware, w.Pacing, w.Mirror, w.AbovePath = c.Interface, c.Hardware, c.Pacing, c.Mirror, c.AbovePath
	w.UncertaintyNS = max(w.UncertaintyNS, c.UncertaintyNS)
	w.DriftNS = max(w.DriftNS, c.DriftNS, -c.DriftNS)
	w.LateNS = max(w.LateNS, c.LateNS)
	w.LeftOver += c.LeftOver
	w.InterfaceLost += c.InterfaceLost
	if c.Others != nil {
		all := *c.Others
		if w.Others != nil {
			all += *w.Others
		}
		w.Others = &all
	}
}

// listStatements returns statements about the reliability of the captures. It is empty if nothing was captured.
func (s *captured) listStatements() []string {
	if s.runs == 0 {
		return nil
	}
	w := &s.worst
	stamps := "by the kernel with the system's clock when it took them from the network card; the time until " +
		"then is part of every age"
	switch {
	case w.Pacing != nil:
		stamps = "by the kernel with the system's clock when they came out of the cable; the time until then is " +
			"part of every age"
	case w.Hardware:
		stamps = "by the network card, whose clock is assumed to be the system's"
	}
	out := []string{fmt.Sprintf("arrivals at %s are stamped %s", w.Interface, stamps)}
	switch {
	case w.Updates > 0 && w.Mirror != "":
		out = append(out, fmt.Sprintf("ages begin when a copy of the update arrived at %s, stamped by the same clock (clock.by mirror): up to "+
			"%v of each may come from stamps that were late for certain; a switch that delays copies makes ages too short",
			w.Mirror, time.Duration(w.UncertaintyNS+w.LateNS)))
	case w.Updates > 0 && w.AbovePath:
		out = append(out, fmt.Sprintf("ages and times since the start of a run are above the fastest path from generator to server, whose "+
			"delay probe frames measured before and after each run (clock.by probe): up to %v of each age may come from the clocks (%v from the spread of the "+
			"quickest quarter of the frames, %v from drift, %v from stamps that were late for certain)",
			time.Duration(w.UncertaintyNS+w.DriftNS+w.LateNS), time.Duration(w.UncertaintyNS), time.Duration(w.DriftNS), time.Duration(w.LateNS)))
	case w.Updates > 0:
		out = append(out,
			fmt.Sprintf("up to %v of each age may come from the clocks (%v from pairing the card's with the "+
				"system's, %v from drift, %v from stamps that were late for certain)",
				time.Duration(w.UncertaintyNS+w.DriftNS+w.LateNS), time.Duration(w.UncertaintyNS),
				time.Duration(w.DriftNS), time.Duration(w.LateNS)))
	}
	if w.Updates > 0 && !w.AbovePath {
		out = append(out,
			fmt.Sprintf("the youngest update of all runs was %v old on arrival, so a delay common to all cannot "+
				"be longer", time.Duration(w.YoungestNS)))
	}
	if s.withheld > 0 {
		out = append(out, fmt.Sprintf("the ages of %s are withheld, because the error may exceed %g %% of their "+
			"mean AoM (--age-error); the counts are valid", olaf.Plural(s.withheld, "run"), s.percent))
	}
	if w.InterfaceLost > 0 {
		out = append(out, fmt.Sprintf("%s dropped %s of some kind", namedDropper(w),
			olaf.Plural(w.InterfaceLost, "frame")))
	}
	if n := w.Others; n != nil && *n > 0 {
		out = append(out, fmt.Sprintf("frames at the queue's input that were not updates (LLDP, ARP, IPv6 …): %d; they passed beside "+
			"the queue, and no count includes them", *n))
	}
	if w.LeftOver > 0 {
		out = append(out, fmt.Sprintf("%s of an earlier run arrived late and were ignored",
			olaf.Plural(w.LeftOver, "frame")))
	}
	return out
}

// inBursts reports whether updates arrive in bursts. Their rate is then only planned, because programs on a machine
// send as fast as they can.
func (s *Spec) inBursts() bool {
	return s.Loop == nil && s.Trace == nil && s.Workload.BurstPackets > 1
}

// bookBursts records the rate at which the updates in a burst arrived at the queue, if the device's log is complete.
func (b *station) bookBursts(id RunID, run *results.Run) error {
	log, ok := fpga.FindArrivalLog(b.Device)
	if !ok || !b.measured || !b.plan.Spec.inBursts() {
		return nil
	}
	schedule, err := pktgen.NewSchedule(b.plan.Spec.Workload, b.plan.Seeds[id.Index])
	if err != nil {
		return err
	}
	arrivals, err := log.Arrivals()
	if err != nil || len(arrivals) != schedule.Total() {
		return nil // the run itself reports what is missing
	}
	run.BurstRate = results.Float(schedule.BurstRate(len(arrivals), func(i int) (olaf.Time, olaf.Size) {
		return arrivals[i].At, arrivals[i].Update.Size()
	}))
	return nil
}

// burstStatement returns a statement that the senders limit the rate of bursts, with the measured rate.
func (o *Outcome) burstStatement() string {
	var rates []results.Float
	for _, runs := range o.Runs {
		for i := range runs {
			if r := &runs[i]; r.Valid() && r.BurstRate > 0 {
				rates = append(rates, r.BurstRate)
			}
		}
	}
	went := "which 'olafctl testbed doctor' measures"
	if s := results.Describe(rates, ""); s.Known() {
		went = fmt.Sprintf("%s inside bursts by the log of the queue's arrivals (burst_rate_bps)", text.Rate(s.Mean))
	}
	return fmt.Sprintf("bursts are planned at %v, but this machine's senders send each as fast as they can, %s; "+
		"--burst 1 spreads updates evenly instead", o.Plan.Spec.Workload.LineRate, went)
}
