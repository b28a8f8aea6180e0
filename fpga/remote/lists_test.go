package remote

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// TestListsAreLikeSingleAccesses compares lists on a served twin with the same accesses on another twin. Values,
// errors, the number of steps done, and the registers afterwards must be equal.
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
					s.Words = rapid.SliceOfN(rapid.Uint32(), 1, 20).Draw(t, "words")
				}
				if s.Reads() && rapid.Bool().Draw(t, "expects") {
					s.Mask, s.Want = 3, rapid.Uint32Range(0, 3).Draw(t, "want")
				}
				here, there = append(here, s), append(there, s)
			}
			doneHere, errHere := regmap.Do(local, here)
			doneThere, errThere := regmap.Do(far, there)
			if doneHere != doneThere || (errHere == nil) != (errThere == nil) || errors.Is(errHere, fpga.ErrRefused) != errors.Is(errThere, fpga.ErrRefused) ||
				errors.Is(errHere, regmap.ErrUnexpected) != errors.Is(errThere, regmap.ErrUnexpected) {
				t.Fatalf("%d steps and %v here, %d and %v there", doneHere, errHere, doneThere, errThere)
			}
			read := doneHere
			if errors.Is(errHere, regmap.ErrUnexpected) {
				read++
			}
			for i := range here[:read] {
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

// TestReadOnlyListsOnlyRead checks that a read-only session can read by lists, but cannot write by lists.
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

// TestSleepsDeliverUpdates checks that no update is lost or repeated, however sleeps, drains and other accesses are
// mixed.
func TestSleepsDeliverUpdates(t *testing.T) {
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
	for range 3 { // the last call requests the rest
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

// counting is a tap that returns a different update at each call.
type counting struct{ next uint32 }

func (c *counting) Drain(buf []olaf.Observation) []olaf.Observation {
	c.next++
	return append(buf, olaf.Observation{Update: olaf.Update{Seq: c.next - 1}})
}

// watched is a device whose generator runs for some steps of time. Each step delivers an update.
type watched struct {
	*twin.Twin
	steps, passed uint32
	slept         olaf.Duration
}

func (w *watched) Sleep(_ context.Context, t olaf.Duration) error {
	w.passed++
	w.slept += t
	return nil
}

func (w *watched) Read32(addr uint32) (uint32, error) {
	switch {
	case addr != regmap.GeneratorState:
		return w.Twin.Read32(addr)
	case w.passed < w.steps:
		return regmap.GeneratorStateStateRunning, nil
	}
	return regmap.GeneratorStateStateDone, nil
}

func (w *watched) Drain(buf []olaf.Observation) []olaf.Observation {
	return append(buf, olaf.Observation{Update: olaf.Update{Seq: w.passed}})
}

// TestWatchedStepsRunOnce checks that an agent lets exactly as many steps pass as the generator runs for, however many
// are in one answer, and that every update arrives once and in order, even if the client does something else in
// between.
func TestWatchedStepsRunOnce(t *testing.T) {
	for name, interrupt := range map[string]bool{"watched to the end": false, "with other accesses in between": true} {
		t.Run(name, func(t *testing.T) {
			const steps = 20_000 // more than one answer has time for
			device := &watched{Twin: newTwin(t), steps: steps}
			target, _ := serve(t, device, device)
			d := dial(t, target, Options{})
			var got []olaf.Observation
			var last olaf.Duration
			err := fpga.WatchGenerator(t.Context(), d, olaf.Microsecond, func(passed olaf.Duration) (bool, error) {
				if interrupt {
					if err := d.Write32(regmap.CommonScratch, 1); err != nil {
						return false, err
					}
				}
				got, last = d.Drain(got), passed
				state, err := d.Read32(regmap.GeneratorState)
				return state == regmap.GeneratorStateStateRunning, err
			})
			if err != nil || device.passed != steps || device.slept != steps*olaf.Microsecond || last > device.slept {
				t.Fatalf("%d steps of %v in all, the last report after %v, %v", device.passed, device.slept, last, err)
			}
			got = slices.DeleteFunc(d.Drain(got), func(o olaf.Observation) bool { return o.Update.Seq == steps })
			for i := range got {
				if len(got) != steps-1 || got[i].Update.Seq != uint32(i)+1 {
					t.Fatalf("update %d of %d is number %d", i, len(got), got[i].Update.Seq)
				}
			}
		})
	}
}

// TestSessionSurvivesEndedWatch checks that the session is usable after a watch was ended early by its caller or its
// context.
func TestSessionSurvivesEndedWatch(t *testing.T) {
	device := &watched{Twin: newTwin(t), steps: 1 << 30}
	target, _ := serve(t, device, device)
	d := dial(t, target, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		reports := 0
		err := fpga.WatchGenerator(ctx, d, olaf.Microsecond, func(olaf.Duration) (bool, error) {
			reports++
			return reports < 3, nil
		})
		if ctx.Err() == nil && (err != nil || reports != 3) || ctx.Err() != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%d reports, %v", reports, err)
		}
		if v, err := d.Read32(regmap.QueueDepth); v != 8 || err != nil {
			t.Errorf("queue.depth reads %d (%v) afterwards, want 8", v, err)
		}
		cancel()
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	dial(t, target, Options{}) // the write lock is free
}

// stuckDevice is a device in which some bits of a register read as 0.
type stuckDevice struct {
	fpga.Device
	addr, bits uint32
}

func (d *stuckDevice) Read32(addr uint32) (uint32, error) {
	v, err := d.Device.Read32(addr)
	if addr == d.addr {
		v &^= d.bits
	}
	return v, err
}

// TestRefusedListLeavesTheQueueDisabled checks that if a card does not take a value in the middle of a list, the error
// names the register, the queue is disabled, and the next configuration takes effect.
func TestRefusedListLeavesTheQueueDisabled(t *testing.T) {
	card := &stuckDevice{Device: newTwin(t), addr: regmap.QueueDepth}
	target, _ := serve(t, card, nil)
	d := dial(t, target, Options{})
	for _, stuck := range []bool{false, true, false} {
		if card.bits = 0; stuck {
			card.bits = 4
		}
		err := fpga.ConfigureQueue(t.Context(), d, fpga.QueueConfig{Discipline: "olaf", Depth: 5})
		if stuck && !errors.Is(err, fpga.ErrRefused) || stuck && !strings.Contains(err.Error(), "queue.depth is 0x1 after 0x5 was written") || !stuck && err != nil {
			t.Errorf("stuck: %t: %v", stuck, err)
		}
		if v, err := d.Read32(regmap.QueueControl); err != nil || (v&regmap.QueueControlEnable != 0) == stuck {
			t.Errorf("stuck: %t: queue.control is %#x, %v; want the queue enabled only with its whole configuration", stuck, v, err)
		}
	}
}
