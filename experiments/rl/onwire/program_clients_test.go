package onwire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/rl"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/pktgen/attach"
)

// TestMain acts as a computing program if the environment asks for it; the program appends its notes to a file.
func TestMain(m *testing.M) {
	if fifo := os.Getenv("ONWIRE_HEAD"); fifo != "" {
		runHead(fifo)
		os.Exit(1)
	}
	notes := os.Getenv("ONWIRE_NOTES")
	if notes == "" {
		os.Exit(m.Run())
	}
	if os.Getenv("ONWIRE_HANGS") == "" {
		signal.Ignore(os.Interrupt) // the server's notes are written after the training ended
	}
	c, err := attach.Dial(os.Getenv("OLAF_ATTACH"))
	if err == nil {
		k := &testClient{Client: c}
		switch {
		case c.Role == attach.RoleServer:
			k.serve()
			err = k.write(notes, "server")
		case c.Flags&attach.FlagWaits != 0:
			if err = k.sum(); err == nil {
				err = k.write(notes, strconv.Itoa(int(c.Worker)))
			}
		default:
			if err = k.learn(); err == nil {
				err = k.write(notes, strconv.Itoa(int(c.Worker)))
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = c.Close()
}

// headWorkers is the number of workers whose programs runHead starts.
const headWorkers = 2

// runHead trains with programs that hang, as do two processes that each program starts, one of them in the background.
// Each of the three keeps the FIFO open, and the last one writes a line to it.
func runHead(fifo string) {
	p := &Program{Command: "sh -c 'exec 3>" + fifo + "; (sleep 600 &) ; sleep 600 & echo up >&3; exec sleep 600'", Systems: []string{"ps"},
		Workers: headWorkers, Values: 4, Seeds: []uint64{1}, Clusters: 1, Progress: func(string, ...any) {}, OnPoint: func(Point) {}}
	_, err := simulatedIn(context.Background(), "sync", system.Options{})(p)
	fmt.Fprintln(os.Stderr, err)
}

// testClient is a program that computes, with its notes on the network's answers.
type testClient struct {
	*attach.Client
	notes clientNotes
}

// clientNotes are the answers that a client received.
type clientNotes struct {
	Updates []attach.Update
	Pushed  []attach.Pushed
	Models  []attach.Model
	Sums    []attach.Sum
}

func (c *testClient) write(folder, name string) error {
	text, err := json.Marshal(c.notes)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name), text, 0o600)
}

// learnSteps is the number of updates of a worker that learns.
const learnSteps = 12

// learn moves a model to the mean of all workers' targets.
func (c *testClient) learn() error {
	target, update := float32(c.Worker+1), make([]float32, c.Largest)
	model := make([]float32, c.Largest)
	c.hang("worker")
	for step := range learnSteps {
		m, values, err := c.Pull(0, false)
		if err != nil {
			return err
		}
		c.notes.Models = append(c.notes.Models, m)
		loss := float32(0)
		copy(model, values)
		for i, v := range model {
			update[i] = v - target
			loss += update[i] * update[i]
		}
		p, err := c.Push(update, float32(step)+float32(c.Worker)/4)
		if err != nil {
			return err
		}
		c.notes.Pushed = append(c.notes.Pushed, p)
		fmt.Printf("{\"loss\": %g}\n", loss)
	}
	if os.Getenv("ONWIRE_HANGS") == "server" { // in an ideal network, the training would end before the server hangs
		awaitInterrupt()
	}
	return nil
}

// hang waits until the program is interrupted if ONWIRE_HANGS names its role.
func (c *testClient) hang(role string) {
	if os.Getenv("ONWIRE_HANGS") == role {
		fmt.Println(role + " hangs")
		awaitInterrupt()
	}
}

// awaitInterrupt waits until the program is interrupted, which ends it.
func awaitInterrupt() {
	silent, open, err := os.Pipe()
	if err == nil {
		defer open.Close()
		_, err = silent.Read(make([]byte, 1)) // an empty select could be reported as a deadlock
	}
	panic(err)
}

// serve steps the model against each update until the server ends.
func (c *testClient) serve() {
	model := make([]float32, c.Largest)
	for {
		u, values, err := c.Take()
		if err != nil {
			return
		}
		c.hang("server")
		c.notes.Updates = append(c.notes.Updates, u)
		part := model[u.First:][:len(values)]
		for i, v := range values {
			part[i] -= v / float32(u.Count) / 4
		}
		if err := c.Reply(u.Number, part); err != nil {
			return
		}
	}
}

// sum sends a vector with values that not every system can carry, in ONWIRE_ROUNDS rounds or one, and in one round less if
// ONWIRE_LEAVES is its number; with ONWIRE_LENGTHS one of another length at each worker.
func (c *testClient) sum() error {
	if os.Getenv("ONWIRE_LENGTHS") != "" {
		_, _, err := c.Sum(make([]float32, c.Worker+1), 0)
		return err
	}
	rounds, _ := strconv.Atoi(os.Getenv("ONWIRE_ROUNDS"))
	if os.Getenv("ONWIRE_LEAVES") == strconv.Itoa(int(c.Worker)) {
		rounds--
	}
	for range max(rounds, 1) {
		s, _, err := c.Sum([]float32{20, 30, 1e-9, 0.5}, float32(c.Worker)+0.5)
		if err != nil {
			return err
		}
		c.notes.Sums = append(c.notes.Sums, s)
		fmt.Println(`{"loss": 1}`)
	}
	return nil
}

// trainTest trains with this test as the program, and returns the report and every client's notes by name.
func trainTest(t *testing.T, p *Program, run func(*Program) (*ProgramReport, error)) (*ProgramReport, map[string]*clientNotes) {
	t.Helper()
	folder := testProgram(t, p)
	r, err := run(p)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*clientNotes{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		n := new(clientNotes)
		if err := json.Unmarshal(text, n); err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = n
	}
	return r, all
}

// testProgram makes the test binary the program and returns the folder with its notes.
func testProgram(t *testing.T, p *Program) (notes string) {
	t.Helper()
	notes = t.TempDir()
	t.Setenv("ONWIRE_NOTES", notes)
	p.Command, p.Seeds, p.Clusters, p.Scale = os.Args[0], []uint64{1}, 1, attach.DefaultScale
	p.Progress = t.Logf
	p.OnPoint = func(Point) {}
	if p.Lanes == 0 {
		p.Lanes = p.Values + attach.Overhead
	}
	return notes
}

// simulated returns a function that trains through a simulated job.
func simulated(t *testing.T, mode string, o system.Options) func(*Program) (*ProgramReport, error) {
	t.Helper()
	return simulatedIn(t.Context(), mode, o)
}

func simulatedIn(ctx context.Context, mode string, o system.Options) func(*Program) (*ProgramReport, error) {
	return func(p *Program) (*ProgramReport, error) {
		spec, err := systemSpec(p.Systems[0], mode, o)
		if err != nil {
			return nil, err
		}
		return p.RunJobs(ctx, &Jobs{Specs: map[string]*job.Spec{p.Systems[0]: spec}, Compute: olaf.Millisecond})
	}
}

// systemSpec returns a job of a system over links of 10 Gbit/s.
func systemSpec(name, mode string, o system.Options) (*job.Spec, error) {
	s, err := system.All().Find(name)
	if err != nil {
		return nil, err
	}
	m, err := s.Mode(mode)
	if err != nil {
		return nil, err
	}
	spec := &job.Spec{System: s, Mode: m, Options: o}
	spec.Network.Link = closedloop.Link{Rate: 10 * olaf.Gbps, Overhead: 24}
	return spec, nil
}

// inVirtualTime returns a function that trains through a queue in virtual time.
func inVirtualTime(t *testing.T) func(*Program) (*ProgramReport, error) {
	return func(p *Program) (*ProgramReport, error) { return p.RunVirtual(t.Context(), olaf.Millisecond) }
}

// TestProgramsPushInVirtualTime checks, for every system whose workers do not wait, that two training runs have the
// same points and counts to the byte, and that the server's program learns the contents of each update.
func TestProgramsPushInVirtualTime(t *testing.T) {
	const workers = 3
	for name, c := range map[string]struct {
		system string
		lanes  int // of a frame; 0 for one frame
		run    func(*testing.T) func(*Program) (*ProgramReport, error)
		count  uint32 // updates inside each; 0 if it varies
		arrive int    // updates in all frames; 0 if some are lost
		old    int    // updates of each worker that are too old to be sent
	}{
		"ideal":                {system: rl.Ideal, run: inVirtualTime, count: 1, arrive: workers * learnSteps},
		"olaf":                 {system: "olaf", run: inVirtualTime, arrive: workers * learnSteps},
		"olaf in three frames": {system: "olaf", lanes: 4, run: inVirtualTime, arrive: 3 * workers * learnSteps},
		"fifo":                 {system: "fifo", run: inVirtualTime, count: 1},
		"ps async": {system: "ps", count: 1, arrive: workers * learnSteps, run: func(t *testing.T) func(*Program) (*ProgramReport, error) {
			return simulated(t, "async", system.Options{})
		}},
		"iswitch async, sums of two": {system: "iswitch", count: 2, arrive: workers * learnSteps, run: func(t *testing.T) func(*Program) (*ProgramReport, error) {
			return simulated(t, "async", system.Options{H: 2, Bound: 3})
		}},
		"iswitch async, only fresh": {system: "iswitch", count: 3, arrive: workers * learnSteps / 2, old: learnSteps / 2, run: func(t *testing.T) func(*Program) (*ProgramReport, error) {
			return simulated(t, "async", system.Options{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			train := func() (*ProgramReport, map[string]*clientNotes) {
				return trainTest(t, &Program{Systems: []string{c.system}, Workers: workers, Values: 6, Lanes: c.lanes, Slots: 2,
					OutRate: olaf.Mbps}, c.run(t))
			}
			r, notes := train()
			again, _ := train()
			if once, twice := pointsOf(t, r), pointsOf(t, again); !bytes.Equal(once, twice) {
				t.Errorf("two runs of a deterministic program differ:\n%s\n%s", once, twice)
			}
			first, last := 0.0, 0.0
			for k, points := range r.Runs[0].Points {
				if len(points) != learnSteps || points[0].AtNS != int64(1e6) {
					t.Fatalf("worker %d reports %d losses from %v ns on, want %d from 1 ms on", k, len(points), points[0].AtNS,
						learnSteps)
				}
				first, last = first+*points[0].Loss, last+*points[learnSteps-1].Loss
			}
			if last >= first {
				t.Errorf("the workers' losses go from %v to %v, want them to fall", first, last)
			}
			checkUpdates(t, notes["server"].Updates, c.count, c.arrive)
			for k := range workers {
				checkPushes(t, notes[strconv.Itoa(k)], c.old, c.arrive > 0)
			}
		})
	}
}

// pointsOf returns the file with a report's points.
func pointsOf(t *testing.T, r *ProgramReport) []byte {
	t.Helper()
	files, err := r.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files[ProgramFile]
}

// checkUpdates checks the information that a server's program receives: counts, rewards, the newest update inside, and
// staleness.
func checkUpdates(t *testing.T, all []attach.Update, count uint32, arrive int) {
	t.Helper()
	inside, versions := 0, map[uint32]uint32{} // versions by place
	for i, u := range all {
		newest := float32(u.Vector) + float32(u.Worker)/4 // its reward
		switch {
		case int(u.Number) != i || u.Count < 1 || count > 0 && u.Count != count || u.Job != 0 || u.Worker > 2:
			t.Errorf("update %d is %+v, want numbers in order, job 0, and %d inside", i, u, count)
		case u.Count == 1 && u.Reward != newest:
			t.Errorf("update %d has reward %v, want that of vector %d of worker %d, %v", i, u.Reward, u.Vector, u.Worker, newest)
		case u.Count > 1 && (u.Reward < newest || u.Reward > float32(u.Count)*(learnSteps+1)):
			t.Errorf("update %d has reward %v, want the sum of %d, of which one is %v", i, u.Reward, u.Count, newest)
		case u.Version != versions[u.First] || u.VersionSum > uint64(u.Version)*uint64(u.Count):
			t.Errorf("update %d is %+v, want version %d, and those that it was computed on no higher", i, u, versions[u.First])
		case u.GenNS == 0:
			t.Errorf("update %d has no time", i)
		}
		inside += int(u.Count)
		versions[u.First] += u.Count
	}
	if last := all[len(all)-1]; last.VersionSum == 0 {
		t.Errorf("the last update %+v was computed on no model", last)
	}
	if arrive > 0 && inside != arrive || inside == 0 {
		t.Errorf("%d updates arrive, want %d", inside, arrive)
	}
}

// checkPushes checks the answers that a worker's program receives about its updates, of which some are too old to be
// sent, and the models.
func checkPushes(t *testing.T, n *clientNotes, old int, answered bool) {
	t.Helper()
	withheld := 0
	for i, p := range n.Pushed {
		withheld += int(p.Withheld)
		if int(p.Round) != i || p.Numbers != (attach.Numbers{}) {
			t.Errorf("update %d is answered with %+v", i, p)
		}
	}
	if withheld != old {
		t.Errorf("%d updates were withheld, want %d", withheld, old)
	}
	if !slices.IsSortedFunc(n.Models, func(a, b attach.Model) int { return int(a.Version) - int(b.Version) }) ||
		answered && n.Models[learnSteps-1].Version == 0 {
		t.Errorf("models are %+v, want rising versions", n.Models)
	}
}

// TestAnswersDescribeEachSum checks, in one round through every system whose workers wait, that each answer has the
// round, the number of vectors, the sum of rewards, and the number of values that changed in the system's numbers.
func TestAnswersDescribeEachSum(t *testing.T) {
	for name, want := range map[string]attach.Numbers{
		"xagg":     {Clipped: 1, Vanished: 1, Saturated: 2}, // 30 is clipped, and 3 × 20 and 3 × 21.47 saturate
		"atp":      {Vanished: 1},                           // larger sums travel as floats
		"switchml": {Vanished: 1},                           // its scale follows the largest value
		"iswitch":  {}, "ps": {}, "ring": {},                // floats
	} {
		t.Run(name, func(t *testing.T) {
			r, notes := trainTest(t, &Program{Systems: []string{name}, Workers: 3, Values: 4}, simulated(t, "sync", system.Options{}))
			if got := r.Runs[0].Counts["rounds"]; got != 1 {
				t.Errorf("%d rounds, want 1", got)
			}
			for k := range 3 {
				got := notes[strconv.Itoa(k)].Sums[0]
				if want := (attach.Sum{Round: 0, Workers: 3, Numbers: want, Reward: 4.5}); got != want {
					t.Errorf("worker %d learns %+v, want %+v", k, got, want)
				}
			}
		})
	}
}

// TestWorkersThatDisagreeOnALength checks that vectors of different lengths in one round end the training with an error
// that gives the lengths, and that no worker gets a sum.
func TestWorkersThatDisagreeOnALength(t *testing.T) {
	t.Setenv("ONWIRE_LENGTHS", "1")
	for _, name := range []string{"switchml", "iswitch", "atp", "ps", "ring", "xagg"} {
		p := &Program{Systems: []string{name}, Workers: 2, Values: 4}
		testProgram(t, p)
		_, err := simulated(t, "sync", system.Options{})(p)
		if !errors.Is(err, attach.ErrDisagree) || !strings.Contains(err.Error(), "in round 0 the vector of worker") {
			t.Errorf("%s: the training ends with %v, want the lengths of a round", name, err)
		}
	}
}

// TestWorkerThatEndsEarlyEndsTraining lets the program of one worker end a round before those of the others, whether it is
// asked for its vector before the others or after them, and whether its computing time is given or measured. The training
// ends with an error, because there are no more sums.
func TestWorkerThatEndsEarlyEndsTraining(t *testing.T) {
	for _, compute := range []olaf.Duration{olaf.Millisecond, 0} {
		for _, name := range []string{"switchml", "ps"} {
			t.Run(fmt.Sprintf("%s after %s", name, compute), func(t *testing.T) {
				spec, err := systemSpec(name, "sync", system.Options{})
				if err != nil {
					t.Fatal(err)
				}
				checkEarlyEnd(t, name, func(p *Program) (*ProgramReport, error) {
					return p.RunJobs(t.Context(), &Jobs{Specs: map[string]*job.Spec{name: spec}, Compute: compute})
				})
			})
		}
	}
}

// checkEarlyEnd trains with a worker that ends a round early, for each worker.
func checkEarlyEnd(t *testing.T, system string, run func(*Program) (*ProgramReport, error)) {
	t.Helper()
	t.Setenv("ONWIRE_ROUNDS", "3")
	for leaves := range 3 {
		t.Setenv("ONWIRE_LEAVES", strconv.Itoa(leaves))
		p := &Program{Systems: []string{system}, Workers: 3, Values: 4}
		testProgram(t, p)
		if _, err := run(p); err == nil || !strings.Contains(err.Error(), "ended, and without it there are no more sums") {
			t.Errorf("the training ends with %v, want that worker %d ended", err, leaves)
		}
	}
}

// TestLimitOfUpdatesEndsTraining checks that training with programs that send more updates than a run may have ends
// with an error and does not wait for answers that never come.
func TestLimitOfUpdatesEndsTraining(t *testing.T) {
	for name, c := range map[string]struct {
		system string
		run    func(*Program) (*ProgramReport, error)
	}{
		"a queue in virtual time": {"olaf", inVirtualTime(t)},
		"ps without waiting":      {"ps", simulated(t, "async", system.Options{})},
		"iswitch without waiting": {"iswitch", simulated(t, "async", system.Options{H: 2, Bound: 3})},
		"sums":                    {"ps", simulated(t, "sync", system.Options{})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ONWIRE_ROUNDS", "6")
			p := &Program{Systems: []string{c.system}, Workers: 2, Values: 6, Slots: 8, OutRate: olaf.Mbps, most: 5}
			testProgram(t, p)
			if _, err := c.run(p); !errors.Is(err, ErrProgram) || !strings.Contains(err.Error(), "goes on after 5 updates") {
				t.Errorf("the training ends with %v, want that a worker goes on after 5 updates", err)
			}
		})
	}
}

// TestInterruptedTrainingLeavesNothing checks that the programs end and the folder with the sockets is gone if training
// is interrupted while the workers' programs hang before an update, or the server's before its answer.
func TestInterruptedTrainingLeavesNothing(t *testing.T) {
	for name, run := range map[string]func(context.Context, *Program) (*ProgramReport, error){
		"an ideal network": func(ctx context.Context, p *Program) (*ProgramReport, error) {
			p.Systems = []string{rl.Ideal}
			return p.RunQueues(ctx, nil)
		},
		"a queue in virtual time": func(ctx context.Context, p *Program) (*ProgramReport, error) {
			p.Systems = []string{"olaf"}
			return p.RunVirtual(ctx, olaf.Millisecond)
		},
		"ps in virtual time": func(ctx context.Context, p *Program) (*ProgramReport, error) {
			p.Systems = []string{"ps"}
			return simulatedIn(ctx, "async", system.Options{})(p)
		},
		"iswitch in virtual time": func(ctx context.Context, p *Program) (*ProgramReport, error) {
			p.Systems = []string{"iswitch"}
			return simulatedIn(ctx, "async", system.Options{})(p)
		},
	} {
		for _, role := range []string{"worker", "server"} {
			t.Run(name+", "+role, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				p := &Program{Workers: 2, Values: 6, Slots: 8, OutRate: olaf.Mbps}
				testProgram(t, p)
				folder, err := os.MkdirTemp("", "onwire") // t.TempDir is too long for a socket
				if err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(folder)
				t.Setenv("TMPDIR", folder)
				t.Setenv("ONWIRE_HANGS", role)
				p.Progress = func(format string, a ...any) {
					if strings.HasSuffix(fmt.Sprintf(format, a...), role+" hangs") {
						interrupt()
					}
				}
				if _, err := run(ctx, p); !errors.Is(err, context.Canceled) {
					t.Errorf("the training ends with %v, want that it was interrupted", err)
				}
				if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
					t.Errorf("%v is left in the folder for sockets, %v; want nothing", left, err)
				}
			})
		}
	}
}
