package backends

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// keyWriter is a driver that writes the key of every entry into the first table window.
type keyWriter struct{ card testbed.CardTables }

func (*keyWriter) Verify(*configv1.P4Info, []byte) error { return nil }
func (*keyWriter) AtomicBatches() bool                   { return false }
func (*keyWriter) Publish(*agent.State)                  {}
func (k *keyWriter) Commit(s *agent.State) (err error) {
	s.Changes(func(c agent.Change) bool {
		err = k.Do(c)
		return err == nil
	})
	return err
}

func (k *keyWriter) Do(c agent.Change) error {
	if c.Group != nil {
		return k.card.SetGroup(c.Group.ID, c.Group.Members)
	}
	return k.card.Write32(pcie.TablesBase, c.Entry.Key)
}

// TestCardBehindAnAgent checks, for a fake card lent with its tables, that entries reach the windows and groups the
// replication block, and that registers can be used at the same time.
func TestCardBehindAnAgent(t *testing.T) {
	card, err := pcietest.New(twin.Config{})
	want(t, err)
	bus, err := card.Bus(t.TempDir(), pcietest.OpenNIC())
	want(t, err)
	stopped := false
	s, err := testbed.ServeDevice(context.Background(), "pci:"+pcietest.BDF, testbed.ServeOptions{
		Listen: "unix:" + filepath.Join(t.TempDir(), "s"),
		Device: testbed.DeviceOptions{Access: testbed.Access{Devices: testbed.Devices{CardDevice(&bus)}, Locks: bus.Locks, Card: testbed.CardAccess{
			Tables: func(c testbed.CardTables) (agent.Backend, func() error, error) {
				return &keyWriter{c}, func() error { stopped = true; return nil }, nil
			}}}}})
	want(t, err)
	session, err := p4ctl.Dial(context.Background(), s.Target, p4ctl.Options{})
	want(t, err)
	tables := p4ctl.Tables{Workers: []p4ctl.Worker{{Address: netip.MustParseAddr("10.0.0.7"), Cluster: 2, ID: 7}}}.WithGroups(3)
	_, err = session.Sync(context.Background(), tables)
	want(t, err)
	d, err := testbed.OpenDevice(context.Background(), "grpc:"+s.Target, testbed.DeviceOptions{Access: testbed.Access{Devices: testbed.Devices{testbed.AgentDevice()}}})
	want(t, err)
	want(t, d.Write32(regmap.ReplicationGroupIndex, 3))
	if v, err := d.Read32(regmap.ReplicationMemberData); v != 3<<16|7 || err != nil {
		t.Errorf("the member of group 3 is %#x, %v", v, err)
	}
	if key := card.Load32(pcie.TablesBase); key != 0x0A000007 {
		t.Errorf("the window holds %#x", key)
	}
	if _, err := d.Read32(pcie.TablesBase); !errors.Is(err, fpga.ErrAddress) {
		t.Errorf("the driver's window through the register service: %v", err)
	}
	tables.Groups[0].Members[0].Port = 256
	var refused *p4ctl.BatchError
	if _, err := session.Sync(context.Background(), tables); !errors.As(err, &refused) {
		t.Errorf("a port that the card's field does not hold: %v", err)
	}
	tables.Groups[0].Members[0].Port = 4
	card.StuckBits(regmap.ReplicationMemberData, 1, 0)
	if _, err := session.Sync(context.Background(), tables); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), "member 0 reads 0x40006 after 0x40007 was written") {
		t.Errorf("a member that the card does not hold: %v", err)
	}
	want(t, errors.Join(d.Close(), session.Close(), s.Close()))
	if !stopped {
		t.Error("the driver was not ended")
	}
	again, err := pcie.Open(bus, pcietest.BDF, pcie.Options{}) // the lock is free
	want(t, err)
	want(t, again.Close())
}

func want(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTablesOfAReplacedCard checks that an agent whose card was replaced while idle, or during a batch, neither lists
// tables nor reports any as written, but reports the loss.
func TestTablesOfAReplacedCard(t *testing.T) {
	tables := p4ctl.Tables{Workers: []p4ctl.Worker{{Address: netip.MustParseAddr("10.0.0.7"), Cluster: 2, ID: 7}}}.WithGroups(3)
	others := p4ctl.Tables{Workers: []p4ctl.Worker{{Address: netip.MustParseAddr("10.0.0.9"), Cluster: 2, ID: 9}}}.WithGroups(3)
	write := func(s *p4ctl.Session) error {
		_, err := s.Apply(context.Background(), p4ctl.Diff(tables, others))
		return err
	}
	read := func(s *p4ctl.Session) error { _, err := s.Read(context.Background()); return err }
	replace := func(card *pcietest.Card) { card.Reprogram() }
	for name, c := range map[string]struct {
		happens func(*pcietest.Card)
		use     func(*p4ctl.Session) error
	}{
		"before a list":              {replace, read},
		"before a write":             {replace, write},
		"power cycle before a write": {func(card *pcietest.Card) { want(t, card.PowerCycle()) }, write},
		"in a batch": {func(card *pcietest.Card) {
			card.OnStore = func(_ int, offset, _ uint32) bool {
				if offset == pcie.TablesBase {
					card.Reprogram()
				}
				return false
			}
		}, write},
	} {
		t.Run(name, func(t *testing.T) {
			card, err := pcietest.New(twin.Config{})
			want(t, err)
			want(t, card.Wait(context.Background(), olaf.Second))
			bus, err := card.Bus(t.TempDir(), pcietest.OpenNIC())
			want(t, err)
			s, err := testbed.ServeDevice(context.Background(), "pci:"+pcietest.BDF, testbed.ServeOptions{
				Listen: "unix:" + filepath.Join(t.TempDir(), "s"),
				Device: testbed.DeviceOptions{Access: testbed.Access{Devices: testbed.Devices{CardDevice(&bus)}, Locks: bus.Locks, Card: testbed.CardAccess{
					Tables: func(c testbed.CardTables) (agent.Backend, func() error, error) {
						return &keyWriter{c}, func() error { return nil }, nil
					}}}}})
			want(t, err)
			session, err := p4ctl.Dial(context.Background(), s.Target, p4ctl.Options{})
			want(t, err)
			_, err = session.Sync(context.Background(), tables)
			want(t, err)
			c.happens(card)
			if err := c.use(session); !errors.Is(err, p4ctl.ErrTablesUnknown) || !strings.Contains(err.Error(), "device is gone") {
				t.Errorf("%v; want %q", err, p4ctl.ErrTablesUnknown)
			}
			select {
			case err := <-s.LostDevice():
				if !errors.Is(err, fpga.ErrGone) {
					t.Errorf("lost: %v", err)
				}
			default:
				t.Error("the agent did not notice that its card is lost")
			}
			want(t, errors.Join(session.Close(), s.End()))
		})
	}
}
