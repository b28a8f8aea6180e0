package aomcheck

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/trace"
)

// writeOut returns the problem with its periodic arrivals written out.
func writeOut(p Problem) Problem {
	p.Clusters = append([]Cluster(nil), p.Clusters...)
	for i := range p.Clusters {
		c := &p.Clusters[i]
		for k := range p.Horizon {
			c.Arrivals = append(c.Arrivals, c.PhaseLow+olaf.Duration(k)*c.Interval)
		}
		c.Interval, c.PhaseLow, c.PhaseHigh, c.EveryPhase = 0, 0, 0, false
	}
	return p
}

// TestArrivalListEqualsPeriod checks under every model that a progression written out as arrivals has the same verdict
// and ages as the same progression described by a period.
func TestArrivalListEqualsPeriod(t *testing.T) {
	const ms = olaf.Millisecond
	for _, model := range []Model{Engine, Paper, PaperService} {
		for _, bound := range []olaf.Duration{30 * ms, 40 * ms} {
			p := Problem{Model: model, Service: 5 * ms, Slots: 2, Horizon: 4, Objective: Objective{Kind: MaxPeak, Bound: bound},
				Clusters: []Cluster{{Interval: 30 * ms}, {Interval: 30 * ms, PhaseLow: 8 * ms, PhaseHigh: 8 * ms},
					{Interval: 30 * ms, PhaseLow: 16 * ms, PhaseHigh: 16 * ms}}}
			described, err := Verify(t.Context(), p, Options{})
			if err != nil {
				t.Fatal(err)
			}
			written, err := Verify(t.Context(), writeOut(p), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if described.Answer != written.Answer {
				t.Errorf("%s, bound %v: %v as described, %v as given", model, bound, described.Answer, written.Answer)
			}
		}
	}
}

func TestBadArrivalsAreRefused(t *testing.T) {
	const ms = olaf.Millisecond
	long := make([]olaf.Duration, MaxUpdates+1)
	for k := range long {
		long[k] = olaf.Duration(k) * ms
	}
	for want, arrivals := range map[string][]olaf.Duration{
		"update 1 at 5ms; arrivals are 0 … 1h, each later than the one before": {5 * ms, 5 * ms},
		"update 0 at -1ms":                  {-ms, 0},
		"updates: 1; a peak needs":          {0},
		"4001 updates in all; at most 4000": long,
	} {
		p := Problem{Service: ms, Horizon: 5000, Objective: Objective{Kind: MaxPeak, Bound: ms}, Clusters: []Cluster{{Arrivals: arrivals}}}.WithDefaults()
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// tracedUpdates is a trace in memory.
type tracedUpdates struct {
	clusters int
	updates  []trace.Update
	read     int
}

func (r *tracedUpdates) Header() *trace.Header { return &trace.Header{Clusters: r.clusters} }

func (r *tracedUpdates) Next(u *trace.Update) error {
	if r.read == len(r.updates) {
		return io.EOF
	}
	*u = r.updates[r.read]
	r.read++
	return nil
}

// TestFirstArrivalsOfATrace checks that only the first updates of each cluster are read, relative to the first update
// of all clusters.
func TestFirstArrivalsOfATrace(t *testing.T) {
	at := func(ns int64, cluster olaf.ClusterID) trace.Update { return trace.Update{GenNS: ns, Cluster: cluster} }
	updates := []trace.Update{at(1000, 1), at(1500, 1), at(1700, 1), at(2000, 0), at(4000, 0), at(9000, 0)}
	source := &tracedUpdates{clusters: 2, updates: updates}
	got, err := ReadArrivals(source, 2)
	if err != nil {
		t.Fatal(err)
	}
	const ns = olaf.Nanosecond
	want := []Cluster{{Name: "c0", Arrivals: []olaf.Duration{1000 * ns, 3000 * ns}}, {Name: "c1", Arrivals: []olaf.Duration{0, 500 * ns}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arrivals (-want +got):\n%s", diff)
	}
	if source.read != 5 {
		t.Errorf("%d updates were read, want 5: the last is of no use", source.read)
	}
	if _, err := ReadArrivals(&tracedUpdates{clusters: 3, updates: updates}, 2); err == nil || !strings.Contains(err.Error(), "cluster 2 has 0 updates") {
		t.Errorf("a cluster without updates: %v", err)
	}
}
