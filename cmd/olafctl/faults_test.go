package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends"
	"github.com/olafctl/olaf/backends/backendstest"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/program/iswitch"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/internal/splitmix"
	"github.com/olafctl/olaf/internal/test/raced"
)

// faulted lists the commands for fault scripts, which run on a card that has completed a run.
var faulted = []struct {
	args  string
	lab   bool                        // needs tables and a capture
	sums  bool                        // a program in front of the queue has partial sums
	lent  bool                        // the command reaches the card through 'olafctl device serve'
	holds func(*pcietest.Card) string // returns the card's state after the command
	want  string
}{
	{args: "device doctor"},
	{args: "device info"},
	{args: "device list"},
	{args: "device watch --count 2 -o csv"},
	{args: "reg dump -o csv"},
	{args: "reg dump generator --no-latch -o csv"},
	{args: "reg read queue.depth queue.status queue.in generator.state generator.start_cycle common.build_hash"},
	{args: "reg write queue.control.enable=0 queue.depth=5 queue.mode.discipline=fifo queue.limiter_overhead=24",
		holds: register(regmap.QueueDepth), want: "0x5"},
	{args: "reg write replication.group_index=3 replication.group_size=2 replication.member_data=1 replication.member_data=2"},
	{args: "reg flows -o csv"},
	{args: "reg slots", sums: true, holds: register(regmap.QueueControl), want: "0x0"},
	{args: "reg snapshot"},
	{args: "reg diff BEFORE -o csv"},
	{args: "device info", lent: true},
	{args: "device watch --count 2 -o csv", lent: true},
	{args: "reg dump -o csv", lent: true},
	{args: "reg slots", sums: true, lent: true, holds: register(regmap.QueueControl), want: "0x0"},
	{args: "reg write queue.control.enable=0 queue.depth=5 queue.mode.discipline=fifo", lent: true, holds: register(regmap.QueueDepth),
		want: "0x5"},
	{args: "device reset", lent: true, holds: register(regmap.QueueDepth), want: "0x8"},
	{args: "device reset", holds: register(regmap.QueueDepth), want: "0x8"},
	{args: "device reset --part box", holds: register(regmap.QueueDepth), want: "0x8"},
	{args: "bench --runs 1 --updates 3 --versus none --out-rate 40G --keep=false -q -o csv", lab: true},
}

func register(addr uint32) func(*pcietest.Card) string {
	return func(c *pcietest.Card) string { return fmt.Sprintf("%#x", c.Load32(addr)) }
}

// world contains the bus with the cards, and the output from a healthy card.
type world struct {
	bus    pcie.Bus
	before string // contents of the stored registers
}

// patient is a card and the environment in which a command finds it.
type patient struct {
	card *pcietest.Card
	env  *cli.Env
}

// played is the outcome of a command.
type played struct {
	code           int
	stdout, stderr string
	held           string
	script         *pcietest.Script
}

// play runs a command and injects faults meanwhile.
func play(t *testing.T, w world, command int, faults []pcietest.Fault) played {
	c := &faulted[command]
	p := newPatient(t, w.bus, c.lab, c.sums)
	var stdout, stderr bytes.Buffer
	p.env.Stdout, p.env.Stderr = &stdout, &stderr
	script := p.card.Play(faults)
	args := strings.Fields(strings.Replace(c.args, "BEFORE", w.before, 1))
	out := played{script: script}
	switch {
	case c.lent:
		out.code = p.borrow(t, args, &stderr)
	case c.args == "device list":
		out.code = run(t.Context(), p.env, args)
	default:
		out.code = run(t.Context(), p.env, append(args, "-d", backendstest.CardAddress))
	}
	out.stdout, out.stderr = timeless(stdout.String()), stderr.String()
	if p.card.OnLoad, p.card.OnStore = nil, nil; c.holds != nil {
		out.held = c.holds(p.card)
	}
	return out
}

// borrow serves the card while a command uses it through the server. The outcome is the server's if the server failed
// and the command did not.
func (p *patient) borrow(t *testing.T, args []string, stderr *bytes.Buffer) int {
	target := "unix:" + filepath.Join(t.TempDir(), "s")
	said := &signalWriter{text: "Ctrl-C", seen: make(chan struct{})}
	lender := *p.env
	lender.Stdout, lender.Stderr = new(bytes.Buffer), said
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, &lender, []string{"serve", "--listen", target, "-d", backendstest.CardAddress})
	}()
	select {
	case code := <-ended: // the card could not be opened
		stderr.WriteString(said.all.String())
		return code
	case <-said.seen:
	}
	code := run(t.Context(), p.env, append(args, "-d", target))
	stop()
	if back := <-ended; back != cli.ExitDone && code == cli.ExitDone {
		_, failure, _ := strings.Cut(said.all.String(), "\n")
		stderr.WriteString(failure)
		return back
	}
	return code
}

// newPatient returns a card that has completed a run of a few updates, with a queue of 6 slots and with frames lost in
// its adapters.
func newPatient(t *testing.T, bus pcie.Bus, lab, sums bool) *patient {
	env := testEnvironment(nil, nil)
	if lab {
		l := backendstest.NewLab(t)
		env.Bus = *l.Bus
		pci := backends.CardDevice(&env.Bus)
		pci.Testbed = withCard(pci.Testbed, l.Access.Card)
		env.Devices = testbed.Devices{testbed.TwinDevice(), pci}
		return &patient{l.Card, env}
	}
	cfg := twin.Config{}
	if sums {
		cfg.Programs, cfg.Tables = system.All().Open().Programs(), everybody{}
	}
	card, err := pcietest.New(cfg)
	ok(t, err)
	ok(t, countSomething(t, card))
	if sums {
		ok(t, holdSums(t, card))
	}
	card.Shell[0xB030], card.Shell[0xF010] = 40, 50
	bus.Map = func(string, int64, bool) (pcie.Window, error) { return card, nil }
	env.Bus, env.Bus.Clock = bus, card
	return &patient{card, env}
}

// withCard wraps open to add the devices behind a card.
func withCard(open func(context.Context, string, testbed.OpenOptions) (*testbed.Testbed, error), card testbed.CardAccess) func(context.Context, string, testbed.OpenOptions) (*testbed.Testbed, error) {
	return func(ctx context.Context, name string, o testbed.OpenOptions) (*testbed.Testbed, error) {
		o.Card = card
		return open(ctx, name, o)
	}
}

// countSomething makes a card count some packets.
func countSomething(t *testing.T, card *pcietest.Card) error {
	spec := bench.DefaultSpec(system.All())
	spec.Runs, spec.Slots, spec.Workload.UpdatesPerWorker = 1, 6, 2
	plan, err := bench.NewPlan(spec)
	if err != nil {
		return err
	}
	rig, err := plan.Rig(testbed.Card{Device: card.Twin(), Tap: card.Twin()})
	if err != nil {
		return err
	}
	if _, err := rig.Load(t.Context(), 0); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return rig.Prepare(t.Context(), 0) }, rig.Generator.Arm, rig.Generator.Start,
		func() error { return card.Wait(t.Context(), 50_000_000_000) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return rig.Close()
}

// everybody contains the tables for three workers per cluster, at the addresses of a bench.
type everybody struct{}

func (everybody) Worker(a netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool) {
	ip := a.As4()
	return olaf.ClusterID(ip[3] / 3), olaf.WorkerID(ip[3]), ip[1] == 1
}

func (everybody) Server(netip.Addr) bool { return true }

func (everybody) Group(olaf.ClusterID) ([]olaf.WorkerID, bool) { return nil, false }

func (everybody) Version() uint64 { return 1 }

// holdSums resends five updates of the run to a program that needs many more, and stops its queue.
func holdSums(t *testing.T, card *pcietest.Card) error {
	for _, w := range []struct{ at, value uint32 }{
		{regmap.QueueControl, 0}, {regmap.AggregatorProgram, iswitch.Describe().Code}, {regmap.AggregatorH, 200},
		{regmap.QueueControl, regmap.QueueControlEnable},
		{regmap.GeneratorStopAfter, 5}, {regmap.GeneratorCommand, regmap.GeneratorCommandArm},
		{regmap.GeneratorCommand, regmap.GeneratorCommandStart},
	} {
		if err := card.Twin().Write32(w.at, w.value); err != nil {
			return err
		}
	}
	if err := card.Wait(t.Context(), olaf.Second); err != nil {
		return err
	}
	if held := len(card.Twin().Table().Held); held == 0 {
		return errors.New("the program holds nothing")
	}
	return card.Twin().Write32(regmap.QueueControl, 0)
}

// failedRun matches the error of a run that was not used.
var failedRun = regexp.MustCompile(`^olafctl: (invalid run|run failed): `)

// times matches numbers that a delay may change; addresses matches socket addresses.
var times = regexp.MustCompile(`(?m)^((?:common\.cycles|queue\.snapshot_cycle|queue\.covered_cycles),0x[0-9a-f]+,).*$|^()\d+`)

var (
	keptTimes = regexp.MustCompile(`("name": "(?:common\.cycles|queue\.snapshot_cycle|queue\.covered_cycles)",\s+"address": \d+,\s+"value": )"0x[0-9a-f]+"`)
	addresses = regexp.MustCompile(`unix:\S+`)
)

func timeless(s string) string {
	return addresses.ReplaceAllString(keptTimes.ReplaceAllString(times.ReplaceAllString(s, "${1}T"), "${1}T"), "unix:S")
}

// right reports whether every number in the answer is true. Between two numbers, another session's reset may change the
// truth.
func (p played) right(truths []played) bool {
	got := cells(p.stdout)
	shapes := slices.DeleteFunc(slices.Clone(truths),
		func(w played) bool { return w.code != p.code || len(cells(w.stdout)) != len(got) })
	for i := range got {
		if !slices.ContainsFunc(shapes, func(w played) bool { return cells(w.stdout)[i] == got[i] }) {
			return false
		}
	}
	return len(shapes) > 0
}

func cells(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == '\n' || r == ' ' })
}

// others reports whether a fault changes the truth.
func others(m pcietest.Met) bool {
	return slices.Contains([]pcietest.Kind{pcietest.BoxReset, pcietest.Adapters, pcietest.PowerCycles, pcietest.Reprograms}, m.Kind)
}

// unwitnessed reports whether a fault flips a bit in an answer that cannot be confirmed by reading it again: from the
// shell, whose registers are not known well enough, or from the clock, which changes every nanosecond.
func unwitnessed(m pcietest.Met) bool {
	return m.Kind == pcietest.Flip && !m.Write &&
		(m.Offset < regmap.CommonBase || m.Offset == regmap.CommonCycles || m.Offset == regmap.CommonCycles+4)
}

// agreeing returns two faults that change the same register in the same way, so that one confirms the other.
func agreeing(met []pcietest.Met) int {
	for i, a := range met {
		for _, b := range met[:i] {
			if a.Offset == b.Offset && a.Kind == b.Kind && (a.Kind == pcietest.Lose || a.Kind == pcietest.Flip && a.Bit == b.Bit) {
				return i
			}
		}
	}
	return -1
}

// truths returns the command's outcomes on a card without faults and on a card with a fault that occurs before the
// command starts.
func truths(t *testing.T, w world, command int) []played {
	all := []played{play(t, w, command, nil)}
	for _, kind := range []pcietest.Kind{pcietest.BoxReset, pcietest.Adapters, pcietest.PowerCycles, pcietest.Reprograms} {
		all = append(all, play(t, w, command, []pcietest.Fault{{Kind: kind}}))
	}
	return all
}

// campaign runs scripts and counts their outcomes.
type campaign struct {
	world
	truths [][]played
	right  int
	typed  int
	passed map[string]int // wrong answers without a contradiction, by register
}

func newCampaign(t *testing.T) *campaign {
	card, err := pcietest.New(twin.Config{})
	ok(t, err)
	c := &campaign{passed: map[string]int{}}
	c.bus, err = card.Bus(t.TempDir(), pcietest.OpenNIC())
	ok(t, err)
	c.before = filepath.Join(t.TempDir(), "before.json")
	p := newPatient(t, c.bus, false, false)
	p.env.Stdout, p.env.Stderr = io.Discard, io.Discard
	if run(t.Context(), p.env, []string{"reg", "snapshot", "-w", c.before, "-d", backendstest.CardAddress}) != cli.ExitDone {
		t.Fatal("no snapshot of a healthy card")
	}
	for i := range faulted {
		all := truths(t, c.world, i)
		if all[0].code != 0 || all[0].held != faulted[i].want {
			t.Fatalf("%s on a healthy card: %d\n%s%s%s", faulted[i].args, all[0].code, all[0].stdout, all[0].stderr, all[0].held)
		}
		c.truths = append(c.truths, all)
	}
	return c
}

// judge runs one script and returns a description of what is wrong with its outcome, or "" if it is right.
func (c *campaign) judge(t *testing.T, command int, faults []pcietest.Fault) string {
	p := play(t, c.world, command, faults)
	met, can := p.script.Met, c.truths[command][:1]
	if slices.ContainsFunc(met, others) {
		can = c.truths[command]
	}
	held := p.held == faulted[command].want || slices.ContainsFunc(met, others)
	switch {
	case p.code == 0 && held && p.right(can):
		c.right++
	case p.code == cli.ExitDevice && strings.Count(p.stderr, "\n") == 1, p.code == cli.ExitFailed && failedRun.MatchString(p.stderr):
		c.typed++
	case p.code == cli.ExitDone && strings.Contains(p.stdout, "  refused  "): // a list marks the card and continues
		c.typed++
	case slices.ContainsFunc(met, unwitnessed):
		c.passed[met[slices.IndexFunc(met, unwitnessed)].Location()]++
	case agreeing(met) >= 0:
		c.passed["twice at "+met[agreeing(met)].Location()]++
	default:
		return fmt.Sprintf("%s ended with %d after %v and holds %q\n%s%s", faulted[command].args, p.code, met, p.held, p.stderr,
			cmp.Diff(can[0].stdout, p.stdout))
	}
	return ""
}

// drawFaults draws a script for a command. In half of the draws every access is equally likely; the other half prefers
// writes, which are few but matter more.
func (c *campaign) drawFaults(r *rapid.T, command int) []pcietest.Fault {
	well := c.truths[command][0].script
	fault := rapid.Map(rapid.Uint64(), func(seed uint64) pcietest.Fault {
		draw := func(n uint64, of int) int { return int(splitmix.MixBits(seed+n) % uint64(of)) }
		f := pcietest.Fault{Access: draw(0, well.Done), Kind: pcietest.Kind(draw(1, int(pcietest.Kinds))), Bit: draw(2, 32)}
		if writes := well.Writes; len(writes) > 0 && draw(3, 2) == 0 {
			f.Access = writes[draw(4, len(writes))]
		}
		return f
	})
	return rapid.SliceOfN(fault, 1, 3).Draw(r, "faults")
}

// TestPastFaults checks the outcomes of scripts that once produced wrong answers.
func TestPastFaults(t *testing.T) {
	c := newCampaign(t)
	for _, s := range []struct {
		args   string // beginning of the command line
		faults []pcietest.Fault
	}{
		{"device doctor", []pcietest.Fault{{Access: 6, Kind: pcietest.Flip}}},
		{"device watch", []pcietest.Fault{{Access: 211, Kind: pcietest.Delay, Bit: 20}}},
		{"reg dump -o", []pcietest.Fault{{Access: 22, Kind: pcietest.Flip, Bit: 31}}},
		{"reg dump -o", []pcietest.Fault{{Access: 0, Kind: pcietest.Lose}, {Access: 23, Kind: pcietest.Lose}}},
		{"reg flows", []pcietest.Fault{{Access: 42, Kind: pcietest.PowerCycles}}},
		{"reg slots", []pcietest.Fault{{Access: 52, Kind: pcietest.BoxReset}}},
		{"bench", []pcietest.Fault{{Access: 495, Kind: pcietest.Lose}}},
		{"bench", []pcietest.Fault{{Access: 1493, Kind: pcietest.BoxReset}}},
	} {
		for command := range faulted {
			if strings.HasPrefix(faulted[command].args, s.args) {
				if wrong := c.judge(t, command, s.faults); wrong != "" {
					t.Error(wrong)
				}
			}
		}
	}
}

// TestFaults checks that every command ends with the right answer or with an error, regardless of the faults in its
// accesses to a card. `make faults` runs 10,000 scripts.
func TestFaults(t *testing.T) {
	raced.SkipRaced(t)
	c := newCampaign(t)
	rapid.Check(t, func(r *rapid.T) {
		command := rapid.IntRange(0, len(faulted)-1).Draw(r, "command")
		if wrong := c.judge(t, command, c.drawFaults(r, command)); wrong != "" {
			r.Fatal(wrong)
		}
	})
	t.Logf("%d right, %d typed errors, and %v passed", c.right, c.typed, c.passed)
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
