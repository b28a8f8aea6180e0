package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
)

// loopSpec returns a small loop of a system: 2 jobs of 3 workers.
func loopSpec(of string) Spec {
	s := usualSpec()
	s.Queue = of
	s.MakeLoop(func(string) bool { return false }, false)
	s.Workload.Workers, s.Workload.Clusters, s.Workload.UpdatesPerWorker, s.Runs = 6, 2, 4, 2
	s.Loop.Values = 20_000
	return s
}

// loopSystems returns a loop for every system that supports it, with settings that make it exact.
func loopSystems(t *testing.T) (specs []Spec) {
	t.Helper()
	for _, found := range system.All().LoopedOnes() {
		s := loopSpec(found.Name)
		if p := found.Program; p != nil && len(p.Profiles) > 0 {
			s.Loop.Profile = p.Profiles[len(p.Profiles)-1]
		}
		specs = append(specs, s)
	}
	for name, profile := range map[string]string{"atp": "paper", "switchml": ""} { // below the device, racks of 2 workers and of 1
		s := loopSpec(name)
		s.Loop.Racks, s.Loop.Profile = 2, profile
		specs = append(specs, s)
	}
	if len(specs) < 8 {
		t.Fatalf("%d systems", len(specs))
	}
	return specs
}

// TestDeviceLoopEqualsSimulator checks that a loop through the device gives the results of the same hosts around the
// program alone, with the counts from the device's registers, and the same bytes on any number of cards.
func TestDeviceLoopEqualsSimulator(t *testing.T) {
	for _, s := range loopSystems(t) {
		t.Run(fmt.Sprintf("%s/%d", s.Queue, s.Loop.Racks), func(t *testing.T) {
			m := mustBench(t, s, Options{Cards: 1})
			if err := m.Err(); err != nil {
				t.Fatal(err)
			}
			first, err := json.Marshal(m.Document())
			must(t, err)
			if again, err := json.Marshal(mustBench(t, s, Options{Cards: 2}).Document()); err != nil || !bytes.Equal(first, again) {
				t.Errorf("2 cards give other bytes than 1: %v", err)
			}
			for i, run := range m.Outcome.Runs[0] {
				compareAlone(t, m.Outcome.Plan, &m.Outcome.Runs[0][i])
				if g, most := run.Metrics.Of("goodput_gbps"), run.Metrics.Of("ceiling_gbps"); !(g > 0 && g < most) {
					t.Errorf("%v of %v Gbit/s", g, most)
				}
				if run.Counters.Of("received") != 8 || run.Counters.Of("slots_left") != 0 || run.Counters.Of("frames_switched") == 0 ||
					!run.Metrics.Of("aom_cluster_ns").Known() {
					t.Errorf("%v", run.Counters)
				}
			}
		})
	}
}

// compareAlone compares a run with the same hosts around the program without a device.
func compareAlone(t *testing.T, p *Plan, run *results.Run) {
	t.Helper()
	net, job, parts, err := p.makeHosts(&p.Configs[0])
	must(t, err)
	r, err := closedloop.Run(t.Context(), net, job, parts, p.Configs[0].mode.Sync, run.Seed)
	must(t, err)
	for i, c := range r.Program.Ledger().Counters {
		if have, want := run.Counters.Of(c.Name), r.Program.At(i); have != want {
			t.Errorf("%s is %d, without a device %d", c.Name, have, want)
		}
	}
	if have, want := run.Counters.Of("span_ps"), toCount(r.Duration, 1000); have != want {
		t.Errorf("it took %d ps, without a device %d", have, want)
	}
}

// TestLoopIsExactUnderLoss checks that every round has exactly one gradient of every worker, with any losses.
func TestLoopIsExactUnderLoss(t *testing.T) {
	for _, s := range loopSystems(t) {
		if found, err := system.All().Find(s.Queue); err != nil || found.Program == nil {
			continue // their transport is taken to be reliable
		}
		s.Loop.Loss = 0.01
		m := mustBench(t, s, Options{})
		if err := m.Err(); err != nil {
			t.Errorf("%s: %v", s.Queue, err)
		}
		if run := m.Outcome.Runs[0][0]; run.Counters.Of("frames_lost") == 0 ||
			run.Counters.Of("packets_resent")+run.Counters.Of("control_sent") == 0 {
			t.Errorf("%s: %v", s.Queue, run.Counters)
		}
	}
}

// TestHungLoopIsInvalid checks that a loop that cannot finish is ended and marked, with its time limit.
func TestHungLoopIsInvalid(t *testing.T) {
	s := loopSpec("switchml")
	s.Loop.Loss, s.Loop.Limit, s.Runs = 1, 20*olaf.Millisecond, 1
	m := mustBench(t, s, Options{})
	if err := m.Err(); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "it hung: some hosts had not finished after 20ms of virtual time") {
		t.Errorf("%v", err)
	}
}

// TestKeptLoopRepeats checks that a stored loop can be measured again from its rounds and repeated from its plan.
func TestKeptLoopRepeats(t *testing.T) {
	s := loopSpec("atp")
	s.Versus = "switchml"
	_, f := runAndKeep(t, s)
	proof, err := archive.Verify(f, system.All().FindDeclaration)
	if err != nil || proof.Runs != 2 || proof.Observations != 2*2*4 {
		t.Fatalf("proof %+v: %v", proof, err)
	}
	if n, err := RepeatStored(t.Context(), system.All(), f, NewStream()); err != nil || n != 4 {
		t.Errorf("%d runs repeated: %v", n, err)
	}
	if _, err := RepeatableSpec(system.All(), f); !errors.Is(err, ErrNoRewind) {
		t.Errorf("%v", err)
	}
}

// TestLoopIsRecorded checks that all arriving frames are written in the system's own format.
func TestLoopIsRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loop.pcapng")
	s := loopSpec("atp")
	r, err := s.Record(path, false)
	must(t, err)
	m := mustBench(t, s, Options{Stream: NewStream(r)})
	must(t, errors.Join(r.Commit(), r.Abandon()))
	if want := m.Outcome.Runs[0][0].Counters.Of("frames_arrived"); int64(r.Frames()) != want || want == 0 {
		t.Errorf("%d frames, %d arrived", r.Frames(), want)
	}
	seen, format := map[string]int{}, s.Frame()
	eachFrame(t, path, func(data []byte, length int, _ []string) {
		v, err := format.DecodeTruncated(data, length)
		must(t, err)
		seen[v.Message.Name]++
	})
	if len(seen) < 2 {
		t.Errorf("%v", seen)
	}
}

// TestRecordingNeedsFrameNumbers checks that recording is rejected if frames cannot number the packets of all rounds.
func TestRecordingNeedsFrameNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "loop.pcapng")
	s := loopSpec("atp")
	const packets = 323 // of 62 values for 20,000
	const most = 65_535 / packets
	s.Workload.UpdatesPerWorker = most + 1
	if _, err := s.Record(path, false); !errors.Is(err, system.ErrOptions) ||
		!strings.Contains(err.Error(), fmt.Sprintf("use --updates %d", most)) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	s.Workload.UpdatesPerWorker = most
	r, err := s.Record(path, false)
	must(t, err)
	must(t, r.Abandon())
	s.Loop.Values = 1 << 24
	if _, err := s.Record(path, false); err == nil || !strings.Contains(err.Error(), "vectors of 4063170 values at most") {
		t.Errorf("%v", err)
	}
}

// TestConflictingLoopSettings checks that conflicting settings are rejected before anything runs, with advice.
func TestConflictingLoopSettings(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"33 workers; a bitmap has bits for 1 to 32":                       func(s *Spec) { s.Workload.Workers = 66 },
		"6 workers in 4 jobs; every job needs the same number of workers": func(s *Spec) { s.Workload.Clusters = 4 },
		"packets of 512B; the program is built for 256B and 1024B":        func(s *Spec) { s.Loop.Packet = 512 },
		"1 slots for 2 jobs":                                        func(s *Spec) { s.Slots = 1 },
		"20000 slots; there can be 1 to 16384":                      func(s *Spec) { s.Slots = 20_000 },
		"a window of 100 packets over 75 aggregators of the job":    func(s *Spec) { atp(s, 150); s.Loop.Window = 100 },
		"70000 aggregators; an index of 16 bits reaches 1 to 65536": func(s *Spec) { atp(s, 70_000); s.Loop.Sharing = "" },
		"32 workers; profile paper takes 31": func(s *Spec) {
			atp(s, 400)
			s.Workload.Workers,
				s.Loop.Profile = 64, "paper"
		},
		"no sharing is called \"some\"; there are dynamic, static": func(s *Spec) { atp(s, 400); s.Loop.Sharing = "some" },
		"a loss of 1.5; it must be 0 to 1":                         func(s *Spec) { s.Loop.Loss = 1.5 },
		"workers of fifo do not wait beside a device":              func(s *Spec) { s.Versus = "fifo" },
		"the transport of ring is taken to be reliable":            func(s *Spec) { s.Versus, s.Loop.Loss = "ring", 0.1 },
		"3 workers of a job do not fill 4 racks":                   func(s *Spec) { s.Loop.Racks = 4 },
		"-1 racks":                                                 func(s *Spec) { s.Loop.Racks = -1 },
		"profile p4ml knows one level of switches; take paper": func(s *Spec) {
			atp(s, 400)
			s.Loop.Sharing, s.Loop.Racks = "",
				3
		},
		"h is only for workers that do not wait for the sum of all workers": func(s *Spec) { s.H = new(3) },
		"vectors of 0 values":       func(s *Spec) { s.Loop.Values = 0 },
		"unknown system \"nobody\"": func(s *Spec) { s.Queue = "nobody" },
	} {
		s := loopSpec("switchml")
		change(&s)
		_, err := NewPlan(s)
		if kind, _ := olaf.KindOf(err); err == nil || !strings.Contains(err.Error(), want) || kind != olaf.Usage {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func atp(s *Spec, aggregators int) {
	s.Queue, s.Slots, s.Loop.Sharing = "atp", aggregators, system.Static
}

// TestLoopInAFile checks that a file may contain only the system, and that printed files can be read.
func TestLoopInAFile(t *testing.T) {
	f, err := ParseFile(system.All(), "loop.yaml",
		[]byte("system: atp\nslots: 450\nworkload:\n  clusters: 3\n  workers: 6\nloop:\n  loss: 0.001\n"))
	must(t, err)
	if f.Loop == nil || f.Loop.Loss != 0.001 || f.Loop.Values != DefaultLoop().Values || f.Workload.UpdatesPerWorker != LoopUpdates ||
		f.OutRates[0] != LoopRate || f.Versus != "" {
		t.Errorf("%+v %+v", f.Spec, f.Loop)
	}
	text, err := f.Text()
	must(t, err)
	again, err := ParseFile(system.All(), "again.yaml", text)
	must(t, err)
	a, _ := json.Marshal(&f.Spec)
	b, _ := json.Marshal(&again.Spec)
	if !bytes.Equal(a, b) {
		t.Errorf("%s\n%s", a, b)
	}
	if f, err := ParseFile(system.All(), "one.yaml", []byte("system: switchml\n")); err != nil || f.Loop == nil ||
		f.Workload.Workers != LoopWorkers {
		t.Errorf("%+v %v", f, err)
	}
}

// TestLoopOptionsInAFile checks that a file can set each system's options, and that others are rejected with their
// lines.
func TestLoopOptionsInAFile(t *testing.T) {
	lines := map[string]string{
		"slots": "slots: 512\nloop: {}\n", "packet": "loop:\n  packet: 1024B\n", "window": "loop:\n  window: 8\n",
		"timeout":  "loop:\n  timeout: 1ms\n",
		"recovery": "loop:\n  recovery: none\n", "program-profile": "loop:\n  program_profile: paper\n",
		"sharing":    "loop:\n  sharing: static\n",
		"congestion": "loop:\n  congestion: true\n", "wrap": "loop:\n  wrap: true\n", "bound": "loop:\n  bound: 0\n",
		"h": "h: 3\nloop: {}\n",
	}
	if len(lines) != len(LoopOptions()) {
		t.Fatalf("%d options, %d tried", len(LoopOptions()), len(lines))
	}
	for _, found := range system.All().LoopedOnes() {
		for option, says := range lines {
			_, err := ParseFile(system.All(), "loop.yaml", []byte("system: "+found.Name+"\n"+says))
			if slices.Contains(found.Modes[0].Takes, option) && option != system.OptionH { // a sum is always of all workers
				if err != nil {
					t.Errorf("%s takes %s: %v", found.Name, option, err)
				}
				continue
			}
			line := 1 + strings.Count(says, "\n")
			if option == "slots" || option == system.OptionH {
				line = 2
			}
			want := fmt.Sprintf("loop.yaml:%d: bad options of a system: --%s does not apply to %s in mode sync, which takes ", line,
				option, found.Name)
			if kind, _ := olaf.KindOf(err); err == nil || !strings.HasPrefix(err.Error(), want) || kind != olaf.Usage ||
				strings.Contains(err.Error(), "--h,") {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
	if _, err := ParseFile(system.All(), "loop.yaml", []byte("system: ps\nloop:\n  slot_ranges: [0-3]\n")); err == nil ||
		!strings.Contains(err.Error(), "loop.yaml:3: ") {
		t.Errorf("ranges of nothing: %v", err)
	}
	if _, err := ParseFile(system.All(), "loop.yaml", []byte("system: ps\nversus: atp\nloop:\n  window: 8\n")); err != nil {
		t.Errorf("a window of the system beside it: %v", err)
	}
}

// TestDefaultTimeoutOnWires checks that workers get a default timeout if some system has one, so that the printed file
// can be read.
func TestDefaultTimeoutOnWires(t *testing.T) {
	for of, want := range map[string]olaf.Duration{"ps": 0, "switchml": measuredTimeout} {
		s := usualSpec()
		s.Queue = of
		s.MakeLoop(func(string) bool { return false }, true)
		if s.Loop.Timeout != want {
			t.Errorf("%s: %v, want %v", of, s.Loop.Timeout, want)
		}
	}
}

// aheadOf returns loops of all systems in every asynchronous mode.
func aheadOf(t *testing.T) (specs []Spec) {
	t.Helper()
	for _, found := range system.All().LoopedOnes() {
		for _, mode := range found.Modes {
			if mode.Sync {
				continue
			}
			s := loopSpec(found.Name)
			s.SetMode(mode.Name, func(string) bool { return false })
			s.Loop.Spread, s.Workload.UpdatesPerWorker = 0.3, 12
			if slices.Contains(mode.Takes, system.OptionH) {
				few := s
				loop := *s.Loop
				few.Loop, few.H, few.Loop.Bound = &loop, new(2), new(1)
				specs = append(specs, few)
			}
			specs = append(specs, s)
		}
	}
	if len(specs) < 3 {
		t.Fatalf("%d loops", len(specs))
	}
	return specs
}

// TestAsynchronousLoopEqualsProgram checks for asynchronous workers that the device gives the results of the program
// alone, for any number of cards, that stored runs can be repeated, and that the contributors of an update are known.
func TestAsynchronousLoopEqualsProgram(t *testing.T) {
	for _, s := range aheadOf(t) {
		t.Run(s.Queue, func(t *testing.T) {
			_, f := runAndKeep(t, s)
			told := workersTold{}
			m := mustBench(t, s, Options{Cards: 1, Stream: NewStream(told)})
			must(t, m.Err())
			if len(told) != s.Workload.Workers {
				t.Errorf("gradients of workers: %v", told)
			}
			first, err := json.Marshal(m.Document())
			must(t, err)
			if again, err := json.Marshal(mustBench(t, s, Options{Cards: 2}).Document()); err != nil || !bytes.Equal(first, again) {
				t.Errorf("2 cards give other bytes than 1: %v", err)
			}
			run := &m.Outcome.Runs[0][0]
			compareAlone(t, m.Outcome.Plan, run)
			if age, stale := run.Metrics.Of("aom_worker_ns"), run.Metrics.Of("staleness_updates"); !(age > 0) || !(stale > 0) ||
				run.Counters.Of("received") < 12 || run.Metrics.Of("aggregation_ns").Known() {
				t.Errorf("age %v, staleness %v: %v", age, stale, run.Counters)
			}
			if s.H != nil && run.Counters.Of("vectors_sent") < 2*12*int64(*s.H) {
				t.Errorf("%v", run.Counters)
			}
			proof, err := archive.Verify(f, system.All().FindDeclaration)
			if err != nil || proof.Runs != 1 || int64(proof.Observations) != run.Counters.Of("received") {
				t.Errorf("proof %+v: %v", proof, err)
			}
			if n, err := RepeatStored(t.Context(), system.All(), f, NewStream()); err != nil || n != 2 {
				t.Errorf("%d runs repeated: %v", n, err)
			}
		})
	}
}

// TestGradientsInEverySumAreKnown checks that all gradients in every sum are known, for one switch and for a tree, even
// if a gradient made between two of them is in another sum, so that timestamps are not enough.
func TestGradientsInEverySumAreKnown(t *testing.T) {
	for _, racks := range []int{1, 2} {
		s := loopSpec("iswitch")
		s.SetMode("async", func(string) bool { return false })
		s.Workload.Workers, s.Workload.Clusters, s.Workload.UpdatesPerWorker, s.Runs = 8, 1, 100, 1
		s.H, s.Loop.Spread, s.Loop.Racks, s.Loop.Values = new(4), 0.9, racks, 100_000
		told := workersTold{}
		must(t, mustBench(t, s, Options{Cards: 1, Stream: NewStream(told)}).Err())
		sum := 0
		for _, n := range told {
			sum += n
		}
		if len(told) != 8 || sum < 8*12 || sum%4 != 0 {
			t.Errorf("%d racks: gradients of workers: %v", racks, told)
		}
	}
}

// TestDefaultModeIsOmitted checks that a specification of the default mode equals one without a mode, and that one too
// fast for its links is rejected.
func TestDefaultModeIsOmitted(t *testing.T) {
	never := func(string) bool { return false }
	s := loopSpec("iswitch")
	was, err := json.Marshal(&s)
	must(t, err)
	s.SetMode("sync", never)
	if is, err := json.Marshal(&s); err != nil || !bytes.Equal(is, was) {
		t.Errorf("%v: %s\n%s", err, is, was)
	}
	s.SetMode("async", never)
	if s.Loop.Mode != "async" || s.Loop.Compute != aheadCompute || !strings.Contains(s.LoopTitle(), ", async") {
		t.Errorf("%+v: %s", s.Loop, s.LoopTitle())
	}
	s.Loop.Compute = 50 * olaf.Microsecond
	if _, err := NewPlan(s); !errors.Is(err, ErrSpec) || olaf.FieldOf(err) != "loop.compute" ||
		!strings.Contains(err.Error(), "a gradient is computed in 50us") {
		t.Errorf("%v in %s", err, olaf.FieldOf(err))
	}
	s.Loop.Compute = 0
	s.Queue = "ps" // a parameter server replies
	if _, err := NewPlan(s); err != nil {
		t.Error(err)
	}
	s.Versus = "ring"
	if _, err := NewPlan(s); !errors.Is(err, system.ErrMode) || olaf.FieldOf(err) != "loop.mode" {
		t.Errorf("%v in %s", err, olaf.FieldOf(err))
	}
}

// workersTold counts the gradients of each worker in updates. Updates whose contributors are not all known count under
// -1.
type workersTold map[int]int

func (w workersTold) Event(e Event) error {
	o, ok := e.(Observed)
	if !ok {
		return nil
	}
	for i := range o.Observations {
		if len(o.Observations[i].Contributors) != int(o.Observations[i].Update.Count) {
			w[-1]++
		}
		for _, k := range o.Observations[i].Contributors {
			w[int(k.Worker)]++
		}
	}
	return nil
}
