package experiments

import (
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// clockPair is one instant on two clocks: the host's, and the card's common.cycles.
type clockPair struct {
	hostNS int64 // ns since 1970, the middle of the time that reading the card took
	cycle  uint64
	halfNS int64 // half of that time: the card was read at most so far from hostNS
}

// pairTries is how often the card is read for one pair; the quickest reading counts, as the others waited for something.
const pairTries = 16

// pairClocks reads the card's clock between two readings of the host's.
func pairClocks(card fpga.Registers, now func() time.Time) (best clockPair, err error) {
	for try := range pairTries {
		before := now().UnixNano()
		low, err := card.Read32(regmap.CommonCycles) // which latches the high word
		if err != nil {
			return best, err
		}
		after := now().UnixNano()
		high, err := card.Read32(regmap.CommonCycles + 4)
		if err != nil {
			return best, err
		}
		if half := (after - before + 1) / 2; try == 0 || half < best.halfNS {
			best = clockPair{before + (after-before)/2, uint64(high)<<32 | uint64(low), half}
		}
	}
	return best, nil
}

const cycleNS = int64(olaf.Cycle / olaf.Nanosecond)

// at is the host's time of a card's cycle, which may lie before the pair.
func (p clockPair) at(cycle uint64) int64 { return p.hostNS - int64(p.cycle-cycle)*cycleNS }

// since says how much time passed on the card from an earlier pair to p, and how much more passed on the host.
func (p clockPair) since(earlier clockPair) (spanNS, driftNS int64) {
	spanNS = int64(p.cycle-earlier.cycle) * cycleNS
	return spanNS, p.hostNS - earlier.hostNS - spanNS
}

// maxDriftPPM is more than two clocks part by themselves: crystals are good to 50 ppm, and whoever disciplines the host's
// clock turns it by 500 ppm at most. What is more was a step.
const maxDriftPPM = 1000

// stepped says that one of the clocks was set between two pairs.
func stepped(from, to clockPair) bool {
	span, drift := to.since(from)
	return max(drift, -drift) > from.halfNS+to.halfNS+span*maxDriftPPM/1_000_000
}
