package attach

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/fpga/adder"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/fpga/program/xagg"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// floatConfig describes one of three workers whose endpoint converts float32.
func floatConfig(c endpoint.Conversion) Config {
	return Config{System: "ring", Waits: true, Workers: 3, Largest: 40, Lanes: 16 + Overhead, Floats: true,
		RefusesNaN: c.Block, Scale: c.Scale, Conversion: &c}
}

// floatRound lets clients send vectors to the workers of a job, and answers all with the sum of the vectors that arrive
// lists, each as often as it is listed. ends contains the errors that ended workers.
func floatRound(t *testing.T, c Config, vectors [][]float32, rounds []uint32, arrive ...int) (heads []Sum, all [][]float32, ends []error) {
	t.Helper()
	var clients []*Client
	var workers []*Rounds
	ends = make([]error, len(vectors))
	for k := range vectors {
		port, address := open(t)
		c.Worker = k
		w, err := NewRounds(c, func(err error) { ends[k] = err; go func() { _ = port.Close(err) }() })
		if err != nil {
			t.Fatal(err)
		}
		w.accepted = rounds[k]
		go port.Serve(w)
		clients, workers = append(clients, dial(t, address)), append(workers, w)
	}
	sent := make(chan bool)
	go func() {
		defer close(sent)
		heads, all, _ = sums(t, clients, vectors)
	}()
	sum := make([]uint32, c.FloatsJob())
	computed := make([][]uint32, len(workers))
	for k, w := range workers {
		computed[k] = slices.Clone(w.Compute(t.Context(), rounds[k]).Values)
	}
	for _, k := range arrive {
		adder.AddFloats(sum[:len(computed[k])], computed[k])
	}
	for k, w := range workers {
		w.Apply(&endpoint.Aggregate{Number: rounds[k], Vectors: 3, Values: slices.Clone(sum), Vanished: k})
	}
	<-sent
	return heads, all, ends
}

// TestFloatsReachTheEndpoint checks for every conversion that float32 sent to endpoints that convert them come back as
// a sum with the vector's length and the sum of the rewards.
func TestFloatsReachTheEndpoint(t *testing.T) {
	vectors := [][]float32{{1, 0, 1e-9}, {2, 0.5, 0}, {3, -1, 1000}}
	for name, conversion := range map[string]endpoint.Conversion{"float32": {}, "a scale for each frame": {Block: true},
		"a fixed scale": {Fixed: endpoint.Fixed{Scale: endpoint.ATPScale}, Escapes: true}} {
		t.Run(name, func(t *testing.T) {
			c := floatConfig(conversion)
			heads, all, ends := floatRound(t, c, vectors, []uint32{7, 7, 7}, 0, 1, 2)
			for k := range vectors {
				want := Sum{Round: 7, Workers: 3, Reward: 1.5, Numbers: Numbers{Vanished: uint32(k)}}
				if conversion.Scale > 0 && k == 0 {
					want.Vanished++ // 1e-9 vanishes at a scale of 1e6
				}
				if heads[k] != want || !slices.Equal(all[k], []float32{6, -0.5, 1000}) || ends[k] != nil {
					t.Errorf("worker %d gets %+v with %v, and ends with %v; want %+v with the sum", k, heads[k], all[k], ends[k], want)
				}
			}
		})
	}
}

// TestFloatSumsThatMissAVector adds the vectors of some workers only, or one of them twice: the job ends with an error,
// or the answer has the number of vectors inside and is marked as torn where that happens as published.
func TestFloatSumsThatMissAVector(t *testing.T) {
	for _, arrive := range [][]int{{0, 2}, {0, 1, 2, 1}} {
		c := floatConfig(endpoint.Conversion{})
		_, all, ends := floatRound(t, c, [][]float32{{1}, {2}, {4}}, []uint32{1, 1, 1}, arrive...)
		if !errors.Is(ends[0], ErrDisagree) || all[0] != nil {
			t.Errorf("a sum of workers %v is answered by %v, and the job ends with %v; want an error", arrive, all[0], ends[0])
		}
		c.Inexact = true
		heads, _, ends := floatRound(t, c, [][]float32{{1}, {2}, {4}}, []uint32{1, 1, 1}, arrive...)
		if h := heads[0]; int(h.Workers) != len(arrive) || h.Torn != 1 || ends[0] != nil {
			t.Errorf("a sum of workers %v is answered by %+v and %v; want %d vectors and torn", arrive, h, ends[0], len(arrive))
		}
	}
}

// TestFloatWorkersThatDisagreeEnd checks that workers that differ in length or round all end with an error, and that no
// client gets a sum.
func TestFloatWorkersThatDisagreeEnd(t *testing.T) {
	for text, c := range map[string]struct {
		vectors [][]float32
		rounds  []uint32
	}{
		"all must be of one length in a round": {[][]float32{{1, 2}, {1, 2}, {1}}, []uint32{0, 0, 0}},
		"and another is not; restart all":      {[][]float32{{1}, {1}, {1}}, []uint32{5, 5, 4}},
	} {
		_, all, ends := floatRound(t, floatConfig(endpoint.Conversion{}), c.vectors, c.rounds, 0, 1, 2)
		for k, err := range ends {
			if !errors.Is(err, ErrDisagree) || !strings.Contains(err.Error(), text) || all[k] != nil {
				t.Errorf("worker %d ends with %v and a sum of %v; want an error with %q", k, err, all[k], text)
			}
		}
	}
}

// TestFirstPacketsShowThatWorkersDisagree checks the first packet of a sum: the job ends if the vectors differ in
// length or round, but not if the packet misses a vector, which the complete sum shows.
func TestFirstPacketsShowThatWorkersDisagree(t *testing.T) {
	for _, c := range []struct {
		lengths []int
		rounds  []uint32
		ends    bool
	}{{[]int{1, 1, 1}, []uint32{2, 2, 2}, false}, {[]int{1, 30, 1}, []uint32{2, 2, 2}, true},
		{[]int{1, 1, 1}, []uint32{2, 3, 2}, true}, {[]int{1, 30}, []uint32{2, 2}, false}} {
		config, sum := floatConfig(endpoint.Conversion{}), []uint32(nil)
		for k, n := range c.lengths {
			lanes := config.appendFloats(nil, &handed{values: make([]byte, 4*n), round: c.rounds[k]}, new(Numbers))
			if sum == nil {
				sum = make([]uint32, config.Lanes-Overhead)
			}
			adder.AddFloats(sum, lanes[:len(sum)])
		}
		var end error
		r := &Rounds{config: config, end: func(err error) { end = err }, flying: handed{values: make([]byte, 4), round: 2}}
		if r.CheckFirst(sum); errors.Is(end, ErrDisagree) != c.ends {
			t.Errorf("lengths %d in rounds %d end with %v; want an error: %v", c.lengths, c.rounds, end, c.ends)
		}
	}
}

// TestSomeRoundsUseAllFrames checks that short vectors take one frame, and that any 2^15 rounds, the range in which
// programs compare rounds, include one with all frames.
func TestSomeRoundsUseAllFrames(t *testing.T) {
	const perFrame, longest = 10, 35
	full, last := 0, 0
	for round := range 1 << 16 {
		switch n := PaddedLength(uint32(round), perFrame, longest); {
		case n == longest:
			full, last = full+1, round
		case n != perFrame:
			t.Fatalf("in round %d vectors have at least %d values, want a frame or all frames", round, n)
		case round-last >= 1<<15:
			t.Fatalf("round %d is the last of 2^15 without all frames", round)
		}
	}
	if full > 8 {
		t.Errorf("%d of 2^16 rounds use all frames, want 8", full)
	}
}

// TestWaitersLearnWhoseVectorsAServerLacks passes a server's report to a worker, whose client is told the workers.
func TestWaitersLearnWhoseVectorsAServerLacks(t *testing.T) {
	r := &Rounds{config: floatConfig(endpoint.Conversion{})}
	if text := r.describeWait(0); !strings.HasPrefix(text, "a vector of another worker is missing") {
		t.Errorf("without a report the client is told %q", text)
	}
	if err := r.CheckFrame(&program.Packet{Kind: program.Control, Action: xagg.Awaits, Bitmap: 0b101}, nil); err != nil {
		t.Fatal(err)
	}
	if text := r.describeWait(0); text != "the vector of workers 0 2 is missing" {
		t.Errorf("the client is told %q, want the missing workers", text)
	}
}

// TestRewardsKeepTheirSign checks rewards below 0, beyond the range, and NaN, which counts as 0.
func TestRewardsKeepTheirSign(t *testing.T) {
	c := floatConfig(endpoint.Conversion{})
	most := float32(math.MaxInt32) / 256
	for r, want := range map[float32]float32{-3.25: -3.25, 0: 0, 100: 100, float32(math.Inf(1)): most, float32(math.Inf(-1)): -most,
		float32(math.NaN()): 0} {
		lanes := c.appendFloats(nil, &handed{reward: r}, new(Numbers))
		if got := float32(readDigits(lanes[1+lengthDigits+roundDigits:], rewardDigits)-rewardOffset) / 256; got != want {
			t.Errorf("a reward of %v is sent as %v, want %v", r, got, want)
		}
	}
}

// TestDigitsOfAThousandWorkersAreExact adds the numbers before the vectors of a thousand workers as float32, and as
// integers with a scale that leaves room for the sum: the count, the lengths, the rounds and the rewards add up.
func TestDigitsOfAThousandWorkersAreExact(t *testing.T) {
	const workers, length, round = 1000, 1<<24 - 1, 1<<14 - 1
	c := floatConfig(endpoint.Conversion{})
	c.Largest = 1
	const scale = math.MaxInt32 / (workers * 128.0) // SwitchML's for digits of 7 bits
	floats, integers := make([]uint32, floatDigits), make([]float64, floatDigits)
	rewards := int64(0)
	for k := range workers {
		reward := float32(k-900) - 1./256 // most have digits of 127
		rewards += int64(rewardOf(reward))
		h := handed{values: make([]byte, 4), round: round, reward: reward}
		lanes := c.appendFloats(nil, &h, new(Numbers))[:floatDigits]
		for i := range lengthDigits { // the largest length, without its values
			lanes[1+i] = math.Float32bits(float32(int(length) >> (digitBits * i) & (1<<digitBits - 1)))
		}
		adder.AddFloats(floats, lanes)
		for i, v := range lanes {
			integers[i] += math.Round(float64(math.Float32frombits(v)) * scale)
		}
	}
	for i, v := range integers {
		if math.Abs(v) > math.MaxInt32 {
			t.Fatalf("digit %d adds up to %v, beyond int32", i, v)
		}
		integers[i] = v / scale
	}
	for name, sum := range map[string]func(i int) uint32{"float32": func(i int) uint32 { return floats[i] },
		"integers": func(i int) uint32 { return math.Float32bits(float32(integers[i])) }} {
		all := make([]uint32, floatDigits)
		for i := range all {
			all[i] = sum(i)
		}
		got := [4]int64{readDigits(all, 1), readDigits(all[1:], lengthDigits), readDigits(all[1+lengthDigits:], roundDigits),
			readDigits(all[1+lengthDigits+roundDigits:], rewardDigits) - workers*rewardOffset}
		if want := [4]int64{workers, workers * length, workers * round, rewards}; got != want {
			t.Errorf("as %s the numbers add up to %v, want %v", name, got, want)
		}
	}
}

// TestPacketNumbersLimitPacketsNotVectors checks that a worker whose frames can number six packets sends six vectors of
// one packet, or two of three, and ends with an error at the next one.
func TestPacketNumbersLimitPacketsNotVectors(t *testing.T) {
	for values, most := range map[int]int{4: 6, 36: 2} { // the numbers before the values take 12 lanes of 16
		c := floatConfig(endpoint.Conversion{})
		c.Numbers = 6
		var why error
		r, err := NewRounds(c, func(err error) { why = err })
		if err != nil {
			t.Fatal(err)
		}
		for i := range most + 1 {
			if why != nil {
				t.Errorf("vector %d of %d values ends with %v, want that it is sent", i-1, values, why)
			}
			r.vectors <- handed{round: uint32(i), values: make([]byte, 4*values), answer: make(chan []byte, 1)}
			r.Compute(t.Context(), uint32(i))
		}
		if !errors.Is(why, ErrEarlyEnd) || !strings.Contains(why.Error(), "can number only 6 packets") {
			t.Errorf("vector %d of %d values ends with %v, want that there are only 6 packets", most, values, why)
		}
	}
}
