package testbed

import (
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// clockPair is one instant on two clocks: a cycle of the card's common.cycles began at hostNS or up to widthNS later.
type clockPair struct {
	hostNS  int64 // ns since 1970, just before the read
	widthNS int64 // until the answer arrived
	cycle   uint64
}

// pairTries is the number of readings per pair; the quickest one counts, because the others were delayed.
const pairTries = 16

// pairClocks reads the card's clock between two readings of the host's. The pair uses the first of them and not the
// middle, so that no frame can seem to arrive before it was sent: ages are too long, by at most the width.
func pairClocks(card fpga.Registers, now func() time.Time) (best clockPair, err error) {
	for try := range pairTries {
		before := now().UnixNano()
		low, err := card.Read32(regmap.CommonCycles) // this latches the high word
		if err != nil {
			return best, err
		}
		width := now().UnixNano() - before
		high, err := card.Read32(regmap.CommonCycles + 4)
		if err != nil {
			return best, err
		}
		if try == 0 || width < best.widthNS {
			best = clockPair{before, width, uint64(high)<<32 | uint64(low)}
		}
	}
	return best, nil
}

const cycleNS = int64(olaf.Cycle / olaf.Nanosecond)

// hostTimeOf returns the host's time at a card's cycle, which may be before the pair.
func (p clockPair) hostTimeOf(cycle uint64) int64 { return p.hostNS - int64(p.cycle-cycle)*cycleNS }

// elapsedSince returns the time on the card from an earlier pair to p, and how much longer it was on the host.
func (p clockPair) elapsedSince(earlier clockPair) (spanNS, driftNS int64) {
	spanNS = int64(p.cycle-earlier.cycle) * cycleNS
	return spanNS, p.hostNS - earlier.hostNS - spanNS
}

// maxDriftPPM is more than clocks drift: crystals are accurate to 50 ppm, and time synchronisation adjusts the host's
// clock by at most 500 ppm. A larger difference was a step.
const maxDriftPPM = 1000

// wasStepped reports whether one of the clocks was set between two pairs.
func wasStepped(from, to clockPair) bool {
	span, drift := to.elapsedSince(from)
	return max(drift, -drift) > from.widthNS+to.widthNS+span*maxDriftPPM/1_000_000
}

// lateAtLeast returns a lower limit for the delay of the worst stamp. Stamps are never early, and frames follow each
// other no faster than the line rate, so that a frame left before all later ones had time to.
func lateAtLeast(seen []olaf.Observation) (worst olaf.Duration) {
	if len(seen) == 0 {
		return 0
	}
	latest := seen[len(seen)-1].At
	for i := len(seen) - 1; i >= 0; i-- {
		latest = min(latest, seen[i].At)
		worst = max(worst, olaf.Duration(seen[i].At-latest))
		latest = latest.Add(-lineTime(&seen[i].Update))
	}
	return worst
}

// lineTime returns how long the card's line is busy with an update, including FCS, preamble and gap.
func lineTime(u *olaf.Update) olaf.Duration {
	const around, line = 4 + 8 + 12, 100 * olaf.Gbps
	return line.TimeToSend(olaf.FrameSize(int(u.Lanes)) + around)
}
