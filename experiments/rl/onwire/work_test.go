package onwire

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/tc"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

func small() rl.Config {
	c := rl.Defaults()
	c.Workers, c.Clusters, c.Iterations, c.PPO.Steps, c.PPO.Epochs = 4, 2, 2, 60, 1
	c.Network.Kind, c.Network.Rate, c.Network.OutRate = "olaf", 2*olaf.Mbps, olaf.Mbps
	return c
}

// TestServerEqualsSimulatedServer checks that servers that receive updates in packets, and the simulated server, which
// receives frames, have the same weights to the last bit, with one update or a sum of several per packet.
func TestServerEqualsSimulatedServer(t *testing.T) {
	c := small()
	s, err := NewServers(&c)
	if err != nil {
		t.Fatal(err)
	}
	whole := c.Keeper(1, rl.Params)
	l := GradientLayout()
	for n, count := range []int{1, 3, 1, 2} {
		gradient := make([]float32, rl.Params)
		fixed := make([]uint32, rl.Params)
		for i := range gradient {
			fixed[i] = uint32(rl.FixedPoint(float32(i%17-8) * float32(n+1)))
			gradient[i] = rl.OfFixedPoint(int32(fixed[i]), count)
		}
		whole.Take(0, gradient, 5, count)
		for part := range l.Packets() {
			values := append([]uint32(nil), fixed[part*l.PerPacket:][:l.Lanes(part)]...)
			a := endpoint.Aggregate{Job: 1, First: part * l.PerPacket, Vectors: uint32(count), Reward: int32(5 * 256 * count),
				Values: values}
			s.Apply(&a)
			for i, v := range a.Values {
				if math.Float32frombits(v) != whole.Weights()[a.First+i] {
					t.Fatalf("update %d, weight %d: %v, as a frame %v", n, a.First+i, math.Float32frombits(v),
						whole.Weights()[a.First+i])
				}
			}
		}
	}
	if *s.Weights(1) != *whole.Weights() || *s.Weights(0) != *c.Initial(0) {
		t.Error("weights differ")
	}
	if stats := s.Stats()[1]; stats.Received != uint64(4*l.Packets()) || stats.Inside != uint64(7*l.Packets()) {
		t.Errorf("%+v", stats)
	}
	for _, stranger := range []endpoint.Aggregate{{Job: 2, Vectors: 1, Values: make([]uint32, l.PerPacket)},
		{Vectors: 1, Values: make([]uint32, 3)}, {First: rl.Params, Vectors: 1}} {
		if s.Apply(&stranger); stranger.Values != nil {
			t.Errorf("%+v was answered", stranger)
		}
	}
}

// TestPilot checks that a pilot flies with the received weights, and keeps its periods.
func TestPilot(t *testing.T) {
	c := small()
	p, err := NewPilot(&c, 3)
	if err != nil {
		t.Fatal(err)
	}
	first := p.Compute(t.Context(), 0)
	simulated, err := c.Pilot(3)
	if err != nil {
		t.Fatal(err)
	}
	gradient, reward := simulated.Fly(c.Initial(1))
	for i, v := range gradient {
		if first.Values[i] != uint32(rl.FixedPoint(v)) {
			t.Fatalf("value %d differs from the simulated worker's", i)
		}
	}
	if math.Abs(float64(first.Reward)/256-reward) > 1.0/256 || first.Due <= 0 {
		t.Errorf("%+v, reward %v", first, reward)
	}
	weights := c.Initial(0) // different weights
	for part := range GradientLayout().Packets() {
		a := endpoint.Aggregate{First: part * GradientLayout().PerPacket}
		for i := range GradientLayout().Lanes(part) {
			a.Values = append(a.Values, math.Float32bits(weights[a.First+i]))
		}
		p.Apply(&a)
	}
	p.Apply(&endpoint.Aggregate{First: rl.Params - 1, Values: []uint32{math.Float32bits(weights[rl.Params-1]), 7}}) // beyond the last weight
	second := p.Compute(t.Context(), 1)
	if p.flown != *weights || second.Due <= first.Due {
		t.Errorf("due at %v after %v", second.Due, first.Due)
	}
	if _, err := NewPilot(&rl.Config{}, 0); !errors.Is(err, rl.ErrConfig) {
		t.Error(err)
	}
	for _, rate := range []olaf.Rate{0, 1} { // the first cannot be offered, and the second takes too long
		c := rl.Defaults()
		c.Workers, c.Network.Rate = 65536, rate
		if _, err := NewPilot(&c, 0); !errors.Is(err, rl.ErrConfig) {
			t.Errorf("%v: %v", rate, err)
		}
	}
	if _, err := NewServers(&rl.Config{}); !errors.Is(err, rl.ErrConfig) {
		t.Error(err)
	}
}

// TestStatedDurationMatchesSchedule compares the stated duration of a training run with the last worker's schedule.
func TestStatedDurationMatchesSchedule(t *testing.T) {
	c := small()
	c.Iterations = 30
	p, err := NewPilot(&c, c.Workers-1)
	if err != nil {
		t.Fatal(err)
	}
	var last time.Duration
	for i := range uint32(c.Iterations) {
		last = p.Compute(t.Context(), i).Due
	}
	if said := TrainingTime(&c); last < said*3/5 || last > said*5/3 {
		t.Errorf("%v were said, it took %v", said, last)
	}
}

func TestCheckRates(t *testing.T) {
	c := small()
	if err := CheckRates(&c, 10_000); err != nil {
		t.Error(err)
	}
	c.Network.Rate = 400 * olaf.Mbps
	if err := CheckRates(&c, 10_000); !errors.Is(err, fpga.ErrRefused) ||
		!strings.Contains(err.Error(), "try --rate 1.8Mbps --out-rate 600kbps, ") {
		t.Error(err)
	}
	c.Network.Rate, c.Network.OutRate = TimelyRate, TimelyOutRate
	if err := CheckRates(&c, 10_000); err != nil {
		t.Errorf("what is suggested is refused: %v", err)
	}
}

// TestControlReadsTheBit checks that a worker set to the full bit withholds by the bit alone, whatever Qn is.
func TestControlReadsTheBit(t *testing.T) {
	cfg := tc.Config{Threshold: 10 * olaf.Millisecond, Ack: tc.FullAck}
	law, err := tc.NewLaw(tc.FullLaw, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		full      bool
		occupancy uint32
		want      bool // it withholds some updates
	}{{true, 0, true}, {false, 10, false}} {
		k := tc.NewGate(law, cfg.Ack, 1, 2)
		k.RecordStatus(0, olaf.QueueStatus{ActiveClusters: 40, Slots: 10, Occupancy: c.occupancy, Full: c.full})
		withheld := false
		for range 100 {
			withheld = withheld || !k.Sends(0)
		}
		if withheld != c.want {
			t.Errorf("full bit %v, occupancy %d: withholds %v, want %v", c.full, c.occupancy, withheld, c.want)
		}
	}
}

// TestControl checks that a worker withholds updates after a status that reports congestion, and sends again after some
// time without an ACK.
func TestControl(t *testing.T) {
	law, err := tc.NewLaw(tc.PaperLaw, tc.Config{Threshold: 10 * olaf.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	k := tc.NewGate(law, tc.NumberAck, 1, 2)
	sends := func(now olaf.Time) (n int) {
		for range 1000 {
			if k.Sends(now) {
				n++
			}
		}
		return n
	}
	if sends(0) != 1000 {
		t.Error("a worker that heard nothing holds back")
	}
	k.RecordStatus(0, olaf.QueueStatus{ActiveClusters: 40, Slots: 10})
	if n := sends(0); n < 180 || n > 320 {
		t.Errorf("%d of 1000, want a quarter", n)
	}
	if sends(olaf.Time(20*olaf.Millisecond)) != 1000 {
		t.Error("twice the threshold after the last ACK it still holds back")
	}
}

// TestDivergedTrainingsOnRealHostsAreReported checks that server and workers report weights far from their start, and
// weights that are not finite, as diverged, but not sound weights.
func TestDivergedTrainingsOnRealHostsAreReported(t *testing.T) {
	c := small()
	s, err := NewServers(&c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLearner(&c, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPilot(&c, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Compute(t.Context(), 0)
	if s.Divergence()+l.Report().Diverged+p.Divergence() != "" {
		t.Errorf("sound trainings are reported as diverged: %q, %q, %q", s.Divergence(), l.Report().Diverged, p.Divergence())
	}
	layout := GradientLayout()
	for part := range layout.Packets() {
		values := make([]uint32, layout.Lanes(part))
		for i := range values {
			values[i] = math.MaxInt32
		}
		s.Apply(&endpoint.Aggregate{Job: 1, First: part * layout.PerPacket, Vectors: 1, Values: slices.Clone(values)})
		p.Apply(&endpoint.Aggregate{First: part * layout.PerPacket, Values: bitsOf(math.NaN(), len(values))})
	}
	l.Apply(&endpoint.Aggregate{Values: slices.Repeat([]uint32{math.MaxInt32}, rl.Params)})
	p.Compute(t.Context(), 1)
	for name, c := range map[string]struct{ got, want string }{
		"a server whose weights grew":       {s.Divergence(), "cluster 1: the norm of its weights"},
		"a worker whose weights grew":       {l.Report().Diverged, "cluster 0: the norm of its weights"},
		"a worker that received no numbers": {p.Divergence(), "worker 0: weights are no numbers from iteration 2 on"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s reports %q, want %q", name, c.got, c.want)
		}
	}
}

// bitsOf returns n lanes with the bits of a value.
func bitsOf(v float64, n int) []uint32 {
	return slices.Repeat([]uint32{math.Float32bits(float32(v))}, n)
}

// TestDivergedTrainingsAreInvalid checks that runs are invalid if their server or a worker reports that the training
// diverged.
func TestDivergedTrainingsAreInvalid(t *testing.T) {
	for name, o := range map[string]*Outcome{
		"server": {Server: ServerReport{Diverged: "weights are gone"}},
		"worker": {Workers: []WorkerReport{{}, {Diverged: "weights are gone"}}},
	} {
		r := &run{config: &rl.Config{}, out: o}
		if err := r.judge(); !errors.Is(err, ErrInvalid) || !slices.Contains(o.Invalid, "weights are gone") {
			t.Errorf("%s: a diverged training is judged %v, with the reasons %q", name, err, o.Invalid)
		}
	}
}
