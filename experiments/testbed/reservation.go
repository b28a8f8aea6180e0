package testbed

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/internal/caller"
	"github.com/olafctl/olaf/internal/lockfile"
)

// ErrReserved reports that another user or testbed has reserved a device or an interface of this host.
var ErrReserved = olaf.NewError(olaf.Device, "it is reserved")

// Reservation is the right to write to devices and interfaces of a host until a given time. The time is on the host's
// boot clock, which cannot be set. Every command of this program respects reservations. root can remove the file of a
// reservation.
type Reservation struct {
	Testbed   string    `json:"testbed"`
	Host      string    `json:"host"`  // its name in the testbed
	Owner     string    `json:"owner"` // user@host
	Note      string    `json:"note,omitempty"`
	Resources []string  `json:"resources"`   // as Device.Uses returns them
	Since     time.Time `json:"since"`       // for messages
	Boot      string    `json:"boot"`        // the host's boot, whose clock EndNS is on
	EndNS     int64     `json:"end_boot_ns"` // CLOCK_BOOTTIME
	// Left is the time until the end, measured when the reservation was read.
	Left time.Duration `json:"left_ns,omitempty"`
}

// IsSame reports whether one reservation replaces the other, because both have the same owner, testbed and host.
func (r *Reservation) IsSame(other *Reservation) bool {
	return r.Owner == other.Owner && r.Testbed == other.Testbed && r.Host == other.Host
}

// Reservations manages the reservations of one host. Each is stored in a separate file.
type Reservations struct {
	Dir string                          // shared by all users of the host
	Now func() (now Instant, err error) // the host's time; nil for this host's
}

// Instant is one instant on both clocks of a host, the boot clock and the wall clock.
type Instant struct {
	Boot   string    // the host's boot, whose clock BootNS is on
	BootNS int64     // CLOCK_BOOTTIME
	Wall   time.Time // for messages
}

func (r *Reservations) readClock() (Instant, error) {
	if r.Now != nil {
		return r.Now()
	}
	boot, ns, err := readBootClock()
	return Instant{boot, ns, time.Now()}, err
}

// InterfaceResource returns the name under which a network interface is reserved.
func InterfaceResource(name string) string { return "interface " + name }

// reservationEnding is the file name extension of reservation files.
const reservationEnding = ".reservation"

// maxReservation is a size in bytes that no reservation file exceeds.
const maxReservation = 1 << 16

// List returns the reservations that have not ended, sorted by testbed. It ignores other files.
func (r *Reservations) List() ([]Reservation, error) {
	now, err := r.readClock()
	if err != nil {
		return nil, err
	}
	return r.listAt(now)
}

// listAt returns the reservations that have not ended by the given time, sorted by testbed.
func (r *Reservations) listAt(now Instant) ([]Reservation, error) {
	entries, err := os.ReadDir(r.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the reservations: %w", err)
	}
	var all []Reservation
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), reservationEnding) {
			continue
		}
		entry, err := readReservation(filepath.Join(r.Dir, e.Name()))
		if err != nil || entry.Boot != now.Boot || entry.EndNS <= now.BootNS {
			continue
		}
		entry.Left = time.Duration(entry.EndNS - now.BootNS)
		all = append(all, *entry)
	}
	slices.SortStableFunc(all, func(a, b Reservation) int { return strings.Compare(a.Testbed, b.Testbed) })
	return all, nil
}

func readReservation(path string) (*Reservation, error) {
	file, err := lockfile.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxReservation))
	if err != nil {
		return nil, err
	}
	r := new(Reservation)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	r.Testbed, r.Owner, r.Note = caller.Plain(r.Testbed), caller.Plain(r.Owner), caller.Plain(r.Note)
	return r, nil
}

// fileOf returns the path of the file with an owner's reservation of a host for a testbed.
func (r *Reservations) fileOf(testbed, host, owner string) string {
	sum := sha256.Sum256([]byte(testbed + "\n" + host + "\n" + owner))
	return filepath.Join(r.Dir, fmt.Sprintf("%x%s", sum[:8], reservationEnding))
}

// conflict returns an error which reports to a user that the resource is reserved by there.
func (there *Reservation) conflict(user, resource string, now time.Time) error {
	owner, why, advice := there.Owner, "", "wait, or ask them"
	if owner == user {
		owner, advice = "you", fmt.Sprintf("'olafctl testbed down %s' or 'olafctl testbed release' frees it", there.Testbed)
	}
	if there.Note != "" {
		why = fmt.Sprintf(" (%s)", there.Note)
	}
	return fmt.Errorf("%s: %w by %s since %s for testbed %s%s until %s; %s", resource, ErrReserved, owner, FormatNear(there.Since, now),
		there.Testbed, why, FormatNear(now.Add(there.Left), now), advice)
}

// FormatNear formats a local time, with its date unless this is today's.
func FormatNear(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// Check returns an error that matches ErrReserved if another user has reserved one of the resources.
func (r *Reservations) Check(owner string, resources ...string) error {
	now, err := r.readClock()
	if err != nil {
		return err
	}
	all, err := r.listAt(now)
	if err != nil {
		return err
	}
	return CheckOwner(all, owner, now.Wall, resources...)
}

// CheckOwner returns an error that matches ErrReserved if one of a host's reservations, as read at the given time, gives
// one of the resources to another user.
func CheckOwner(all []Reservation, owner string, now time.Time, resources ...string) error {
	for i := range all {
		for _, resource := range resources {
			if all[i].Owner != owner && slices.Contains(all[i].Resources, resource) {
				return all[i].conflict(owner, resource, now)
			}
		}
	}
	return nil
}

// Take reserves resources for the given time, or extends the owner's reservation for the same testbed. The error
// matches ErrReserved if one of the resources is reserved by another user or for another testbed.
func (r *Reservations) Take(want Reservation, lasts time.Duration) (err error) {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	now, err := r.readClock()
	if err != nil {
		return err
	}
	all, err := r.listAt(now)
	if err != nil {
		return err
	}
	for i := range all {
		there := &all[i]
		for _, resource := range want.Resources {
			if !there.IsSame(&want) && slices.Contains(there.Resources, resource) {
				return there.conflict(want.Owner, resource, now.Wall)
			}
		}
	}
	want.Boot, want.Left = now.Boot, 0
	want.EndNS, want.Since = now.BootNS+int64(lasts), now.Wall.UTC()
	text, err := json.Marshal(want)
	if err != nil {
		return err
	}
	return r.write(r.fileOf(want.Testbed, want.Host, want.Owner), text)
}

// write replaces the file of a reservation. The folder is shared with other users, so the text is first written to a
// file with a new name, for which an attacker cannot have created a link.
func (r *Reservations) write(path string, text []byte) error {
	file, err := os.CreateTemp(r.Dir, ".new")
	if err != nil {
		return fmt.Errorf("write a reservation: %w", err)
	}
	_, err = io.Copy(file, bytes.NewReader(text))
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write a reservation: %w", err), os.Remove(file.Name()))
	}
	return nil
}

// Release ends an owner's reservation of a host for a testbed, and reports whether there was one.
func (r *Reservations) Release(testbed, host, owner string) (found bool, err error) {
	unlock, err := r.lock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unlock()
	err = os.Remove(r.fileOf(testbed, host, owner))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("end a reservation: %w", err)
	}
	return true, nil
}

// lockTries is the maximum number of attempts to lock the folder. Other processes hold the lock for microseconds only.
const lockTries = 2000

// lock creates the folder if it does not exist, and prevents other changes until unlock is called.
func (r *Reservations) lock() (unlock func(), err error) {
	if err := os.Mkdir(r.Dir, 0o755); err == nil {
		err = os.Chmod(r.Dir, 0o1777) // all users can reserve, only owners remove
		if err != nil {
			return nil, fmt.Errorf("create the folder of reservations: %w", err)
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create the folder of reservations: %w", err)
	}
	path := filepath.Join(r.Dir, ".lock")
	file, err := lockfile.Open(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if file, err = lockfile.Open(path, os.O_RDONLY|os.O_CREATE, 0o644); err == nil {
			_ = file.Chmod(0o644) // despite the umask; it may be another user's by now
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock the reservations: %w", err)
	}
	for try := 1; ; try++ {
		err := lockfile.Lock(file, true)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, lockfile.ErrHeld) || try == lockTries {
			file.Close()
			return nil, fmt.Errorf("lock the reservations: %w", err)
		}
		time.Sleep(time.Millisecond)
	}
}

// LocalReservations returns the reservations of this host.
func (a *Access) LocalReservations() *Reservations {
	if a.Reservations != nil {
		return a.Reservations
	}
	return &Reservations{Dir: filepath.Join(cmp.Or(a.Locks, "/run/lock"), "olafctl")}
}

// OwnerName returns the user for whom devices are opened, as user@host.
func (a *Access) OwnerName() string {
	if a.Owner != "" {
		return a.Owner
	}
	return caller.Name()
}

// Resources returns the names under which the resources of a device on its host are reserved.
func (a *Access) Resources(address string) ([]string, error) {
	row, name, err := a.deviceTable().Lookup(address)
	if err != nil || row.Uses == nil {
		return nil, err
	}
	return row.Uses(name), nil
}

// IsLasting reports whether a device exists before it is opened. Other devices are created for each run.
func (a *Access) IsLasting(address string) (bool, error) {
	row, _, err := a.deviceTable().Lookup(address)
	return err == nil && row.Uses != nil && row.Describe == nil, err
}

// checkReserved returns an error that matches ErrReserved if this user must not write to a device.
func (a *Access) checkReserved(row *Device, name string) error {
	if row.Uses == nil {
		return nil
	}
	return a.LocalReservations().Check(a.OwnerName(), row.Uses(name)...)
}

// CheckDevice returns an error that matches ErrReserved if this user must not write to the device at an address.
func (a *Access) CheckDevice(address string) error {
	row, name, err := a.deviceTable().Lookup(address)
	if err != nil {
		return err
	}
	return a.checkReserved(row, name)
}

// checkGenerator returns an error that matches ErrReserved if this user must not use the generator.
func (a *Access) checkGenerator() error {
	if err := a.CheckDevice(a.Generator); err != nil {
		return fmt.Errorf("the generator: %w", err)
	}
	return nil
}

// CheckInterfaces returns an error that matches ErrReserved if this user must not use network interfaces of this host.
func (a *Access) CheckInterfaces(names ...string) error {
	for _, name := range names {
		if err := a.LocalReservations().Check(a.OwnerName(), InterfaceResource(name)); err != nil {
			return err
		}
	}
	return nil
}
