package testbed

import (
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// portedTwin is a twin whose port counts are those of two cards and a cable.
type portedTwin struct {
	*twin.Twin
	carries bool // the cable leads from one card to the other
	alone   bool // there is one card
}

func (p *portedTwin) PortCounts() ([]fpga.Port, error) {
	n, err := fpga.Snapshot(p)
	if err != nil || p.alone {
		return nil, err
	}
	ports := []fpga.Port{{}, {}, {Sent: 1000 + n.Generator.SentPackets, Feeds: true}}
	if p.carries {
		ports[0].Received = n.Generator.SentPackets
	}
	return ports, nil
}

// TestCableOfCardsIsProbed sends frames from the generator of one card to another: if none arrives, one line names both, and the
// generator is idle afterwards.
func TestCableOfCardsIsProbed(t *testing.T) {
	for name, c := range map[string]struct {
		portedTwin
		want string
	}{
		"good":     {portedTwin{carries: true}, ""},
		"one card": {portedTwin{alone: true}, ""},
		"nowhere":  {portedTwin{}, "8 frames left the generator's port in 1s, and none reached port 0 of "},
	} {
		var err error
		if c.Twin, err = twin.New(twin.Config{}); err != nil {
			t.Fatal(err)
		}
		card := c.portedTwin
		err = (&Testbed{Cards: []Card{{Device: &card}}}).CheckCable(t.Context())
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrCable) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if state, err := card.Read32(regmap.GeneratorState); err != nil || state&regmap.GeneratorStateStateMask != regmap.GeneratorStateStateIdle {
			t.Errorf("%s: the generator is in state %d (%v)", name, state, err)
		}
	}
}
