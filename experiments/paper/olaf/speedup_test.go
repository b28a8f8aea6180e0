package olaf

import (
	"errors"
	"io"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/engine"
	"github.com/olafctl/olaf/pktgen/trace"
)

// recording returns a synthetic trace of eight workers, so that these tests do not depend on a training run.
func recording(t testing.TB) *trace.Recording {
	t.Helper()
	r, err := trace.LoadRecording(&regular{header: trace.Header{Clock: trace.Virtual, Workers: 8, Clusters: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// regular is a source of 8 × 100 updates whose intervals vary slightly.
type regular struct {
	header trace.Header
	n      int
}

func (r *regular) Header() *trace.Header { return &r.header }

func (r *regular) Next(u *trace.Update) error {
	if r.n == 800 {
		return io.EOF
	}
	*u = trace.Update{GenNS: int64(r.n)*1000 + int64(r.n*7919%600), Worker: olaf.WorkerID(r.n % 8), Seq: uint32(r.n / 8)}
	r.n++
	return nil
}

func scaler(t testing.TB, set func(*trace.Scaling)) *trace.Scaler {
	t.Helper()
	s := trace.DefaultScaling()
	s.Workers, s.Clusters, s.Updates = 30, 10, 0
	if set != nil {
		set(&s)
	}
	sc, err := trace.NewScaler(recording(t), s)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func newFig7Queue(queue string, rate olaf.Rate) fig7Queue {
	return fig7Queue{Queue: queue, Slots: 8, OutRate: rate, Profile: engine.Ideal, Frame: 256}
}

// TestNothingIsLostOnAWideLink checks that without a bottleneck every queue delivers all updates as sent.
func TestNothingIsLostOnAWideLink(t *testing.T) {
	for _, queue := range engine.DisciplineNames() {
		r, err := replayOpen(scaler(t, nil), newFig7Queue(queue, 128*olaf.Gbps), 50)
		if err != nil {
			t.Fatal(err)
		}
		if r.LostFraction() > 0.02 {
			t.Errorf("%s lost %.3f", queue, r.LostFraction())
		}
		// 30 workers × 50 updates × 2048 bit at 60 Gbps take 51.2 µs; the slowest worker decides.
		if us := r.T.Seconds() * 1e6; us < 50 || us > 80 {
			t.Errorf("%s needed %.1f µs", queue, us)
		}
	}
}

// TestFIFOIsBoundByTheLink checks that T(N) under FIFO follows from OutRate, which all workers share.
func TestFIFOIsBoundByTheLink(t *testing.T) {
	r, err := replayOpen(scaler(t, nil), newFig7Queue("fifo", 10*olaf.Gbps), 50)
	if err != nil {
		t.Fatal(err)
	}
	least := (10 * olaf.Gbps).TimeToSend(30 * 50 * 256)
	if r.T < least || r.T > 2*least {
		t.Errorf("T = %v, the link alone needs %v", r.T, least)
	}
}

func TestOlafIsFasterTheNarrowerTheLink(t *testing.T) {
	last := 0.0
	for _, rate := range []olaf.Rate{40 * olaf.Gbps, 20 * olaf.Gbps, 5 * olaf.Gbps} {
		fifo, err := replayOpen(scaler(t, nil), newFig7Queue("fifo", rate), 50)
		if err != nil {
			t.Fatal(err)
		}
		merged, err := replayOpen(scaler(t, nil), newFig7Queue("olaf", rate), 50)
		if err != nil {
			t.Fatal(err)
		}
		ratio := fifo.T.Seconds() / merged.T.Seconds()
		t.Logf("%v: %.2f", rate, ratio)
		if ratio <= last || ratio < 1 {
			t.Errorf("speed-up %.2f at %v after %.2f", ratio, rate, last)
		}
		last = ratio
	}
}

func TestClosedLoopLosesNothingForGood(t *testing.T) {
	loop := replayLoop{AckDelay: olaf.Microsecond, Timeout: 5 * olaf.Microsecond, Limit: 1e6}
	for _, queue := range engine.DisciplineNames() {
		r, err := replayClosed(scaler(t, nil), newFig7Queue(queue, 20*olaf.Gbps), loop, 50)
		if err != nil {
			t.Fatal(err)
		}
		if r.Sent != r.Stats.In() || r.Resent >= r.Sent {
			t.Errorf("%s: %d sent, %d again, %d arrived", queue, r.Sent, r.Resent, r.Stats.In())
		}
		if dropped := r.Stats.Class[engine.DroppedFull]; r.Resent < dropped/2 {
			t.Errorf("%s: %d dropped, only %d sent again", queue, dropped, r.Resent)
		}
	}
}

func TestSameInputsSameResult(t *testing.T) {
	for range 2 {
		a, err := replayOpen(scaler(t, nil), newFig7Queue("olaf", 10*olaf.Gbps), 20)
		if err != nil {
			t.Fatal(err)
		}
		b, err := replayOpen(scaler(t, nil), newFig7Queue("olaf", 10*olaf.Gbps), 20)
		if err != nil {
			t.Fatal(err)
		}
		if *a != *b {
			t.Errorf("%+v, then %+v", a, b)
		}
	}
}

func TestTooShortTraceIsReported(t *testing.T) {
	sc := scaler(t, func(s *trace.Scaling) { s.Updates = 10 })
	r, err := replayOpen(sc, newFig7Queue("fifo", 10*olaf.Gbps), 50)
	if !errors.Is(err, errUnfinished) || r == nil || r.Complete {
		t.Errorf("result %+v, error %v", r, err)
	}
	if _, err := replayOpen(scaler(t, nil), newFig7Queue("fifo", 0), 50); !errors.Is(err, engine.ErrConfig) {
		t.Errorf("no output rate: %v", err)
	}
}

// BenchmarkReplay measures one update of 300 scaled workers through the queue, scaling included.
func BenchmarkReplay(b *testing.B) {
	for _, queue := range engine.DisciplineNames() {
		b.Run(queue, func(b *testing.B) {
			sc := scaler(b, func(s *trace.Scaling) { s.Workers, s.Clusters = 300, 100 })
			c := newReplayCounter(300, 1<<31)
			bn := newFig7Queue(queue, 20*olaf.Gbps)
			q, err := bn.newPort(100, c)
			if err != nil {
				b.Fatal(err)
			}
			var u trace.Update
			frame := olaf.Update{Lanes: 48, Count: 1}
			b.ReportAllocs()
			for b.Loop() {
				sc.Next(&u)
				frame.GenNS, frame.Seq, frame.Cluster, frame.Worker = uint64(u.GenNS), u.Seq, u.Cluster, u.Worker
				q.Offer(olaf.Time(u.GenNS*int64(olaf.Nanosecond)), &frame, nil)
			}
		})
	}
}
