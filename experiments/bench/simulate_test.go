package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/text"
)

// waitingNetworks returns two short closed-loop networks, in two modes.
func waitingNetworks(t testing.TB, runs int) *Simulation {
	t.Helper()
	s := twoNetworks(t, runs)
	for i, w := range []netsim.Waiting{{System: "switchml"}, {System: "iswitch", Mode: "async", H: 5}} {
		topology := s.Networks[i].Topology
		topology.Queue, topology.Control.Enabled, topology.Waiting = "fifo", false, &w
		s.Networks[i].Name = topology.Title()
	}
	return s
}

// twoNetworks returns two short networks, one with transmission control.
func twoNetworks(t testing.TB, runs int) *Simulation {
	t.Helper()
	s := &Simulation{Experiment: "simulate"}
	for _, control := range []bool{false, true} {
		topology, err := netsim.Preset(system.All(), "multihop", netsim.Scale{})
		if err != nil {
			t.Fatal(err)
		}
		topology.Warmup, topology.Duration, topology.Control.Enabled = olaf.Second, 3*olaf.Second, control
		s.Networks = append(s.Networks, Network{topology.Title(), topology})
	}
	for i := range runs {
		s.Seeds = append(s.Seeds, uint64(i)+1)
	}
	return s
}

// simulatedReport is the smallest report on a Simulation.
type simulatedReport struct{ of *Simulated }

func (r simulatedReport) Document() any { return map[string]any{"runs": r.of.Runs} }
func (r simulatedReport) WriteText(w io.Writer, _ text.View) error {
	_, err := fmt.Fprintln(w, r.of.DescribeValidity())
	return err
}
func (r simulatedReport) Table() ([]string, [][]string) { return []string{"runs"}, nil }
func (r simulatedReport) Paper() []results.PaperRow     { return nil }
func (r simulatedReport) Err() error                    { return r.of.Err() }
func (r simulatedReport) Simulation() *Simulated        { return r.of }

// keepSimulation runs s into a new store.
func keepSimulation(t *testing.T, s *Simulation, prepare func(*Keeper)) (*Simulated, *store.Folder) {
	t.Helper()
	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	k := NewKeeper(st, time.Unix(1_700_000_000, 0))
	prepare(k)
	out, err := SimulateAll(t.Context(), s, SimulateOptions{Stream: NewStream(k)})
	if err != nil {
		t.Fatal(err)
	}
	id, err := k.FinishSimulation(simulatedReport{out}, results.Provenance{Tool: "test"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := st.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	return out, f
}

func asIs(*Keeper) {}

// TestKeptSimulationIsRecomputed checks that measuring the stored frames with the bench's Collector and repeating the
// simulation from its plan give the same bits every time.
func TestKeptSimulationIsRecomputed(t *testing.T) {
	out, f := keepSimulation(t, twoNetworks(t, 3), asIs)
	proof, err := archive.Verify(f, system.All().FindDeclaration)
	if err != nil {
		t.Fatal(err)
	}
	frames := out.Runs[0][0].Counters.Of("delivered") + out.Runs[1][0].Counters.Of("delivered")
	if !proof.Raw || proof.Runs != 2 || proof.Rows != 2 || proof.Observations != frames {
		t.Errorf("proof %+v of %d frames", proof, frames)
	}
	if n, err := RepeatStored(t.Context(), system.All(), f, NewStream()); err != nil || n != 6 {
		t.Errorf("%d runs repeated: %v", n, err)
	}
	r, err := archive.Load(f, system.All().FindDeclaration)
	if err != nil || len(r.Runs) != 6 || len(r.Samples) == 0 {
		t.Fatalf("%d runs, %d samples: %v", len(r.Runs), len(r.Samples), err)
	}
	for i, run := range append(out.Runs[0], out.Runs[1]...) {
		if why := r.Runs[i].Differs(&run); why != "" {
			t.Error(why)
		}
	}
	withheld := results.Float(0)
	for i := range out.Runs[1] {
		withheld += results.Float(out.Runs[1][i].Counters.Of("tc_withheld")) / 3
	}
	if rows := r.Bench.Rows; withheld == 0 || math.Abs(float64(rows[1].Stats.Of("tc_withheld").Mean-withheld)) > 1e-9 ||
		rows[0].Stats.Of("tc_withheld").N != 0 {
		t.Errorf("%v withheld with control, rows %+v and %+v", withheld, rows[0].Stats.Of("tc_withheld"),
			rows[1].Stats.Of("tc_withheld"))
	}
	if !f.Manifest.Valid || archive.HasDocumentOnly(f) || !archive.HasDocument(f) {
		t.Errorf("manifest %+v", f.Manifest)
	}
}

// TestKeptClosedLoopIsRecomputed checks the same for closed-loop workers.
func TestKeptClosedLoopIsRecomputed(t *testing.T) {
	out, f := keepSimulation(t, waitingNetworks(t, 2), asIs)
	proof, err := archive.Verify(f, system.All().FindDeclaration)
	if err != nil {
		t.Fatal(err)
	}
	if frames := out.Runs[0][0].Counters.Of("delivered") + out.Runs[1][0].Counters.Of("delivered"); !proof.Raw || proof.Runs != 2 ||
		proof.Observations != frames || frames == 0 {
		t.Errorf("proof %+v of %d frames", proof, frames)
	}
	if n, err := RepeatStored(t.Context(), system.All(), f, NewStream()); err != nil || n != 4 {
		t.Errorf("%d runs repeated: %v", n, err)
	}
	r, err := archive.Load(f, system.All().FindDeclaration)
	if err != nil || len(r.Runs) != 4 || r.Runs[0].Queue != "switchml sync" || r.Runs[2].Queue != "iswitch async" {
		t.Fatalf("%+v: %v", r.Runs, err)
	}
	if sync, async := &r.Runs[0], &r.Runs[2]; !sync.Metrics.Of("aom_worker_ns").Known() || async.Metrics.Of("aom_worker_ns").Known() ||
		sync.Metrics.Of("utilisation").Known() {
		t.Errorf("workers are %v and %v old", sync.Metrics.Of("aom_worker_ns"), async.Metrics.Of("aom_worker_ns"))
	}
}

// TestSimulationPrintsStoredNumbers compares a simulation's printed numbers with its stored ones.
func TestSimulationPrintsStoredNumbers(t *testing.T) {
	for name, networks := range map[string]func(testing.TB, int) *Simulation{"in queues": twoNetworks, "waiting": waitingNetworks} {
		t.Run(name, func(t *testing.T) { meterIsCollector(t, networks(t, 2)) })
	}
}

func meterIsCollector(t *testing.T, s *Simulation) {
	t.Helper()
	out, _ := keepSimulation(t, s, asIs)
	for i := range out.Runs {
		for k := range out.Runs[i] {
			run, r := &out.Runs[i][k], out.Results[i][k]
			for m, printed := range r.Values.All {
				if kept := run.Metrics.Of(m.Name); run.Metrics.Has(m.Name) && kept != printed && (kept.Known() || printed.Known()) {
					t.Errorf("%s, seed %d: %s is kept as %v, printed as %v", run.Queue, run.Seed, m.Name, kept, printed)
				}
			}
			if run.Queue != out.Simulation.Networks[i].Name || run.Index != k || run.Seed != r.Seed || !run.Valid() {
				t.Errorf("run %+v of seed %d", run, r.Seed)
			}
		}
	}
}

// TestSimulationWithoutFrames checks that a simulation can be repeated if only its numbers are stored.
func TestSimulationWithoutFrames(t *testing.T) {
	_, f := keepSimulation(t, twoNetworks(t, 2), (*Keeper).StoreNumbersOnly)
	if proof, err := archive.Verify(f, system.All().FindDeclaration); err != nil || proof.Observations != 0 || proof.Rows != 2 {
		t.Errorf("%+v %v", proof, err)
	}
	if n, err := RepeatStored(t.Context(), system.All(), f, NewStream()); err != nil || n != 4 {
		t.Errorf("%d %v", n, err)
	}
}

// TestArrivalFilesStoreAllFrames checks that all frames are stored if a simulation cannot be repeated from its
// topology, which only names the file.
func TestArrivalFilesStoreAllFrames(t *testing.T) {
	s := twoNetworks(t, 2)
	s.Networks = s.Networks[:1]
	if err := s.Networks[0].Topology.SetSends("sends.csv", strings.NewReader("1000000,7\n2000000000,1\n")); err != nil {
		t.Fatal(err)
	}
	_, f := keepSimulation(t, s, (*Keeper).StoreNumbersOnly)
	if proof, err := archive.Verify(f, system.All().FindDeclaration); err != nil || proof.Runs != 2 || proof.Observations != 4 {
		t.Errorf("%+v %v", proof, err)
	}
	if n, err := RepeatStored(t.Context(), system.All(), f, NewStream()); err != nil || n != 0 {
		t.Errorf("%d %v", n, err)
	}
}

// TestSimulationFilesDoNotDependOnCores compares the whole folders stored with different numbers of cores.
func TestSimulationFilesDoNotDependOnCores(t *testing.T) {
	var first map[string][]byte
	for _, procs := range []int{1, 2, 5} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		_, f := keepSimulation(t, twoNetworks(t, 3), asIs)
		files := map[string][]byte{}
		for _, name := range []string{archive.PlanFile, archive.BenchFile, archive.RunsFile, archive.ObservationsFile, archive.DocumentFile} {
			raw, err := os.ReadFile(f.Path(name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = raw
		}
		if first == nil {
			first = files
		}
		for name, raw := range files {
			if !bytes.Equal(raw, first[name]) {
				t.Errorf("%s on %d cores is not that on one", name, procs)
			}
		}
	}
}

// TestSimulationTextRoundTrip checks that a simulation made in memory can be repeated from its text.
func TestSimulationTextRoundTrip(t *testing.T) {
	s := twoNetworks(t, 2)
	a, err := s.Outline()
	if err != nil {
		t.Fatal(err)
	}
	again, err := readSimulation(system.All(), a.Config)
	if err != nil {
		t.Fatal(err)
	}
	b, err := again.Outline()
	if err != nil || !bytes.Equal(a.Config, b.Config) || a.hashConfig() != b.hashConfig() {
		t.Errorf("%v\n%s\n%s", err, a.Config, b.Config)
	}
}

// TestEventsOfASimulation checks the number of events at sinks and board.
func TestEventsOfASimulation(t *testing.T) {
	s := twoNetworks(t, 2)
	l := &listener{counts: map[string]int{}}
	stream := NewStream(l)
	out, err := SimulateAll(t.Context(), s, SimulateOptions{Stream: stream})
	if err != nil {
		t.Fatal(err)
	}
	if l.counts["started"] != 1 || l.counts["run"] != 4 || l.counts["done"] != 4 || l.counts["finished"] != 1 ||
		l.counts["observed"] < 4 {
		t.Errorf("events %v", l.counts)
	}
	p := stream.Progress()
	if p.Work != Work(s) || p.Done != 4 || p.Total != 4 || p.Invalid != 0 || !p.Finished {
		t.Errorf("board %+v", p)
	}
	// Without a sink the simulator's own results are the same.
	bare, err := SimulateAll(t.Context(), s, SimulateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(out.Results)
	b, _ := json.Marshal(bare.Results)
	if !bytes.Equal(a, b) || bare.Err() != nil {
		t.Errorf("listening changes results: %v", bare.Err())
	}
}

// TestInvalidSimulationIsNeverAveraged checks that a run in which the simulator breaks an identity is not averaged with
// the others.
func TestInvalidSimulationIsNeverAveraged(t *testing.T) {
	s := twoNetworks(t, 3)
	broken := func(ctx context.Context, topology *netsim.Topology, opt netsim.Options) (*netsim.Result, error) {
		r, err := netsim.Run(ctx, topology, opt)
		if err == nil && topology.Seed == 2 && topology.Control.Enabled {
			return nil, fmt.Errorf("%w: 1 ≠ 2", netsim.ErrAccounting)
		}
		return r, err
	}
	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	k := NewKeeper(st, time.Unix(1_700_000_000, 0))
	stream := NewStream(k)
	out, err := SimulateAll(t.Context(), s, SimulateOptions{Stream: stream, run: broken})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Results[0]) != 3 || len(out.Results[1]) != 2 || len(out.Runs[1]) != 3 || stream.Progress().Invalid != 1 {
		t.Errorf("%d and %d results of %d runs", len(out.Results[0]), len(out.Results[1]), len(out.Runs[1]))
	}
	if err := out.Err(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "olaf tc, seed 2") {
		t.Error(err)
	}
	id, err := k.FinishSimulation(simulatedReport{out}, results.Provenance{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := st.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	r, err := archive.Load(f, system.All().FindDeclaration)
	if err != nil {
		t.Fatal(err)
	}
	if row := &r.Bench.Rows[1]; row.Runs != 2 || row.InvalidRuns != 1 || row.Stats.Of("aom_cluster_ns").N != 2 || f.Manifest.Valid {
		t.Errorf("%+v", row)
	}
	if _, err := archive.Verify(f, system.All().FindDeclaration); err != nil {
		t.Error(err)
	}
}

// TestInterruptedSimulation checks that the seeds that every network finished are returned.
func TestInterruptedSimulation(t *testing.T) {
	s := twoNetworks(t, 40)
	ctx, cancel := context.WithCancel(t.Context())
	l := &listener{counts: map[string]int{}, at: func(e Event) error {
		if d, ok := e.(RunDone); ok && d.Run.Index == 3 {
			cancel()
		}
		return nil
	}}
	out, err := SimulateAll(ctx, s, SimulateOptions{Stream: NewStream(l)})
	if !errors.Is(err, context.Canceled) || out == nil || !out.Partial || !errors.Is(out.Err(), ErrRun) {
		t.Fatalf("%v %v", err, out)
	}
	if n := len(out.Runs[0]); n == 0 || n == 40 || n != len(out.Runs[1]) || n != len(out.Results[0]) {
		t.Errorf("%d and %d runs", len(out.Runs[0]), len(out.Runs[1]))
	}
}

// TestSinkErrorEndsSimulation checks that an error from a sink, such as a full disk, ends a simulation midway.
func TestSinkErrorEndsSimulation(t *testing.T) {
	full := errors.New("disk full")
	l := &listener{counts: map[string]int{}, at: func(e Event) error {
		if _, ok := e.(Observed); ok {
			return full
		}
		return nil
	}}
	out, err := SimulateAll(t.Context(), twoNetworks(t, 4), SimulateOptions{Stream: NewStream(l)})
	if !errors.Is(err, full) || len(out.Runs[0]) != 0 {
		t.Errorf("%v", err)
	}
}

// counting is a sink that needs numbers, and optionally frames.
type counting struct{ frames bool }

func (counting) Event(Event) error  { return nil }
func (c counting) Wants(RunID) bool { return c.frames }

// BenchmarkSimulate measures the cost of measuring and storing compared with the simulation itself, per delivered
// frame.
func BenchmarkSimulate(b *testing.B) {
	large := func() *Simulation {
		topology, err := netsim.Preset(system.All(), "multihop", netsim.Scale{Clusters: 1000, WorkersPerCluster: 100})
		if err != nil {
			b.Fatal(err)
		}
		topology.Warmup, topology.Duration = 0, 2*olaf.Second
		return &Simulation{Experiment: "simulate", Networks: []Network{{"olaf", topology}}, Seeds: []uint64{1}}
	}
	small := func() *Simulation {
		s := large()
		topology, err := netsim.Preset(system.All(), "multihop", netsim.Scale{})
		if err != nil {
			b.Fatal(err)
		}
		topology.Duration = 600 * olaf.Second
		s.Networks[0].Topology = topology
		return s
	}
	for _, size := range []struct {
		name string
		make func() *Simulation
	}{{"100", small}, {"100000", large}} {
		for _, mode := range []string{"alone", "measured", "published", "kept"} {
			b.Run(size.name+"/"+mode, func(b *testing.B) {
				s := size.make()
				frames, bytes := int64(0), int64(0)
				for b.Loop() {
					stream := NewStream()
					var k *Keeper
					switch mode {
					case "measured", "published":
						stream.sinks = append(stream.sinks, counting{mode == "published"})
					case "kept":
						st, err := store.Open(b.TempDir())
						if err != nil {
							b.Fatal(err)
						}
						defer st.Close()
						k = NewKeeper(st, time.Unix(1_700_000_000, 0))
						stream.sinks = append(stream.sinks, k)
					}
					out, err := SimulateAll(b.Context(), s, SimulateOptions{Stream: stream})
					if err != nil {
						b.Fatal(err)
					}
					frames += out.Runs[0][0].Counters.Of("delivered")
					if k == nil {
						continue
					}
					id, err := k.FinishSimulation(simulatedReport{out}, results.Provenance{})
					if err != nil {
						b.Fatal(err)
					}
					f, err := k.store.Load(id)
					if err != nil {
						b.Fatal(err)
					}
					about, err := os.Stat(f.Path(archive.ObservationsFile))
					if err != nil {
						b.Fatal(err)
					}
					bytes += about.Size()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
				if bytes > 0 {
					b.ReportMetric(float64(bytes)/float64(frames), "B/frame")
				}
			})
		}
	}
}
