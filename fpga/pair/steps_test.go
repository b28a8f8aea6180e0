package pair

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// joinNew joins two new twins.
func joinNew(t *testing.T) *Twins {
	t.Helper()
	var both [2]*twin.Twin
	for i := range both {
		var err error
		if both[i], err = twin.New(twin.Config{}); err != nil {
			t.Fatal(err)
		}
	}
	d, err := JoinTwins(both[0], both[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestListsOfPairsAreLikeSingleAccesses checks that lists of accesses on a pair have the same effect as single accesses
// on another pair.
func TestListsOfPairsAreLikeSingleAccesses(t *testing.T) {
	outer := t
	addresses := rapid.SampledFrom([]uint32{regmap.CommonScratch, regmap.CommonErrors, regmap.CommonCapabilities, regmap.CommonCommand,
		regmap.QueueDepth, regmap.QueueStatus, regmap.GeneratorControl, regmap.GeneratorEvents, regmap.GeneratorState, regmap.GeneratorFlows, 0x7})
	rapid.Check(t, func(t *rapid.T) {
		one, other := joinNew(outer), joinNew(outer)
		for range rapid.IntRange(1, 3).Draw(t, "lists") {
			var single, list []regmap.Step
			for range rapid.IntRange(0, 10).Draw(t, "steps") {
				s := regmap.Step{Addr: addresses.Draw(t, "address"), Write: rapid.Bool().Draw(t, "write"), Value: rapid.Uint32Range(0, 7).Draw(t, "value")}
				if s.Reads() && rapid.Bool().Draw(t, "expects") {
					s.Mask, s.Want = 3, rapid.Uint32Range(0, 3).Draw(t, "want")
				}
				single, list = append(single, s), append(list, s)
			}
			doneSingle, errSingle := regmap.Do(accesses{one}, single)
			doneList, errList := regmap.Do(other, list)
			if doneSingle != doneList || (errSingle == nil) != (errList == nil) {
				t.Fatalf("%d steps and %v one by one, %d and %v as a list", doneSingle, errSingle, doneList, errList)
			}
			for i := range single[:doneSingle] {
				if single[i].Value != list[i].Value {
					t.Fatalf("step %d (%+v) read %#x one by one and %#x in a list", i, single[i], single[i].Value, list[i].Value)
				}
			}
		}
	})
}
