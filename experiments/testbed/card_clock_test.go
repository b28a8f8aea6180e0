package testbed

import (
	"testing"
	"time"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// slowCard is a card whose clock runs with the host's, and whose readings have given delays.
type slowCard struct {
	fpga.Registers
	nowNS  int64
	delays []time.Duration
	cycles uint64
}

func (c *slowCard) now() time.Time { return time.Unix(0, c.nowNS) }

// Read32 answers half-way; the low word latches the high one.
func (c *slowCard) Read32(addr uint32) (uint32, error) {
	if addr == regmap.CommonCycles+4 {
		return uint32(c.cycles >> 32), nil
	}
	delay := int64(c.delays[0])
	c.delays = c.delays[1:]
	c.cycles = uint64(c.nowNS+delay/2) / uint64(cycleNS)
	c.nowNS += delay
	return uint32(c.cycles), nil
}

// TestPairUsesQuickestReading checks that a delayed reading does not count, at any position.
func TestPairUsesQuickestReading(t *testing.T) {
	for quick := range pairTries {
		card := &slowCard{nowNS: 1 << 40, delays: make([]time.Duration, pairTries)}
		for i := range card.delays {
			card.delays[i] = time.Millisecond
		}
		card.delays[quick] = time.Microsecond
		pair, err := pairClocks(card, card.now)
		if err != nil || pair.widthNS() != 1000 {
			t.Fatalf("quickest reading %d: width %d ns, %v", quick, pair.widthNS(), err)
		}
		if off := int64(pair.cycle)*cycleNS - pair.echo.T0; off < 0 || off > pair.widthNS() {
			t.Errorf("quickest reading %d: the cycle began %d ns after the pair, whose width is %d ns", quick, off, pair.widthNS())
		}
	}
}
