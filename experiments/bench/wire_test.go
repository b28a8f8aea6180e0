package bench

import (
	"context"
	"testing"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/pktgen"
)

// whoseFlows reads the flow table at the end of a run, by configuration.
type whoseFlows struct {
	generator *pktgen.Generator
	by        map[int][]regmap.Flow
}

// Event implements Sink.
func (w *whoseFlows) Event(e Event) (err error) {
	if done, is := e.(RunDone); is {
		w.by[done.Run.Config], err = w.generator.ReadFlows()
	}
	return err
}

// flowsOf returns the flow tables of a plan's configurations, after their last runs.
func flowsOf(t *testing.T, s Spec) map[int][]regmap.Flow {
	t.Helper()
	plan, err := NewPlan(s)
	must(t, err)
	bed, err := testbed.OpenTestbed(t.Context(), "", s.Opening(testbed.Access{}))
	must(t, err)
	defer bed.Close()
	seen := &whoseFlows{pktgen.NewGenerator(bed.Cards[0].Device), map[int][]regmap.Flow{}}
	_, err = RunPlan(context.Background(), plan, bed, NewStream(seen))
	must(t, err)
	return seen.by
}

// TestFlowsSayWhoseFramesTheyAre checks that the flows of every configuration have its frame format, whatever ran
// before: OLAF's if no program adds them.
func TestFlowsSayWhoseFramesTheyAre(t *testing.T) {
	beside := smallSpecOf(t)
	beside.Queue, beside.Versus, beside.H, beside.Runs = "iswitch", "olaf,fifo", new(3), 2
	for name, s := range map[string]Spec{"beside others": beside, "in segments": segmentedSpec(t), "OLAF": smallSpecOf(t)} {
		t.Run(name, func(t *testing.T) {
			plan, err := NewPlan(s)
			must(t, err)
			flows := flowsOf(t, s)
			if len(flows) != len(plan.Configs) {
				t.Fatalf("%d of %d configurations", len(flows), len(plan.Configs))
			}
			for config, of := range flows {
				var want pktgen.Wire
				if c := &plan.Configs[config]; c.system.Adds() {
					want = pktgen.Wire{Format: uint8(c.system.Program.Code), ToS: c.system.Program.ToS}
				}
				if len(of) != s.Workload.Flows() {
					t.Errorf("%s: %d flows, want %d", plan.Configs[config].Queue, len(of), s.Workload.Flows())
				}
				for i := range of {
					if f := &of[i]; f.Format != want.Format || f.ToS != want.ToS || f.Seg != uint64(i%s.Workload.Segments()) {
						t.Fatalf("%s: flow %d is %+v, want format %d, type of service %#x", plan.Configs[config].Queue, i, f,
							want.Format, want.ToS)
					}
				}
			}
		})
	}
}

// TestFlowsSayWhoseHostsWait checks that closed-loop hosts have one entry per worker, and none if the device only
// forwards their packets.
func TestFlowsSayWhoseHostsWait(t *testing.T) {
	for _, s := range loopSystems(t) {
		plan, err := NewPlan(s)
		must(t, err)
		d := plan.Configs[0].system.SwitchProgram()
		of := flowsOf(t, s)[0]
		if d.Code == 0 {
			if len(of) != 0 {
				t.Errorf("%s: %d flows", s.Queue, len(of))
			}
			continue
		}
		if len(of) != s.Workload.Workers {
			t.Errorf("%s: %d flows of %d workers", s.Queue, len(of), s.Workload.Workers)
		}
		for i := range of {
			f := &of[i]
			if uint32(f.Format) != d.Code || f.ToS != d.ToS || int(f.Worker) != i || int(f.Cluster) != i/s.workersPerJob() ||
				f.Length == 0 {
				t.Errorf("%s: flow %d is %+v", s.Queue, i, f)
			}
		}
	}
}

// TestCapturesHaveTheFlowsToS checks that captured frames have the flows' type of service.
func TestCapturesHaveTheFlowsToS(t *testing.T) {
	const offToS = 15
	s := segmentedSpec(t)
	s.Versus, s.Runs = "", 1
	want := flowsOf(t, s)[0][0].ToS
	n := 0
	eachFrame(t, recordBench(t, s), func(data []byte, _ int, _ []string) {
		if data[offToS] != want || want == 0 {
			t.Fatalf("frame %d has type of service %#x, its flow %#x", n, data[offToS], want)
		}
		n++
	})
	if n == 0 {
		t.Error("no frame was captured")
	}
}
