package remote

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
)

// TestListsAreLikeSingleAccesses compares lists on a lent twin with the same accesses on another one: values, errors and the
// number of steps done are equal, and so are the registers afterwards.
func TestListsAreLikeSingleAccesses(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		local := newTwin(outer)
		target, stop := serve(outer, newTwin(outer), nil)
		defer stop()
		far, err := Dial(context.Background(), target, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		addresses := rapid.SampledFrom([]uint32{regmap.CommonScratch, regmap.QueueDepth, regmap.QueueStatus, regmap.QueueControl,
			regmap.CommonCommand, regmap.CommonCycles, regmap.QueueSnapshotCycle, regmap.GeneratorMemSelect, regmap.GeneratorMemData, 0x7})
		for range rapid.IntRange(1, 4).Draw(t, "lists") {
			var here, there []regmap.Step
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				s := regmap.Step{Addr: addresses.Draw(t, "address"), Write: rapid.Bool().Draw(t, "write"), Value: rapid.Uint32Range(0, 9).Draw(t, "value")}
				if s.Write && rapid.Bool().Draw(t, "burst") {
					s.Words = rapid.SliceOfN(rapid.Uint32(), 1, 9).Draw(t, "words")
				}
				here, there = append(here, s), append(there, s)
			}
			doneHere, errHere := regmap.Do(local, here)
			doneThere, errThere := regmap.Do(far, there)
			if doneHere != doneThere || (errHere == nil) != (errThere == nil) || errors.Is(errHere, fpga.ErrRefused) != errors.Is(errThere, fpga.ErrRefused) {
				t.Fatalf("%d steps and %v here, %d and %v there", doneHere, errHere, doneThere, errThere)
			}
			for i := range here[:doneHere] {
				if here[i].Value != there[i].Value {
					t.Fatalf("step %d read %#x here and %#x there", i, here[i].Value, there[i].Value)
				}
			}
		}
		for _, addr := range []uint32{regmap.CommonScratch, regmap.QueueDepth, regmap.QueueSnapshotCycle} {
			a, errA := local.Read32(addr)
			b, errB := far.Read32(addr)
			if a != b || errA != nil || errB != nil {
				t.Fatalf("%#x is %#x here and %#x there (%v, %v)", addr, a, b, errA, errB)
			}
		}
	})
}

// TestReadOnlyListsOnlyRead states that a session that may only read can read by lists, but write nothing by them.
func TestReadOnlyListsOnlyRead(t *testing.T) {
	target, _ := serve(t, newTwin(t), nil)
	d := dial(t, target, Options{ReadOnly: true})
	read := []regmap.Step{regmap.ReadStep(regmap.QueueDepth), regmap.ReadStep(regmap.QueueBuiltSlots)}
	if done, err := regmap.Do(d, read); done != 2 || err != nil || read[1].Value == 0 {
		t.Errorf("%d steps, %v: %+v", done, err, read)
	}
	for _, s := range []regmap.Step{regmap.WriteStep(regmap.CommonScratch, 1), regmap.ReadStep(regmap.GeneratorMemData),
		{Addr: regmap.GeneratorMemData, Words: []uint32{1}}} {
		if done, err := regmap.Do(d, []regmap.Step{read[0], s}); done != 1 || !errors.Is(err, fpga.ErrRefused) {
			t.Errorf("%+v: %d steps, error %v, want ErrRefused after one", s, done, err)
		}
	}
}

// TestUpdatesComeWithSleeps states that no update is lost or repeated, however sleeps, drains and other accesses mix.
func TestUpdatesComeWithSleeps(t *testing.T) {
	tap := new(counting)
	target, _ := serve(t, newTwin(t), tap)
	d := dial(t, target, Options{})
	var got []olaf.Observation
	for i := range 60 {
		switch i % 5 {
		case 0, 3:
			if err := d.Sleep(t.Context(), olaf.Microsecond); err != nil {
				t.Fatal(err)
			}
		case 1:
			if _, err := d.Read32(regmap.CommonScratch); err != nil {
				t.Fatal(err)
			}
		default:
			got = d.Drain(got)
		}
	}
	for range 3 { // the last one requests what is left
		got = d.Drain(got)
	}
	if len(got) != int(tap.next) {
		t.Errorf("%d updates, want %d", len(got), tap.next)
	}
	for i := range got {
		if got[i].Update.Seq != uint32(i) {
			t.Fatalf("update %d is number %d", i, got[i].Update.Seq)
		}
	}
}

// counting is a tap with another update at each call.
type counting struct{ next uint32 }

func (c *counting) Drain(buf []olaf.Observation) []olaf.Observation {
	c.next++
	return append(buf, olaf.Observation{Update: olaf.Update{Seq: c.next - 1}})
}
