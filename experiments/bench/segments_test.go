package bench

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/trace"
)

// segmentedSpec returns a small bench of vectors of 100 values, two frames of 48 and one of 4, with a queue for comparison.
func segmentedSpec(t *testing.T) Spec {
	s := smallSpecOf(t)
	s.Queue, s.Versus, s.H = "iswitch", "fifo", new(3)
	s.Workload.Values = 100
	return s
}

// seen stores the arrivals of the first run of every configuration.
type seen map[int][]olaf.Observation

func (s seen) Event(e Event) error {
	if o, ok := e.(Observed); ok && o.Run.Index == 0 {
		for i := range o.Observations {
			kept := o.Observations[i]
			kept.Contributors = slices.Clone(kept.Contributors)
			s[o.Run.Config] = append(s[o.Run.Config], kept)
		}
	}
	return nil
}

// TestVectorsOfSeveralFrames checks that the segments of a vector are added separately: H of the same segment and
// cluster leave as one frame of their length, with each contribution once, to the server or to the workers.
func TestVectorsOfSeveralFrames(t *testing.T) {
	for _, topology := range []Topology{"", ToWorkers} {
		s := segmentedSpec(t)
		if s.Topology = topology; topology == ToWorkers {
			s.Versus = ""
		}
		sums := seen{}
		m := mustBench(t, s, Options{Cards: 1, Stream: NewStream(sums)})
		if err := m.Err(); err != nil {
			t.Fatal(err)
		}
		run := &m.Outcome.Runs[0][0]
		w := &s.Workload
		if sent := run.Counters.Of("sent"); sent != int64(w.Frames()) || sent != 3*int64(w.Total()) ||
			run.Counters.Of("vectors_in") != sent {
			t.Errorf("%s: %v", topology, run.Counters)
		}
		once := map[olaf.Contributor]bool{}
		for i := range sums[0] {
			o := &sums[0][i]
			segment := o.Update.Seq % 3
			if want := []uint16{48, 48, 4}[segment]; o.Update.Lanes != want || len(o.Contributors) != 3 {
				t.Fatalf("%s: sum %d of segment %d has %d lanes, %d inside", topology, i, segment, o.Update.Lanes, len(o.Contributors))
			}
			for _, k := range o.Contributors {
				if k.Seq%3 != segment || w.Cluster(int(k.Worker)) != o.Update.Cluster || once[k] {
					t.Fatalf("%s: sum %d of segment %d and cluster %d has %+v inside", topology, i, segment, o.Update.Cluster, k)
				}
				once[k] = true
			}
		}
		if n := int64(len(once)); n == 0 || n != run.Counters.Of("count_delivered") {
			t.Errorf("%s: %d contributions arrived, %v", topology, n, run.Counters)
		}
	}
}

// TestRecordingOfSegments checks that a captured sum contains its segment in its system's own frame.
func TestRecordingOfSegments(t *testing.T) {
	s := segmentedSpec(t)
	s.Versus, s.Runs = "", 1
	var frames [3]int
	format := s.Frame()
	eachFrame(t, recordBench(t, s), func(data []byte, _ int, _ []string) {
		v, err := format.Decode(data)
		must(t, err)
		var p program.Packet
		v.Packet(&p)
		if p.Seg > 2 || p.Lanes != []uint16{48, 48, 4}[p.Seg] {
			t.Fatalf("segment %d of %d lanes", p.Seg, p.Lanes)
		}
		frames[p.Seg]++
	})
	if slices.Min(frames[:]) == 0 {
		t.Errorf("%v frames by segment", frames)
	}
}

func TestSegmentsThatAreRefused(t *testing.T) {
	recorded := &trace.Traffic{Name: trace.Builtin + "lander8"}
	for name, c := range map[string]struct {
		change func(*Spec)
		say    string
	}{
		"a queue that merges": {func(s *Spec) { s.Queue, s.H = "olaf", nil },
			"the queue of olaf takes a frame for a whole update"},
		"one beside":               {func(s *Spec) { s.Versus = "fifo,olaf" }, "100 values in frames of 256B are 3 frames"},
		"a trace":                  {func(s *Spec) { s.Trace = recorded; recorded.Updates = 1 }, "an update of a trace is one frame"},
		"less than a frame":        {func(s *Spec) { s.Workload.Values = 40 }, "make frames of 224B"},
		"hosts that wait":          {func(s *Spec) { *s = loopSpec("switchml"); s.Workload.Values = 100 }, "loop.values"},
		"more than there can be":   {func(s *Spec) { s.Workload.Values = 48 * 2428 }, "65536, one a flow of the generator"},
		"beside hosts that do not": {func(s *Spec) { s.Versus = "switchml" }, "one bench has one kind"},
	} {
		s := segmentedSpec(t)
		c.change(&s)
		if _, err := NewPlan(s); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want %q", name, err, c.say)
		}
	}
	s := segmentedSpec(t)
	s.Workload.Values = 48 * 456 // in 9 clusters
	if _, err := MeasureSpec(t.Context(), s, Options{}); !errors.Is(err, fpga.ErrRefused) ||
		!strings.Contains(err.Error(), "456 segments each; there are 9 clusters, and twin: was built with 4096") {
		t.Errorf("%v", err)
	}
	if _, err := MeasureSpec(t.Context(), segmentedSpec(t), Options{Device: "rtl:"}); err == nil {
		t.Error("a device without programs takes them")
	}
}
