//go:build linux && (amd64 || arm64)

package vnp4

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/internal/test/peer"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
	"github.com/olafctl/olaf/p4ctl/p4"
	"github.com/olafctl/olaf/p4ctl/vnp4/driver"
)

const childVariable = "OLAF_TEST_VNP4_CHILD"

// TestMain makes the test binary act as the child process.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := driver.Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func childCommand() *exec.Cmd {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childVariable+"=1")
	return command
}

// standin compiles the stand-in library twice, because one shared object has one set of tables.
func standin(t *testing.T) (one, two string) {
	t.Helper()
	gcc := peer.NeedProgram(t, "gcc")
	dir := t.TempDir()
	one, two = filepath.Join(dir, "one.so"), filepath.Join(dir, "two.so")
	for _, path := range []string{one, two} {
		if out, err := exec.Command(gcc, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", path,
			"testdata/standin.c").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return one, two
}

// silicon models two instances behind registers.
type silicon struct {
	words   map[uint32]uint32
	entries map[[3]uint32]uint32 // instance, table, key → parameters
	broken  error
	groups  map[uint32][]agent.Member
}

func (s *silicon) Read32(address uint32) (uint32, error) {
	if address&0xfff == 0x10 {
		return 0x1af, s.broken
	}
	return 0, s.broken
}

func (s *silicon) Write32(address, value uint32) error {
	s.words[address] = value
	if address&0xfff != 8 || s.broken != nil {
		return s.broken
	}
	base := address &^ 0xfff
	key := [3]uint32{base, value >> 8, s.words[base]}
	switch value & 0xff {
	case 1, 2:
		s.entries[key] = s.words[base+4]
	case 3:
		delete(s.entries, key)
	case 4:
		maps.DeleteFunc(s.entries, func(k [3]uint32, _ uint32) bool { return k[0] == base && k[1] == value>>8 })
	}
	return nil
}

func (s *silicon) SetGroup(id uint32, members []agent.Member) error {
	s.groups[id] = members
	return nil
}

func (s *silicon) DeleteGroup(id uint32) error { delete(s.groups, id); return nil }

func newSilicon() *silicon {
	return &silicon{words: make(map[uint32]uint32), entries: make(map[[3]uint32]uint32),
		groups: make(map[uint32][]agent.Member)}
}

func open(t *testing.T) (*Backend, *silicon) {
	t.Helper()
	one, two := standin(t)
	s := newSilicon()
	b, err := New(Options{Registers: s, Replication: s, Command: childCommand, Patience: 4 * time.Second,
		Instances: []Instance{
			{Block: "vnp4_1", Library: one, Config: "XilVitisNetP4TargetConfig_standin", Base: 0x10000, Size: 0x1000},
			{Block: "vnp4_2", Library: two, Config: "XilVitisNetP4TargetConfig_standin", Base: 0x20000, Size: 0x1000}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, s
}

func worker(op agent.Op, key, cluster, id uint32) agent.Change {
	return agent.Change{Op: op, Entry: &agent.Entry{Table: p4.TableWorkers, Key: key, Action: p4.ActionSetWorker,
		Params: [program.MaxParams]uint32{cluster, id}}}
}

func do(t *testing.T, b *Backend, want codes.Code, c agent.Change) {
	t.Helper()
	if err := b.Do(c); status.Code(err) != want {
		t.Errorf("%v: got %v, want %v", c, err, want)
	}
}

// TestEntriesReachTheCard checks keys and parameters down to the registers, for both blocks.
func TestEntriesReachTheCard(t *testing.T) {
	b, s := open(t)
	do(t, b, codes.OK, worker(v1.Update_INSERT, 0x0a000001, 3, 4))
	do(t, b, codes.OK, agent.Change{Op: v1.Update_INSERT, Entry: &agent.Entry{Table: p4.TableServers, Key: 5,
		Action: p4.ActionSetServer}})
	do(t, b, codes.OK, agent.Change{Op: v1.Update_INSERT, Group: &agent.Group{ID: 9,
		Members: []agent.Member{{Port: 1, Instance: 2}}}})
	do(t, b, codes.OK, agent.Change{Op: v1.Update_INSERT, Entry: &agent.Entry{Table: p4.TableClusterGroups, Key: 3,
		Action: p4.ActionSetGroup, Params: [program.MaxParams]uint32{9}}})
	want := map[[3]uint32]uint32{{0x10000, 2, 0x0a000001}: 0x00030004, {0x10000, 1, 5}: 0, {0x20000, 3, 3}: 9}
	if !maps.Equal(s.entries, want) || len(s.groups[9]) != 1 {
		t.Errorf("the card holds %x and groups %v, want %x", s.entries, s.groups, want)
	}
	do(t, b, codes.OK, worker(v1.Update_MODIFY, 0x0a000001, 5, 4))
	do(t, b, codes.AlreadyExists, worker(v1.Update_INSERT, 0x0a000001, 3, 4))
	do(t, b, codes.NotFound, worker(v1.Update_DELETE, 77, 0, 0))
	for key := range uint32(5) {
		do(t, b, codes.OK, worker(v1.Update_INSERT, key, 1, key))
	}
	do(t, b, codes.ResourceExhausted, worker(v1.Update_INSERT, 6, 1, 6))
	do(t, b, codes.OK, worker(v1.Update_DELETE, 0x0a000001, 0, 0))
	do(t, b, codes.OK, worker(v1.Update_INSERT, 6, 1, 6))
	if got := s.entries[[3]uint32{0x10000, 2, 6}]; got != 0x00010006 {
		t.Errorf("worker 6 is %x", got)
	}
	if err := b.Commit(new(agent.State)); err != nil || len(s.entries) != 0 || len(s.groups) != 0 {
		t.Errorf("after an empty commit the card holds %x %v (%v)", s.entries, s.groups, err)
	}
}

// TestDriverDies checks that after the driver's death the card has the same entries, and so has a new driver.
func TestDriverDies(t *testing.T) {
	for name, key := range map[string]uint32{"by abort": 0xdeadbeef, "by silence": 0xdeadfeed} {
		t.Run(name, func(t *testing.T) {
			b, s := open(t)
			do(t, b, codes.OK, worker(v1.Update_INSERT, 1, 1, 1))
			do(t, b, codes.OK, worker(v1.Update_INSERT, 2, 2, 2))
			do(t, b, codes.OK, worker(v1.Update_MODIFY, 2, 3, 3))
			before := maps.Clone(s.entries)
			do(t, b, codes.Aborted, worker(v1.Update_INSERT, key, 1, 1))
			if !maps.Equal(s.entries, before) {
				t.Errorf("the card holds %x, before %x", s.entries, before)
			}
			do(t, b, codes.AlreadyExists, worker(v1.Update_INSERT, 1, 1, 1))
			do(t, b, codes.OK, worker(v1.Update_DELETE, 2, 0, 0))
		})
	}
}

// TestCardRefuses checks the error for an update whose register access fails or is out of bounds.
func TestCardRefuses(t *testing.T) {
	b, s := open(t)
	err := b.Do(worker(v1.Update_INSERT, 0xdead0000, 1, 1))
	if err == nil || !strings.Contains(err.Error(), "register 0x4000, outside of its instance") || s.words[0x14000] != 0 {
		t.Errorf("outside: %v", err)
	}
	s.broken = errors.New("device is gone")
	if err := b.Do(worker(v1.Update_INSERT, 1, 1, 1)); !errors.Is(err, s.broken) {
		t.Errorf("a card that is gone: %v", err)
	}
	s.broken = nil
	do(t, b, codes.OK, worker(v1.Update_INSERT, 1, 1, 1))
}

// TestNoDriver checks the one-line error for a faulty library.
func TestNoDriver(t *testing.T) {
	one, two := standin(t)
	for name, c := range map[string]struct{ library, config, want string }{
		"missing library": {filepath.Join(t.TempDir(), "no.so"), "x", "no.so"},
		"another library": {"libc.so.6", "x", "no vitisnetp4 driver"},
		"no such config":  {one, "XilVitisNetP4TargetConfig_other", "which IP instance"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSilicon()
			_, err := New(Options{Registers: s, Replication: s, Command: childCommand, Instances: []Instance{
				{Block: "vnp4_1", Library: c.library, Config: c.config, Size: 0x1000}, {Block: "vnp4_2", Library: two,
					Config: "XilVitisNetP4TargetConfig_standin", Size: 0x1000}}})
			if !errors.Is(err, ErrDriver) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := New(Options{Command: childCommand}); !errors.Is(err, ErrDriver) {
		t.Errorf("no instances: %v", err)
	}
}

// TestSessionToCard checks the whole path from a controller's session to the registers, and again after the agent was
// lost.
func TestSessionToCard(t *testing.T) {
	b, s := open(t)
	dir := t.TempDir()
	var a *agent.Agent
	serve := func(b *Backend) (*p4ctl.Session, *agent.Running) {
		var err error
		a, err = agent.New(agent.Options{Backend: b, Profile: p4.Lab(), Journal: filepath.Join(dir, "journal")})
		if err != nil {
			t.Fatal(err)
		}
		l, err := agent.Listen("unix:"+filepath.Join(dir, "s"), false)
		if err != nil {
			t.Fatal(err)
		}
		running := a.Serve(l, nil)
		session, err := p4ctl.Dial(t.Context(), running.Target(), p4ctl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return session, running
	}
	session, running := serve(b)
	if _, err := session.PushPipeline(t.Context(), p4ctl.PipelineConfig(p4.Lab())); err != nil {
		t.Fatal(err)
	}
	desired := p4ctl.Tables{Servers: []netip.Addr{netip.MustParseAddr("192.168.0.1")}}
	for i := range byte(4) {
		desired.Workers = append(desired.Workers, p4ctl.Worker{Address: netip.AddrFrom4([4]byte{10, 0, 0, i}),
			Cluster: olaf.ClusterID(i / 2), ID: olaf.WorkerID(i)})
	}
	desired = desired.WithGroups(1)
	if _, err := session.Sync(t.Context(), desired); err != nil {
		t.Fatal(err)
	}
	before := maps.Clone(s.entries)
	if len(before) != 4+1+2 || len(s.groups) != 2 {
		t.Fatalf("the card holds %x %v", before, s.groups)
	}
	tooMany := p4ctl.Tables{Servers: desired.Servers, Workers: append([]p4ctl.Worker(nil), desired.Workers...)}
	for i := range byte(3) { // the bitstream has room for six entries
		tooMany.Workers = append(tooMany.Workers, p4ctl.Worker{Address: netip.AddrFrom4([4]byte{10, 0, 1, i}), Cluster: 0,
			ID: olaf.WorkerID(10 + i)})
	}
	if _, err := session.Sync(t.Context(), tooMany.WithGroups(1)); !errors.Is(err, p4ctl.ErrFull) ||
		!maps.Equal(s.entries, before) {
		t.Errorf("a batch that the card can't hold leaves %x (%v), before %x", s.entries, err, before)
	}
	session.Close()
	running.Close() // the agent dies without a message
	a.Close()       // releases the agent's journal
	b.Close()

	s.entries[[3]uint32{0x10000, 2, 99}] = 1 // and another program writes
	again, err := New(b.options)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	session, running = serve(again)
	defer func() { running.Close(); a.Close() }()
	defer session.Close()
	if !maps.Equal(s.entries, before) {
		t.Errorf("after a restart the card holds %x, before %x", s.entries, before)
	}
	if plan, err := session.Sync(t.Context(), desired); err != nil || !plan.Empty() {
		t.Errorf("after a restart a sync writes %v (%v)", plan, err)
	}
}
