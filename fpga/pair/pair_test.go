package pair_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/fpgatest"
	"github.com/olafctl/olaf/fpga/pair"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

func newTwin(t testing.TB) *twin.Twin {
	t.Helper()
	d, err := twin.New(twin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestConformance checks that two joined twins behave as one card.
func TestConformance(t *testing.T) {
	fpgatest.Run(t, func(t *testing.T) fpga.Device {
		d, err := pair.JoinTwins(newTwin(t), newTwin(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	})
}

// built is a card with a different image: it has other roles, or an older register map.
type built struct {
	fpga.Device
	role uint32
	old  bool
}

func (b built) Read32(addr uint32) (uint32, error) {
	switch {
	case addr == regmap.CommonRole:
		return b.role, nil
	case addr == regmap.CommonMapVersion && b.old:
		return 0x01040000, nil
	}
	return b.Device.Read32(addr)
}

// TestRoles checks that a card is refused for a role that its image does not have.
func TestRoles(t *testing.T) {
	const both = regmap.CommonRoleGenerator | regmap.CommonRoleAccelerator
	for name, c := range map[string]struct {
		generator, queue built
		want             string
	}{
		"cards of one role each":   {built{role: regmap.CommonRoleGenerator}, built{role: regmap.CommonRoleAccelerator}, ""},
		"a generator's card alone": {built{role: regmap.CommonRoleGenerator}, built{role: regmap.CommonRoleGenerator}, "without a queue"},
		"a queue's card alone":     {built{role: regmap.CommonRoleAccelerator}, built{role: both}, "without a generator"},
		"an older image":           {built{role: both, old: true}, built{role: both}, "only feeds its own queue"},
	} {
		c.generator.Device, c.queue.Device = newTwin(t), newTwin(t)
		_, err := pair.New(c.generator, c.queue, false)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, pair.ErrRole) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// Close leaves the card open, so that the test can inspect it.
func (b built) Close() error { return nil }

// TestClosedPairFeedsOwnQueue checks that a card feeds its own queue again after its pair is closed, but not after a
// reset of the pair.
func TestClosedPairFeedsOwnQueue(t *testing.T) {
	const both = regmap.CommonRoleGenerator | regmap.CommonRoleAccelerator
	generator := newTwin(t)
	d, err := pair.New(built{Device: generator, role: both}, built{Device: newTwin(t), role: both}, false)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, want uint32) {
		t.Helper()
		if v, err := generator.Read32(regmap.GeneratorControl); v != want || err != nil {
			t.Errorf("%s, generator.control of the generator's card is %d (%v); want %d", when, v, err, want)
		}
	}
	if err := d.Write32(regmap.CommonCommand, regmap.CommonCommandReset); err != nil {
		t.Fatal(err)
	}
	expect("after a reset of the pair", regmap.GeneratorControlWire)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	expect("after parting", 0)
}
