package bench

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends"
	"github.com/olafctl/olaf/experiments/bench/wired"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/store"
)

// wiringSpec returns a small loop of a system on wires of this machine: 2 jobs of 3 workers.
func wiringSpec(of string) Spec {
	s := usualSpec()
	s.Queue = of
	s.MakeLoop(func(string) bool { return false }, true)
	s.Workload.Workers, s.Workload.Clusters, s.Workload.UpdatesPerWorker, s.Runs = 6, 2, 3, 1
	s.Loop.Values, s.Loop.Limit = 3000, 30*olaf.Second
	return s
}

// framedSystems returns the systems of loops with a frame format.
func framedSystems(t *testing.T) (names []string) {
	t.Helper()
	for _, s := range system.All().LoopedOnes() {
		if s.HasFrames() {
			names = append(names, s.Name)
		}
	}
	if len(names) < 6 {
		t.Fatalf("only %v have frames", names)
	}
	return names
}

// measureOnWires runs a specification on wires, if this process has the rights.
func measureOnWires(t *testing.T, s Spec, o Options) *Measurement {
	t.Helper()
	device := backends.HostDevice(system.All().Programs()...)
	o.Device, o.Access.Devices = device.Prefix, testbed.Devices{device}
	m, err := MeasureSpec(t.Context(), s, o)
	if errors.Is(err, netlab.ErrRights) {
		t.Skip(err)
	}
	must(t, err)
	return m
}

// TestLoopOnWires checks what must be true under any load for closed-loop hosts on real wires: every value of every
// sum, the identities, the requested rounds, an empty switch at the end, and the registers' classes for every frame in
// the switch. The published iSwitch adds a packet again that is later than the timeout, so its timeout is longer than any
// pause of this machine.
func TestLoopOnWires(t *testing.T) {
	for _, name := range framedSystems(t) {
		t.Run(name, func(t *testing.T) {
			s := wiringSpec(name)
			if name == "iswitch" {
				s.Loop.Timeout = 10 * olaf.Second
			}
			m := measureOnWires(t, s, Options{})
			must(t, m.Err())
			run := &m.Outcome.Runs[0][0]
			c := run.Counters
			if c.Of("received") != 6 || c.Of("slots_left") != 0 || c.Of("packets_inexact") != 0 || c.Of("frames_switched") == 0 ||
				c.Of("frames_underway") != 0 {
				t.Errorf("%v", c)
			}
			if g := run.Metrics.Of("goodput_gbps"); !(g > 0 && g < run.Metrics.Of("ceiling_gbps")) || run.LatenessNS == nil {
				t.Errorf("%v Gbit/s, lateness %v", g, run.LatenessNS)
			}
		})
	}
}

// TestAsynchronousWorkersOnWires checks what must be true under any load for asynchronous workers: every packet
// contains what was added, the contributors of each sum are known, and every gradient was sent or discarded. Packets of
// longer vectors may contain different sets, and then only the first one's are known.
func TestAsynchronousWorkersOnWires(t *testing.T) {
	for _, of := range system.All().LoopedOnes() {
		if !slices.ContainsFunc(of.Modes, func(m system.Mode) bool { return !m.Sync }) {
			continue
		}
		t.Run(of.Name, func(t *testing.T) {
			s := wiringSpec(of.Name)
			s.Loop.Values = 300
			s.SetMode("async", func(string) bool { return false })
			s.Loop.Compute, s.Loop.Spread = 10*olaf.Millisecond, 0.5
			fan := 1 // gradients per update
			if of.Program != nil {
				fan = 2
				s.H = &fan
			}
			told := workersTold{}
			m := measureOnWires(t, s, Options{Stream: NewStream(told)})
			must(t, m.Err())
			run := &m.Outcome.Runs[0][0]
			want := 2 * 3 // updates of both jobs
			if of.Program == nil {
				want *= 3 // of every worker
			}
			inside := 0
			for _, n := range told {
				inside += n
			}
			if c := run.Counters; told[-1] != 0 || inside != want*fan || c.Of("received") != int64(want) ||
				c.Of("vectors_computed") < int64(want) || c.Of("frames_underway") != 0 {
				t.Errorf("%v are inside of updates, want %d in %d: %v", told, want*fan, want, c)
			}
			if late := run.Metrics.Of("staleness_updates"); !(late >= 0 && late < 10) {
				t.Errorf("staleness %v", late)
			}
			s.Loop.Values = 3000
			m = measureOnWires(t, s, Options{})
			must(t, m.Err())
		})
	}
}

// TestLossesOnWiresKeepSumsExact checks by the values of all sums that every round has exactly one gradient of every
// worker, with any losses.
func TestLossesOnWiresKeepSumsExact(t *testing.T) {
	for _, name := range framedSystems(t) {
		t.Run(name, func(t *testing.T) {
			s := wiringSpec(name)
			s.Loop.Loss, s.Loop.Timeout = 0.02, 20*olaf.Millisecond
			found, err := system.All().Find(name)
			must(t, err)
			if found.Program == nil { // they do not retransmit
				if err := whyRefused(t, s); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), "leave the loss out") {
					t.Errorf("%v", err)
				}
				return
			}
			if profiles := found.Program.Profiles; len(profiles) > 0 {
				s.Loop.Profile = profiles[len(profiles)-1] // the last profile is exact under loss
			}
			m := measureOnWires(t, s, Options{})
			must(t, m.Err())
			c := m.Outcome.Runs[0][0].Counters
			if c.Of("frames_lost") == 0 || c.Of("packets_resent")+c.Of("control_sent") == 0 || c.Of("packets_inexact") != 0 ||
				c.Of("received") != 6 {
				t.Errorf("%v", c)
			}
		})
	}
}

// TestHungHostsOnWires checks that hosts that never finish are ended, and that all losses are reported.
func TestHungHostsOnWires(t *testing.T) {
	s := wiringSpec("switchml")
	s.Loop.Loss, s.Loop.Limit = 1, 300*olaf.Millisecond
	m := measureOnWires(t, s, Options{})
	if err := m.Err(); !errors.Is(err, ErrInvalid) ||
		!strings.Contains(err.Error(), "it hung: some hosts had not finished after 300ms, the limit") {
		t.Errorf("%v", err)
	}
}

// TestWiresRejectSimulatorSettings checks that simulator-only settings are rejected before anything is built.
func TestWiresRejectSimulatorSettings(t *testing.T) {
	for what, change := range map[string]func(*Spec){
		"only the simulator has racks below it": func(s *Spec) { s.Loop.Racks = 2 },
		"packets of this system have no frames": func(s *Spec) { s.Queue, s.Systems = "ring", withoutFrames(t, "ring") },
		"known only by their order, which loss destroys; leave out --loss": func(s *Spec) {
			s.Queue, s.Loop.Loss = "iswitch", 0.01
			s.SetMode("async", func(string) bool { return false })
		},
	} {
		s := wiringSpec("switchml")
		change(&s)
		if err := whyRefused(t, s); !errors.Is(err, wired.ErrNetwork) || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
}

// withoutFrames returns the systems, with one of them reduced to packet lengths only.
func withoutFrames(t *testing.T, name string) system.Set {
	t.Helper()
	all := system.All()
	found, err := all.Find(name)
	must(t, err)
	mode := found.Modes[0]
	framed := mode.Parts
	mode.Parts = func(o *system.Options) (system.Parts, error) {
		parts, err := framed(o)
		parts.Frame = nil
		return parts, err
	}
	found.Modes = []system.Mode{mode}
	return all
}

// TestUnnumberableRoundsAreRejected checks that rounds whose packets cannot be numbered are rejected before any system
// runs.
func TestUnnumberableRoundsAreRejected(t *testing.T) {
	s := wiringSpec("switchml")
	s.Versus, s.Workload.UpdatesPerWorker = "atp", 2000
	if err := whyRefused(t, s); !errors.Is(err, system.ErrOptions) || !strings.Contains(err.Error(), "atp: ") ||
		!strings.Contains(err.Error(), "use --updates 1337") {
		t.Errorf("%v", err)
	}
}

// whyRefused returns the reason why a specification is not measured.
func whyRefused(t *testing.T, s Spec) error {
	t.Helper()
	device := backends.HostDevice(system.All().Programs()...)
	_, err := MeasureSpec(t.Context(), s, Options{Device: device.Prefix, Access: testbed.Access{Devices: testbed.Devices{device}}})
	if errors.Is(err, netlab.ErrRights) {
		t.Skip(err)
	}
	return err
}

// TestKeptRunOnWires checks that all rounds of measured runs are stored, that their numbers can be recomputed from
// them, and that such runs are not repeated.
func TestKeptRunOnWires(t *testing.T) {
	st, err := store.Open(t.TempDir())
	must(t, err)
	defer st.Close()
	s := wiringSpec("p4inc")
	s.Runs = 2
	k := NewKeeper(st, time.Unix(1_700_000_000, 0))
	m := measureOnWires(t, s, Options{Stream: NewStream(k)})
	must(t, m.Err())
	id, err := k.Finish(m)
	must(t, err)
	f, err := st.Load(id)
	must(t, err)
	if proof, err := archive.Verify(f, system.All().FindDeclaration); err != nil || proof.Runs != 2 || proof.Observations != 2*6 {
		t.Errorf("proof %+v: %v", proof, err)
	}
	if n, err := RepeatStored(t.Context(), system.All(), f, NewStream()); err != nil || n != 0 {
		t.Errorf("%d runs repeated: %v", n, err)
	}
}

// TestCaptureOnWiresIsComplete checks that every arriving frame is in the capture, complete, in the system's own
// format.
func TestCaptureOnWiresIsComplete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wires.pcapng")
	s := wiringSpec("atp")
	r, err := s.Record(path, false)
	must(t, err)
	defer r.Abandon()
	m := measureOnWires(t, s, Options{Stream: NewStream(r)})
	must(t, errors.Join(m.Err(), r.Commit()))
	if want := m.Outcome.Runs[0][0].Counters.Of("frames_arrived"); int64(r.Frames()) != want || want == 0 {
		t.Errorf("%d frames, %d arrived", r.Frames(), want)
	}
	seen, lanes, format := map[string]int{}, make([]uint32, olaf.MaxLanes), s.Frame()
	eachFrame(t, path, func(data []byte, length int, _ []string) {
		v, err := format.DecodeTruncated(data, length)
		must(t, err)
		if n := v.Lanes(lanes); n == 0 || length != len(data) {
			t.Fatalf("%d lanes in %d of %d bytes", n, len(data), length)
		}
		seen[v.Message.Name]++
	})
	if len(seen) < 2 {
		t.Errorf("%v", seen)
	}
}
