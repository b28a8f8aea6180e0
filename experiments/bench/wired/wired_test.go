package wired

import (
	"testing"

	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
)

// TestSumValuesShowContents checks that a sum's values show its contents: every packet is wrong if a worker is missing
// or repeated or the round is another, and none is wrong for the sum of all workers, in any order and arithmetic.
func TestSumValuesShowContents(t *testing.T) {
	const workers, count, per = 7, 1000, 64
	for _, a := range []program.Arithmetic{program.Float32, program.Wrapping, program.Sticky} {
		v := newValues(3, workers, workers, count, a)
		sum := func(round uint32, times ...int) []uint32 {
			out, one := make([]uint32, count), make([]uint32, count)
			for w, n := range times {
				v.fillVector(one, workers+w, round) // in the second job
				for range n {
					if a == program.Float32 {
						adder.AddFloats(out, one)
					} else {
						adder.AddWrapping(out, one)
					}
				}
			}
			return out
		}
		for what, c := range map[string]struct {
			sum  []uint32
			want int
		}{
			"all": {sum(5, 1, 1, 1, 1, 1, 1, 1), 0}, "one is missing": {sum(5, 1, 1, 0, 1, 1, 1, 1), 16},
			"one is there twice": {sum(5, 1, 2, 1, 1, 1, 1, 1), 16},
			"of another round":   {sum(6, 1, 1, 1, 1, 1, 1, 1), 16}, "nothing": {nil, 16},
		} {
			if got := v.countWrong(c.sum, 1, 5, per); got != c.want {
				t.Errorf("%v, %s: %d packets are wrong, want %d", a, what, got, c.want)
			}
		}
		part := sum(5, 1, 1, 1, 1, 1, 1, 1)
		part[per] ^= 1
		if got := v.countWrong(part, 1, 5, per); got != 1 {
			t.Errorf("%v: a bit is wrong in %d packets", a, got)
		}
	}
}

// TestValuesAreExact checks that all sums are exact in a float32.
func TestValuesAreExact(t *testing.T) {
	for workers := 1; workers <= 250; workers++ {
		v := newValues(1, workers, workers, 1, program.Wrapping)
		most := int32(0)
		for i := range 2000 {
			most = max(most, v.valueAt(0, 0, i), -v.valueAt(0, 0, i))
		}
		if int64(most)*int64(workers) > 1<<24 || most < 1<<12 || int32(float32(most)) != most {
			t.Errorf("%d workers: values up to %d", workers, most)
		}
	}
}
