package job

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// lengthsRun runs a job of three workers whose vectors have length(worker, round) values, with small integers. It
// returns the sums of each worker, nil for those of vectors that differ in length, and the job's result.
func lengthsRun(t *testing.T, name string, o system.Options, loss float64, rounds uint32,
	length func(worker int, round uint32) int) (sums [3][][]uint32, r *closedloop.Result) {
	t.Helper()
	s, err := system.All().Find(name)
	if err != nil {
		t.Fatal(err)
	}
	spec := &Spec{System: s, Mode: &s.Modes[0], Options: o}
	spec.Network.Link = closedloop.Link{Rate: 10 * olaf.Gbps, Overhead: 24, Loss: loss}
	spec.Network.Workers = 3
	parts, j, err := spec.Build(longestLength, rounds)
	if err != nil {
		t.Fatal(err)
	}
	j.Varies, j.Limit = true, olaf.Second
	j.Values = func(_ olaf.Time, worker int, round uint32) []uint32 {
		v := make([]uint32, length(worker, round))
		for i := range v {
			v[i] = math.Float32bits(float32((i+int(round))%100 + worker))
		}
		return v
	}
	j.Applied = func(_ olaf.Time, host int, a *endpoint.Aggregate) {
		if host < len(sums) {
			sums[host] = append(sums[host], slices.Clone(a.Values))
		}
	}
	if r, err = closedloop.Run(context.Background(), spec.Network, j, parts, true, 1); err != nil {
		t.Fatal(err)
	}
	return sums, r
}

// longestLength is a number of values that takes more packets than SwitchML's pool of 4 has slots.
const longestLength = 5000

// lengthSystems are the systems whose workers can wait for the sums of programs' vectors, by case.
var lengthSystems = map[string]struct {
	name    string
	options system.Options
	loss    float64
}{
	"switchml": {name: "switchml"}, "a small pool under loss": {"switchml", system.Options{Slots: 4}, 0.02},
	"atp": {name: "atp"}, "atp under loss": {"atp", system.Options{Slots: 20, Window: 20}, 0.02},
	"ps": {name: "ps"}, "ring": {name: "ring"}, "iswitch": {name: "iswitch"},
	"isw-x under loss": {"iswitch", system.Options{Profile: "isw-x"}, 0.02},
}

// TestVectorsOfAnyLength lets the length of vectors change from round to round: every sum is exact, and vectors of one
// packet take fewer packets than the longest.
func TestVectorsOfAnyLength(t *testing.T) {
	lengths := []int{1200, 400, 5000, 366, 367, 700, 3000, 366}
	for title, c := range lengthSystems {
		t.Run(title, func(t *testing.T) {
			sums, r := lengthsRun(t, c.name, c.options, c.loss, uint32(len(lengths)), func(_ int, round uint32) int {
				return lengths[round]
			})
			for worker, all := range sums {
				if len(all) != len(lengths) {
					t.Fatalf("worker %d got %d sums in %d rounds (the job hung: %v)", worker, len(all), len(lengths), r.Hung)
				}
				for round, sum := range all {
					if len(sum) != lengths[round] {
						t.Fatalf("worker %d: the sum of round %d has %d values, want %d", worker, round, len(sum), lengths[round])
					}
					for i, v := range sum {
						if want := float32(3*((i+round)%100) + 3); math.Float32frombits(v) != want {
							t.Fatalf("worker %d: value %d of round %d is %v, want %v", worker, i, round, math.Float32frombits(v), want)
						}
					}
				}
			}
			_, long := lengthsRun(t, c.name, c.options, 0, 4, func(int, uint32) int { return longestLength })
			_, short := lengthsRun(t, c.name, c.options, 0, 4, func(int, uint32) int { return 400 })
			if 4*short.Frames > long.Frames {
				t.Errorf("vectors of 400 values take %d frames, and of %d values %d; want that only those needed travel",
					short.Frames, longestLength, long.Frames)
			}
		})
	}
}

// TestAnswersOfAnyLength lets workers of a parameter server that do not wait for each other send updates of different
// lengths, and the server answer each with a model of another length. Every answer arrives, and only its frames travel.
func TestAnswersOfAnyLength(t *testing.T) {
	s, err := system.All().Find("ps")
	if err != nil {
		t.Fatal(err)
	}
	mode, err := s.Mode("async")
	if err != nil {
		t.Fatal(err)
	}
	lengths := []int{5000, 1, 700, 366, 367, 3000}
	next := func(length int) int { return lengths[(slices.Index(lengths, length)+1)%len(lengths)] }
	spec := &Spec{System: s, Mode: mode}
	spec.Network.Link = closedloop.Link{Rate: 10 * olaf.Gbps, Overhead: 24}
	spec.Network.Workers = 2
	parts, j, err := spec.Build(longestLength, uint32(len(lengths)))
	if err != nil {
		t.Fatal(err)
	}
	j.Varies, j.Limit = true, olaf.Second
	sent := func(worker int, round uint32) int { return lengths[(int(round)+worker)%len(lengths)] }
	j.Values = func(_ olaf.Time, worker int, round uint32) []uint32 {
		return slices.Repeat([]uint32{round}, sent(worker, round))
	}
	frames, rounds := uint64(0), [2]uint32{}
	j.Applied = func(_ olaf.Time, host int, a *endpoint.Aggregate) {
		if host == spec.Network.Workers {
			for _, length := range []int{len(a.Values), next(len(a.Values))} {
				frames += uint64(2 * ((length + parts.PerPacket - 1) / parts.PerPacket)) // on two links
			}
			a.Values = slices.Repeat([]uint32{a.Values[0] + 100}, next(len(a.Values)))
			return
		}
		if want := next(sent(host, rounds[host])); len(a.Values) != want || a.Values[want-1] != rounds[host]+100 {
			t.Errorf("worker %d: answer %d has %d values, the last one %d; want %d values of %d", host, rounds[host], len(a.Values),
				a.Values[len(a.Values)-1], want, rounds[host]+100)
		}
		rounds[host]++
	}
	r, err := closedloop.Run(context.Background(), spec.Network, j, parts, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	if total := uint32(len(lengths)); rounds != [2]uint32{total, total} || r.Frames != frames {
		t.Errorf("workers got %v answers in %d frames, want %d each in %d", rounds, r.Frames, total, frames)
	}
}

// TestVectorsOfUnequalLengths lets one worker's vector be longer in the second round: SwitchML's and the ring's workers
// end the round without a sum. The server's answer is as long as the longest vector, so that all can compare the lengths.
func TestVectorsOfUnequalLengths(t *testing.T) {
	length := func(worker int, round uint32) int { return 400 + 1600*(worker/2)*int(round) }
	for _, name := range []string{"switchml", "ring", "ps"} {
		sums, _ := lengthsRun(t, name, system.Options{}, 0, 2, length)
		for worker, all := range sums {
			if len(all) != 2 || len(all[0]) != 400 || (len(all[1]) == 0) != (name != "ps") {
				t.Errorf("%s: worker %d gets %d sums; want one of 400 values, and then none, or from a server the longest",
					name, worker, len(all))
			}
		}
	}
}
