package tc

import (
	"math"
	"testing"

	"github.com/olafctl/olaf"
	"pgregory.net/rapid"
)

func drawConfig(t *rapid.T) Config {
	return Config{
		Threshold: olaf.Duration(rapid.Int64Range(1, int64(10*olaf.Second)).Draw(t, "threshold")),
		Slope:     rapid.SampledFrom([]Slope{"", Urgency, Fairness}).Draw(t, "slope"),
	}
}

func drawStatus(t *rapid.T, name string) Status {
	return Status{
		Active: rapid.Uint32Range(0, 70_000).Draw(t, name+".active"),
		Slots:  rapid.Uint32Range(0, 70_000).Draw(t, name+".slots"),
	}
}

// TestSendProbabilityProperties checks that Ps is a probability, grows with the time since the last ACK, and falls with
// the number of clusters.
func TestSendProbabilityProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg, s := drawConfig(t), drawStatus(t, "s")
		d1 := olaf.Duration(rapid.Int64Range(0, int64(olaf.Minute)).Draw(t, "age"))
		d2 := d1 + olaf.Duration(rapid.Int64Range(0, int64(olaf.Minute)).Draw(t, "later"))
		p1, p2 := cfg.SendProbability(s, d1), cfg.SendProbability(s, d2)
		if !(p1 >= 0 && p1 <= 1) || !(p2 >= 0 && p2 <= 1) {
			t.Fatalf("Ps outside [0,1]: %v, %v", p1, p2)
		}
		if p2 < p1 {
			t.Fatalf("Ps fell from %v to %v as the ACK aged", p1, p2)
		}
		if !s.Congested() && p1 != 1 {
			t.Fatalf("Ps = %v without congestion", p1)
		}
		more := s
		more.Active++
		if cfg.SendProbability(more, d1) > p1 {
			t.Fatal("Ps grew with the number of clusters")
		}
	})
}

// TestLaws checks each law's probability by hand: ten clusters for eight slots, the last ACK 20 ms old, the one before it
// 40 ms old, and a threshold of 50 ms.
func TestLaws(t *testing.T) {
	const ms = olaf.Millisecond
	status := func(occupancy uint32) Status { return Status{Active: 10, Slots: 8, Occupancy: occupancy} }
	for _, c := range []struct {
		law          LawName
		before, last uint32
		want         float64
	}{
		{"", 8, 8, 0.8}, {PaperLaw, 8, 3, 0.8}, {NoLaw, 8, 8, 1},
		{FullLaw, 3, 8, 0.8}, {FullLaw, 8, 7, 1},
		{ExtrapolateLaw, 8, 8, 1},       // a full queue that does not grow
		{ExtrapolateLaw, 4, 7, 0.8},     // grows to 7 + 3
		{ExtrapolateLaw, 7, 4, 1},       // falls
		{ExtrapolateLaw, 0, 8, 8. / 16}, // grows to 8 + 8
	} {
		law, err := NewLaw(c.law, Config{Threshold: 50 * ms})
		if err != nil {
			t.Fatal(err)
		}
		var w Controller
		if w.SendProbability(law, 0) != 1 {
			t.Errorf("%s: a worker without an ACK does not send freely", c.law)
		}
		w.OnAck(olaf.Time(10*ms), status(c.before))
		w.OnAck(olaf.Time(30*ms), status(c.last))
		w.OnAck(olaf.Time(20*ms), status(0)) // late: ignored
		if p := w.SendProbability(law, olaf.Time(50*ms)); math.Abs(p-c.want) > 1e-12 {
			t.Errorf("%q, occupancy %d then %d: Ps = %v, want %v", c.law, c.before, c.last, p, c.want)
		}
	}
}

// TestAckContent checks laws that receive one bit in place of Qn: a queue that is not full looks empty to them.
func TestAckContent(t *testing.T) {
	const ms = olaf.Millisecond
	status := func(occupancy uint32) Status { return Status{Active: 10, Slots: 8, Occupancy: occupancy} }
	for _, c := range []struct {
		law          LawName
		before, last uint32
		want         float64
	}{
		{PaperLaw, 8, 3, 0.8},           // uses N and Qmax alone
		{FullLaw, 3, 8, 0.8},            // the bit is all that it needs
		{FullLaw, 8, 7, 1},              //
		{ExtrapolateLaw, 4, 7, 1},       // both ACKs show a queue that is not full
		{ExtrapolateLaw, 7, 8, 8. / 16}, // from 0 to 8 as the bit shows it, and on to 16
		{ExtrapolateLaw, 8, 8, 1},       // stays full
		{NoLaw, 8, 8, 1},                //
	} {
		law, err := NewLaw(c.law, Config{Threshold: 50 * ms, Ack: FullAck})
		if err != nil {
			t.Fatal(err)
		}
		var w Controller
		w.OnAck(olaf.Time(10*ms), status(c.before))
		w.OnAck(olaf.Time(30*ms), status(c.last))
		if p := w.SendProbability(law, olaf.Time(50*ms)); math.Abs(p-c.want) > 1e-12 {
			t.Errorf("%q with a full bit, occupancy %d then %d: Ps = %v, want %v", c.law, c.before, c.last, p, c.want)
		}
	}
	if _, err := NewLaw(PaperLaw, Config{Threshold: 50 * ms, Ack: "colours"}); err == nil {
		t.Error("an unknown content of ACKs is accepted")
	}
}

// TestExtrapolationNeedsOneQueue checks that ACKs from queues of different sizes are not joined by a line.
func TestExtrapolationNeedsOneQueue(t *testing.T) {
	const ms = olaf.Millisecond
	law, _ := NewLaw(ExtrapolateLaw, Config{Threshold: 50 * ms})
	var w Controller
	w.OnAck(0, Status{Slots: 5, Occupancy: 0})
	w.OnAck(olaf.Time(10*ms), Status{Slots: 8, Occupancy: 8})
	if p := w.SendProbability(law, olaf.Time(30*ms)); p != 1 {
		t.Errorf("Ps = %v after ACKs from two queues, want 1", p)
	}
}

func TestLawsWithoutParametersAreRefused(t *testing.T) {
	for _, law := range LawNames() {
		if _, err := NewLaw(law, Config{}); (err == nil) != (law == NoLaw) {
			t.Errorf("%s without a threshold: error %v", law, err)
		}
	}
	if _, err := NewLaw("psychic", Config{Threshold: 1}); err == nil {
		t.Error("an unknown law is accepted")
	}
}

func TestSendProbabilityValues(t *testing.T) {
	const ms = olaf.Millisecond
	ten := Status{Active: 10, Slots: 8}
	hundred := Status{Active: 100, Slots: 8}
	for _, c := range []struct {
		name string
		cfg  Config
		s    Status
		age  olaf.Duration
		want float64
	}{
		{"fresh", Config{Threshold: 50 * ms}, ten, 50 * ms, 0.8},
		{"urgent, half a threshold late", Config{Threshold: 50 * ms}, hundred, 75 * ms, 0.58},
		{"urgent, twice the threshold", Config{Threshold: 50 * ms}, hundred, 100 * ms, 1},
		{"fair, 1 s late", Config{Threshold: 400 * ms, Slope: Fairness}, hundred, 1400 * ms, 0.48},
		{"as many slots as clusters", Config{Threshold: 50 * ms}, Status{Active: 8, Slots: 8}, 0, 1},
		{"nothing known", Config{Threshold: 50 * ms}, Status{}, 0, 1},
	} {
		if got := c.cfg.SendProbability(c.s, c.age); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: Ps = %v, want %v", c.name, got, c.want)
		}
	}
}

// TestPassKeepsTheWorstHop checks that hops in any order leave the status of the most congested one.
func TestPassKeepsTheWorstHop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hops := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Status { return drawStatus(t, "hop") }), 1, 6).Draw(t, "hops")
		var ack Status
		for _, h := range hops {
			ack = ack.PassHop(h)
		}
		for _, h := range hops {
			if h.MoreCongestedThan(ack) {
				t.Fatalf("%+v is more congested than %+v", h, ack)
			}
		}
	})
}

func TestController(t *testing.T) {
	law := Config{Threshold: 50 * olaf.Millisecond}.linear()
	var c Controller
	if !c.Decide(law, 0, 0.999) {
		t.Error("a worker that has heard nothing must send")
	}
	at := olaf.Time(olaf.Second)
	c.OnAck(at, Status{Active: 10, Slots: 8})
	if c.Decide(law, at, 0.8) || !c.Decide(law, at, 0.79) {
		t.Error("Ps is not 0.8 after the ACK")
	}
	c.OnAck(at-1, Status{Active: 1, Slots: 8})
	if s, age, ok := c.Last(at.Add(3)); !ok || age != 3 || s.Active != 10 {
		t.Errorf("an older ACK replaced the last one: %+v %v %v", s, age, ok)
	}
}

func TestSlopeText(t *testing.T) {
	var s Slope
	if err := s.UnmarshalText([]byte("threshold")); err != nil || s != Fairness {
		t.Errorf("%q, %v", s, err)
	}
	if err := s.UnmarshalText([]byte("2")); err == nil {
		t.Error("an unknown slope must be refused")
	}
}

func BenchmarkDecide(b *testing.B) {
	var law Law = Config{Threshold: 50 * olaf.Millisecond}.linear()
	var c Controller
	c.OnAck(0, Status{Active: 100, Slots: 8})
	b.ReportAllocs()
	sent := 0
	for b.Loop() {
		if c.Decide(law, olaf.Time(70*olaf.Millisecond), 0.3) {
			sent++
		}
	}
}
