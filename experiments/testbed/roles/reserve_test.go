package roles

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/sshlink"
	"github.com/olafctl/olaf/fpga/pcie"
)

// cardRow is the row of the device table for cards that are never opened.
var cardRow = testbed.Device{Prefix: "pci:", Name: "0000:3b:00.0",
	Uses: func(bdf string) []string { return []string{"pci:" + pcie.Slot(bdf)} }}

// TestAllHostsOrNone checks that a testbed of two hosts is not reserved at all if the second host is not available.
func TestAllHostsOrNone(t *testing.T) {
	r := &testbed.Reservations{Dir: filepath.Join(t.TempDir(), "olafctl")}
	access := testbed.Access{Devices: testbed.Devices{cardRow, testbed.TwinDevice()}, Owner: "alice@desk", Reservations: r}
	p := &Plan{Name: "paper", Hosts: []lab.PlannedHost{{Name: "a"}, {Name: "b", SSH: "nowhere"}},
		Queue: &Role{Host: "a", Device: "pci:0000:3B:00.1"}, Server: &Role{Host: "b", Interface: "eth0"}}
	access.SSH.Program, access.SSH.Identify = "false", func() (sshlink.Build, error) { return sshlink.Build{}, nil }
	if err := ReserveHosts(t.Context(), p, "", time.Hour, access, nil); err == nil || !strings.HasPrefix(err.Error(), "host b: ") {
		t.Errorf("a host that is not reachable: %v", err)
	}
	if all, err := r.List(); err != nil || len(all) != 0 {
		t.Errorf("%+v is left of a reservation that failed, %v", all, err)
	}
	p.Hosts, p.Server.Host = p.Hosts[:1], "a"
	if err := ReserveHosts(t.Context(), p, "", time.Hour, access, nil); err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{"pci:0000:3b:00", "interface eth0"} {
		if err := r.Check("bob@lab", resource); !errors.Is(err, testbed.ErrReserved) {
			t.Errorf("%s: %v, want it reserved", resource, err)
		}
	}
	bob := access
	bob.Owner = "bob@lab"
	if err := bob.CheckInterfaces("eth1", "eth0"); !errors.Is(err, testbed.ErrReserved) {
		t.Errorf("an interface of the server: %v", err)
	}
	if err := ReserveHosts(t.Context(), p, "", time.Hour, bob, nil); !errors.Is(err, testbed.ErrReserved) || !strings.HasPrefix(err.Error(), "host a: ") {
		t.Errorf("the second person: %v", err)
	}
	given := errors.New("given up")
	if err := ReserveHosts(t.Context(), p, "", time.Hour, bob, func(error) error { return given }); !errors.Is(err, given) {
		t.Errorf("the second person gives up: %v", err)
	}
	waited := 0
	err := ReserveHosts(t.Context(), p, "", time.Hour, bob, func(conflict error) error {
		if waited++; waited == 1 {
			return nil // it is still reserved
		}
		if !errors.Is(conflict, testbed.ErrReserved) {
			t.Errorf("the second person waits for %v", conflict)
		}
		_, err := ReleaseHosts(t.Context(), p, access)
		return err
	})
	if err != nil || waited != 2 {
		t.Errorf("the second person waits %d times, then %v; want 2 times, until the release", waited, err)
	}
}

// TestHolderOfAHost checks which reservation is shown for a host among those of several testbeds.
func TestHolderOfAHost(t *testing.T) {
	r := func(name, host, resource string) testbed.Reservation {
		return testbed.Reservation{Testbed: name, Host: host, Resources: []string{resource}}
	}
	apart, taken, own := r("apart", "a", "interface eth9"), r("taken", "x", "interface eth0"), r("paper", "a", "interface eth1")
	for want, all := range map[string][]testbed.Reservation{
		"": {apart, r("paper", "b", "interface eth9")}, "taken": {apart, taken}, "paper": {apart, own, taken},
	} {
		e := Examination{Name: "a", Reservations: all}
		got := e.findHolder("paper", []string{"interface eth0", "interface eth1"})
		if (got == nil) != (want == "") || got != nil && got.Testbed != want {
			t.Errorf("of %+v, %+v is shown; want testbed %q", all, got, want)
		}
	}
}

// TestDownWithUnreachableHost checks that taking a testbed down while one host cannot be reached releases the other
// hosts and keeps the name, so that it can be tried again.
func TestDownWithUnreachableHost(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := &testbed.Reservations{Dir: filepath.Join(t.TempDir(), "olafctl")}
	access := testbed.Access{Devices: testbed.Devices{testbed.TwinDevice()}, Owner: "alice@desk", Reservations: r}
	access.SSH.Program, access.SSH.Identify = "false", func() (sshlink.Build, error) { return sshlink.Build{}, nil }
	p := &Plan{Name: "paper", Hosts: []lab.PlannedHost{{Name: "a"}}, Queue: &Role{Host: "a", Device: "twin:"},
		Server: &Role{Host: "a", Interface: "eth0"}}
	take := func() {
		t.Helper()
		if err := errors.Join(ReserveHosts(t.Context(), p, "", time.Hour, access, nil), rememberUp(p)); err != nil {
			t.Fatal(err)
		}
	}
	take()
	gone := *p
	gone.Hosts = []lab.PlannedHost{{Name: "a"}, {Name: "b", SSH: "nowhere"}}
	if err := TakeDown(t.Context(), &gone, access, false); err == nil || !strings.HasPrefix(err.Error(), "host b: ") {
		t.Errorf("down: %v, want the host that could not be reached", err)
	}
	if all, err := r.List(); err != nil || len(all) != 0 {
		t.Errorf("%+v is still reserved, %v", all, err)
	}
	if _, err := loadUp(p.Name); err != nil {
		t.Errorf("another try has no plan: %v", err)
	}
	take()
	if found, err := ReleaseHosts(t.Context(), &gone, access); !found || err == nil || !strings.HasPrefix(err.Error(), "host b: ") {
		t.Errorf("release: %t, %v; want a's end and b's name", found, err)
	}
	if err := TakeDown(t.Context(), p, access, false); err != nil {
		t.Errorf("down with all hosts: %v", err)
	}
	take()
	bob := access
	bob.Owner = "bob@lab"
	if err := TakeDown(t.Context(), p, bob, false); !errors.Is(err, testbed.ErrReserved) || !strings.Contains(err.Error(), "by alice@desk for testbed paper until ") {
		t.Errorf("down by another user: %v, want the owner and the end", err)
	}
	if err := TakeDown(t.Context(), p, bob, true); err != nil {
		t.Errorf("down by another user with --force: %v", err)
	}
	if all, err := r.List(); err != nil || len(all) != 0 {
		t.Errorf("%+v is still reserved after --force, %v", all, err)
	}
}

// TestLastError checks that the last failure on a testbed that is up is kept until the testbed is taken down, and that
// a testbed from a file has none.
func TestLastError(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := &Plan{Name: "paper", Hosts: []lab.PlannedHost{{Name: "a"}}, Queue: &Role{Host: "a", Device: "twin:"}}
	if err := rememberUp(p); err != nil {
		t.Fatal(err)
	}
	if last := FindLastError(p.Name); last != nil {
		t.Errorf("before any failure, the last error is %+v", last)
	}
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for _, name := range []string{"./paper.yaml", p.Name, p.Name} {
		noteError(name, at, errors.New("host a:\nthe device of "+name+" is gone"))
	}
	if last := FindLastError(p.Name); last == nil || last.Error != "host a:?the device of paper is gone" || !last.At.Equal(at) {
		t.Errorf("the last error is %+v", last)
	}
	if err := forgetUp(p.Name); err != nil {
		t.Fatal(err)
	}
	if err := rememberUp(p); err != nil {
		t.Fatal(err)
	}
	if last := FindLastError(p.Name); last != nil {
		t.Errorf("a testbed that was brought up again has the error %+v", last)
	}
	if err := forgetUp(p.Name); err != nil {
		t.Fatal(err)
	}
}
