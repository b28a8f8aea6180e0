package pair

import (
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// actsOnBoth contains the addresses of registers whose accesses concern both cards.
var actsOnBoth = map[uint32]bool{regmap.CommonRole: true, regmap.CommonErrors: true, regmap.CommonCapabilities: true,
	regmap.CommonMaxPacketBytes: true, regmap.CommonCommand: true, regmap.CommonErrorAddress: true}

// DoSteps performs a list of register accesses (see regmap.Do). Successive accesses to the same card are passed to that
// card as one list.
func (d *Device) DoSteps(steps []regmap.Step) (done int, err error) {
	for done < len(steps) {
		n, err := d.doSome(steps[done:])
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// doSome performs the first step and the steps after it that concern the same card. It returns the number of steps that
// were performed.
func (d *Device) doSome(steps []regmap.Step) (done int, err error) {
	if actsOnBoth[steps[0].Addr] {
		return regmap.Do(accesses{d}, steps[:1])
	}
	card, n := d.cardOf(steps[0].Addr), 1
	for n < len(steps) && !actsOnBoth[steps[n].Addr] && d.cardOf(steps[n].Addr) == card {
		n++
	}
	there := make([]regmap.Step, n)
	for i, s := range steps[:n] {
		if there[i] = s; s.Write {
			there[i].Value ^= turned(s.Addr)
		} else {
			there[i].Want ^= turned(s.Addr) & s.Mask
		}
	}
	done, err = regmap.Do(card, there)
	for i := range there[:min(done+1, n)] {
		if s := &there[i]; s.Reads() {
			steps[i].Value = s.Value ^ turned(s.Addr)
		}
	}
	return done, d.note(card, err)
}

// accesses hides the support for lists of accesses, so that regmap.Do performs them one by one.
type accesses struct{ fpga.Registers }
