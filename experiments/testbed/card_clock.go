package testbed

import (
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// clockPair relates one instant on two clocks. The cycle in the card's register common.cycles began at echo.T0 or up to
// widthNS later.
type clockPair struct {
	echo  Exchange // T0 and T3 on the host, in ns since 1970; T1 and T2 are the cycle, in ns
	cycle uint64
}

// widthNS returns the time between the request and the card's answer, in ns.
func (p clockPair) widthNS() int64 { return p.echo.RoundTripNS() }

// pairTries is the number of readings from which the best pair is chosen.
const pairTries = 16

// pairClocks reads the card's clock between two readings of the host's clock. The pair contains the first reading and
// not the middle, so that no frame appears to arrive before it was sent. Ages are therefore too long, by at most the
// width of the pair.
func pairClocks(card fpga.Registers, now func() time.Time) (clockPair, error) {
	var all []Exchange
	for range pairTries {
		before := now().UnixNano()
		low, err := card.Read32(regmap.CommonCycles) // this latches the high word
		if err != nil {
			return clockPair{}, err
		}
		after := now().UnixNano()
		high, err := card.Read32(regmap.CommonCycles + 4)
		if err != nil {
			return clockPair{}, err
		}
		at := int64(uint64(high)<<32|uint64(low)) * cycleNS
		all = append(all, Exchange{T0: before, T1: at, T2: at, T3: after})
	}
	best, ok := Quickest(all)
	if !ok {
		return clockPair{}, ErrSet
	}
	return clockPair{best, uint64(best.T1 / cycleNS)}, nil
}

const cycleNS = int64(olaf.Cycle / olaf.Nanosecond)

// hostTimeOf returns the host's time at a cycle of the card, which may be before the pair was taken.
func (p clockPair) hostTimeOf(cycle uint64) int64 { return p.echo.T0 - int64(p.cycle-cycle)*cycleNS }

// wasStepped reports whether one of the clocks was set between two pairs.
func wasStepped(from, to clockPair) bool {
	span, drift := to.echo.ElapsedSince(from.echo)
	return WasStepped(drift, from.widthNS()+to.widthNS(), span)
}

// lateAtLeast returns a lower limit on the largest delay of a timestamp. Timestamps are never early, and frames do not
// follow each other faster than the line rate. Each frame therefore left before the timestamp of any later frame, by at
// least the time for which the line was busy in between.
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

// lineTime returns the time for which the card's line is busy with an update, including FCS, preamble and gap.
func lineTime(u *olaf.Update) olaf.Duration {
	const around, line = 4 + 8 + 12, 100 * olaf.Gbps
	return line.TimeToSend(olaf.FrameSize(int(u.Lanes)) + around)
}
