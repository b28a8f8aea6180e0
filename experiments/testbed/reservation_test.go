package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/olafctl/olaf"
)

// bootClock is a host's boot clock that tests set.
type bootClock struct {
	id string
	ns int64
}

// morning is the wall clock's time when a bootClock is at 5 s.
var morning = time.Date(2026, 3, 1, 9, 0, 0, 0, time.Local)

func (c *bootClock) read() (Instant, error) {
	return Instant{c.id, c.ns, morning.Add(time.Duration(c.ns - 5e9))}, nil
}

func newReservations(t *testing.T) (*Reservations, *bootClock) {
	t.Helper()
	clock := &bootClock{"first", 5e9}
	return &Reservations{Dir: filepath.Join(t.TempDir(), "olafctl"), Now: clock.read}, clock
}

// reserveFor reserves resources for an owner.
func reserveFor(t *testing.T, r *Reservations, owner, testbed string, resources ...string) error {
	t.Helper()
	return r.Take(Reservation{Testbed: testbed, Owner: owner, Note: "table 1", Resources: resources}, time.Hour)
}

// TestReservedForOneOwner checks that other owners are rejected until the reservation is released, ends, or the host
// boots again.
func TestReservedForOneOwner(t *testing.T) {
	const card, other = "pci:0000:3b:00", "pci:0000:5e:00"
	for name, end := range map[string]func(*Reservations, *bootClock){
		"released": func(r *Reservations, _ *bootClock) {
			if found, err := r.Release("paper", "", "alice@desk"); !found || err != nil {
				t.Errorf("release: %t, %v", found, err)
			}
		},
		"ended":  func(_ *Reservations, c *bootClock) { c.ns += int64(time.Hour) },
		"booted": func(_ *Reservations, c *bootClock) { c.id = "second" },
	} {
		r, clock := newReservations(t)
		if err := r.Check("bob@lab", card); err != nil {
			t.Errorf("without a reservation: %v", err)
		}
		if err := reserveFor(t, r, "alice@desk", "paper", card); err != nil {
			t.Fatal(err)
		}
		err := r.Check("bob@lab", other, card)
		if kind, _ := olaf.KindOf(err); !errors.Is(err, ErrReserved) || kind != olaf.Device ||
			!strings.Contains(err.Error(), card+": it is reserved by alice@desk since 09:00:00") || !strings.Contains(err.Error(), "for testbed paper (table 1) until 10:00:00") {
			t.Errorf("somebody else gets %v", err)
		}
		if err := errors.Join(r.Check("alice@desk", card), r.Check("bob@lab", other)); err != nil {
			t.Errorf("the owner, and another card: %v", err)
		}
		end(r, clock)
		if err := r.Check("bob@lab", card); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := reserveFor(t, r, "bob@lab", "paper", card); err != nil {
			t.Errorf("%s, then taken by another: %v", name, err)
		}
	}
}

// TestOneCardInTwoTestbeds checks that a card is refused for a second testbed of the same owner, and that the first
// reservation can be extended.
func TestOneCardInTwoTestbeds(t *testing.T) {
	r, clock := newReservations(t)
	if err := reserveFor(t, r, "alice@desk", "paper", "a", "b"); err != nil {
		t.Fatal(err)
	}
	if err := reserveFor(t, r, "alice@desk", "other", "b", "c"); !errors.Is(err, ErrReserved) || !strings.Contains(err.Error(), "by you since ") ||
		!strings.HasSuffix(err.Error(), "; 'olafctl testbed down paper' or 'olafctl testbed release' frees it") {
		t.Errorf("one card in two testbeds: %v, want what frees it", err)
	}
	clock.ns += int64(30 * time.Minute)
	if err := reserveFor(t, r, "alice@desk", "paper", "a"); err != nil {
		t.Errorf("extended: %v", err)
	}
	all, err := r.List()
	if err != nil || len(all) != 1 || all[0].Left != time.Hour || len(all[0].Resources) != 1 {
		t.Errorf("%+v, %v; want one reservation for another hour", all, err)
	}
	if err := reserveFor(t, r, "alice@desk", "other", "b", "c"); err != nil {
		t.Errorf("a card that is free again: %v", err)
	}
	if found, err := r.Release("nothing", "", "alice@desk"); found || err != nil {
		t.Errorf("a reservation that is not there: %t, %v", found, err)
	}
}

// TestOneOfManyProcessesReserves checks that only one of several processes that race for a card gets it.
func TestOneOfManyProcessesReserves(t *testing.T) {
	r, _ := newReservations(t)
	var all sync.WaitGroup
	won := make(chan string, 8)
	for _, owner := range strings.Split("abcdefgh", "") {
		all.Go(func() {
			if err := r.Take(Reservation{Testbed: owner, Owner: owner, Resources: []string{"card"}}, time.Hour); err == nil {
				won <- owner
			} else if !errors.Is(err, ErrReserved) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Errorf("%d owners have the card", len(won))
	}
}

// TestForeignFilesAreNoReservations checks that links, broken files and other users' texts that would change a terminal
// are skipped.
func TestForeignFilesAreNoReservations(t *testing.T) {
	r, _ := newReservations(t)
	if err := reserveFor(t, r, "eve\x1b[31m", "paper\n", "card"); err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(r.Dir, name+reservationEnding) }
	err := errors.Join(os.WriteFile(path("broken"), []byte("{"), 0o644), os.WriteFile(path("empty"), nil, 0o644),
		os.Mkdir(path("folder"), 0o755), os.Symlink(path("empty"), path("link")))
	if err != nil {
		t.Fatal(err)
	}
	all, err := r.List()
	if err != nil || len(all) != 1 || all[0].Owner != "eve?[31m" || all[0].Testbed != "paper?" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestReservedDevicesAreNotWritten checks that only its owner may open, lend or join a reserved device, and that
// readers always may.
func TestReservedDevicesAreNotWritten(t *testing.T) {
	r, _ := newReservations(t)
	row := TwinDevice()
	row.Uses = func(string) []string { return []string{"card"} }
	open := func(owner string) error {
		access := Access{Devices: Devices{row}, Owner: owner, Reservations: r}
		d, err := OpenDevice(t.Context(), "twin:", DeviceOptions{Access: access})
		if err == nil {
			err = d.Close()
		}
		bed, bedErr := OpenTestbed(t.Context(), "twin:", OpenOptions{Access: access})
		if bedErr == nil {
			bedErr = bed.Close()
		}
		s, lentErr := ServePrivately(t.Context(), "twin:", ServeOptions{Device: DeviceOptions{Access: access}})
		if lentErr == nil {
			lentErr = s.Close()
		}
		if (err == nil) != (bedErr == nil) || (err == nil) != (lentErr == nil) {
			t.Errorf("%s: registers %v, testbed %v, lent %v", owner, err, bedErr, lentErr)
		}
		return err
	}
	if err := reserveFor(t, r, "alice@desk", "paper", "card"); err != nil {
		t.Fatal(err)
	}
	if err := open("alice@desk"); err != nil {
		t.Errorf("the owner: %v", err)
	}
	if err := open("bob@lab"); !errors.Is(err, ErrReserved) {
		t.Errorf("somebody else: %v", err)
	}
	d, err := OpenDevice(t.Context(), "twin:", DeviceOptions{Access: Access{Devices: Devices{row}, Owner: "bob@lab", Reservations: r}, ReadOnly: true})
	if err != nil {
		t.Fatalf("somebody who only reads: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestReservedDeviceOfAnAgent checks that once a lent device is reserved, only the owner's sessions can write.
func TestReservedDeviceOfAnAgent(t *testing.T) {
	r, _ := newReservations(t)
	row := TwinDevice()
	row.Uses = func(string) []string { return []string{"card"} }
	s, err := ServePrivately(t.Context(), "twin:", ServeOptions{Device: DeviceOptions{Access: Access{Devices: Devices{row}, Owner: "alice@desk", Reservations: r}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := reserveFor(t, r, "alice@desk", "paper", "card"); err != nil {
		t.Fatal(err)
	}
	_, err = OpenDevice(t.Context(), s.Target, DeviceOptions{Access: Access{Devices: Devices{AgentDevice()}}})
	if err == nil || !strings.Contains(err.Error(), "card: it is reserved by alice@desk") {
		t.Errorf("a session of somebody else: %v", err)
	}
	d, err := OpenDevice(t.Context(), s.Target, DeviceOptions{Access: Access{Devices: Devices{AgentDevice()}}, ReadOnly: true})
	if err != nil {
		t.Fatalf("a session that only reads: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
