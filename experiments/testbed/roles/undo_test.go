package roles

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
)

// heldHost is this host with a holder that is only recorded.
type heldHost struct {
	localHost
	isHeld  *bool
	refuses error // error from starting the holder
}

func (h heldHost) testbedState(context.Context, string) (*lab.State, error) {
	if *h.isHeld {
		return new(lab.State), nil
	}
	return nil, nil
}

func (h heldHost) hold(context.Context, *HostPart) error {
	*h.isHeld = *h.isHeld || h.refuses == nil
	return h.refuses
}

func (h heldHost) letGo(context.Context, string) error {
	*h.isHeld = false
	return nil
}

// TestFailedUpUndoesItself checks that if one step of bringing up a testbed of two hosts fails, there are afterwards
// the same reservations and holders as before.
func TestFailedUpUndoesItself(t *testing.T) {
	for name, c := range map[string]struct {
		reserved bool   // reserved for a minute before the test
		held     []bool // which hosts are held before the test
		taken    string // an interface that another user has reserved
		refuses  error  // error from starting the second holder
		links    error  // error from checking the links
		folder   bool   // the plan cannot be stored
	}{
		"a reserved interface":             {held: []bool{false, false}, taken: "eth1"},
		"a reserved interface, when up":    {reserved: true, held: []bool{true, true}, taken: "eth1"},
		"a host without a holder":          {held: []bool{false, false}, refuses: errors.New("no")},
		"the same, after a reservation":    {reserved: true, held: []bool{false, false}, refuses: errors.New("no")},
		"the same, when the other is held": {reserved: true, held: []bool{true, false}, refuses: errors.New("no")},
		"a link that leads nowhere":        {held: []bool{false, false}, links: errors.New("no")},
		"no place for the plan":            {held: []bool{false, false}, folder: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			r := &testbed.Reservations{Dir: filepath.Join(t.TempDir(), "olafctl")}
			access := testbed.Access{Devices: testbed.Devices{testbed.TwinDevice()}, Owner: "alice@desk", Reservations: r}
			p := &Plan{Name: "paper", Hosts: []lab.PlannedHost{{Name: "a"}, {Name: "b"}},
				Queue: &Role{Host: "a", Device: "twin:"}, Generator: &Role{Host: "a", Interface: "eth0"}, Server: &Role{Host: "b", Interface: "eth1"}}
			before, held := 0, slices.Clone(c.held)
			if c.reserved {
				before = 2
				first := *p
				first.Server = &Role{Host: "b", Interface: "eth2"}
				if err := ReserveHosts(t.Context(), &first, "", time.Minute, access, nil); err != nil {
					t.Fatal(err)
				}
			}
			if c.taken != "" {
				before++
				uses := []string{testbed.InterfaceResource(c.taken)}
				if err := r.Take(testbed.Reservation{Testbed: "other", Owner: "bob@lab", Resources: uses}, time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			if c.folder { // the folder must have mode 0700
				if err := os.Mkdir(filepath.Dir(upPath(t)), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			s := &Hosts{plan: p, access: access}
			for i := range held {
				h := heldHost{localHost{&s.access}, &held[i], nil}
				if i == 1 {
					h.refuses = c.refuses
				}
				s.links = append(s.links, h)
			}
			probe := func(context.Context, string, time.Duration) (undoing, error) {
				return func(context.Context) error { return nil }, c.links
			}
			if err := s.bringUp(t.Context(), "", time.Hour, []setupStep{s.reserve, s.hold, probe}); err == nil {
				t.Fatal("it is up")
			}
			if !slices.Equal(held, c.held) {
				t.Errorf("hosts are held: %t, want as before: %t", held, c.held)
			}
			all, err := r.List()
			if err != nil || len(all) != before {
				t.Errorf("%v, reservations are left: %+v; want the %d of before", err, all, before)
			}
			for i := range all {
				if r := &all[i]; r.Owner == access.Owner && (r.Left > time.Minute || slices.Contains(r.Resources, "interface eth1")) {
					t.Errorf("the earlier reservation is now %+v", r)
				}
			}
		})
	}
}

// upPath returns the path of a plan in the folder of testbeds that are up.
func upPath(t *testing.T) string {
	t.Helper()
	path, err := upFile("paper")
	if err != nil && !errors.Is(err, lab.ErrAbsent) {
		t.Fatal(err)
	}
	return path
}
