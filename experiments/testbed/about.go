package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/remote"
)

// callAbout is the name of the request that asks a host for its description.
const callAbout = "about"

// AboutRequest names the parts of a host that are described in addition to the host itself.
type AboutRequest struct {
	Device    string `json:"device,omitempty"`
	Lent      string `json:"lent,omitempty"`      // the device's address if another process on the host lends it
	Generator bool   `json:"generator,omitempty"` // the device will be a generator; otherwise a queue
	Interface string `json:"interface,omitempty"`
	LeastMTU  int    `json:"least_mtu,omitempty"` // least MTU of the interface, or of the device's interfaces
}

// HostAbout describes a host. It also contains the reasons why the host cannot have its role.
type HostAbout struct {
	Build  string `json:"build"`
	Kernel string `json:"kernel"` // system, release and architecture
	Root   bool   `json:"root"`
	Device string `json:"device,omitempty"` // identity of the device
	// User describes the command that uses the device which a holder lends: its user, command and start. It is empty if
	// there is none.
	User   string   `json:"user,omitempty"`
	NIC    *NIC     `json:"nic,omitempty"`
	Faults []string `json:"faults,omitempty"` // one line each
	// Counts are the counters of a card at its last latch, and those of the interface now.
	Counts []HostCount `json:"counts,omitempty"`
}

// HostCount is the value of one counter at a device or an interface of a host.
type HostCount struct {
	Of    string `json:"of"` // the device or interface
	Name  string `json:"name"`
	Value uint64 `json:"value"`
}

// NIC describes a network interface.
type NIC struct {
	Name   string `json:"name"`
	Driver string `json:"driver"` // virtual for none
	MAC    string `json:"mac"`
	MTU    int    `json:"mtu"`
	Up     bool   `json:"up"`
	Mbps   int    `json:"mbps,omitempty"` // its line rate, 0 if the driver reports none
}

// leastFree is the free disk space, in bytes, that the files of a run need.
const leastFree = 64 << 20

// About returns a description of this host.
func (a Access) About(ctx context.Context, what AboutRequest) (about HostAbout) {
	fail := func(format string, args ...any) { about.Faults = append(about.Faults, fmt.Sprintf(format, args...)) }
	about.Root = os.Geteuid() == 0
	about.Kernel = runtime.GOOS + "/" + runtime.GOARCH
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		about.Kernel = "Linux " + strings.TrimSpace(string(release)) + " " + runtime.GOARCH
	}
	if a.SSH.Identify != nil {
		if b, err := a.SSH.Identify(); err == nil {
			about.Build = b.Hash
		}
	}
	if free, err := freeBytes(os.TempDir()); err == nil {
		if err := checkRoom(os.TempDir(), free); err != nil {
			fail("%v", err)
		}
	}
	if what.Device != "" {
		if err := a.describeDevice(ctx, &what, &about); err != nil {
			fail("%v", err)
		}
	}
	if what.Interface != "" {
		nic, err := FindInterface(what.Interface, what.LeastMTU)
		if about.NIC = nic; err != nil {
			fail("%v", err)
		}
		about.Counts = append(about.Counts, interfaceCounts(what.Interface)...)
	}
	return about
}

// describeDevice identifies a device without writing to it, and adds its counters if they persist after a command has
// ended. The error explains why the device cannot have its role.
func (a *Access) describeDevice(ctx context.Context, what *AboutRequest, about *HostAbout) (err error) {
	row, name, err := a.deviceTable().Lookup(what.Device)
	if err != nil {
		return err
	}
	lent, id := what.openLent(ctx, DeviceOptions{Access: *a, ReadOnly: true}, about)
	if lent != nil {
		defer func() { err = errors.Join(err, lent.Close()) }()
	}
	if row.Describe != nil {
		var role uint32
		about.Device, role, err = row.Describe(name, what.LeastMTU)
		if row.Uses != nil {
			for _, resource := range row.Uses(name) {
				about.Counts = append(about.Counts, interfaceCounts(strings.TrimPrefix(resource, InterfaceResource("")))...)
			}
		}
		return errors.Join(err, what.checkRole(role))
	}
	lasts := row.Uses != nil // the others are created for each run
	if lent != nil {
		return what.describeOpen(lent, id, lasts, about)
	}
	d, err := OpenDevice(ctx, what.Device, DeviceOptions{Access: *a, ReadOnly: true})
	if err != nil {
		return err // if it is lent after all, the error contains the owner
	}
	return errors.Join(what.describeOpen(d, d.Identity(), lasts, about), d.Close())
}

// describeOpen describes an open device with an identity. If it lasts, its counters are included.
func (what *AboutRequest) describeOpen(d fpga.Device, id fpga.Identity, lasts bool, about *HostAbout) error {
	about.Device = strings.TrimSpace(id.Kind + " " + id.Build)
	built, err := d.Read32(regmap.CommonRole)
	if err == nil {
		err = what.checkRole(built)
	}
	if err == nil && lasts {
		about.Counts, err = what.latchedCounts(d)
	}
	return err
}

// openLent opens the device at the holder that lends it, and describes the command that uses it. It returns nil if there
// is no such holder.
func (what *AboutRequest) openLent(ctx context.Context, o DeviceOptions, about *HostAbout) (d fpga.Device, id fpga.Identity) {
	if what.Lent == "" {
		return nil, id
	}
	d, err := OpenDevice(ctx, what.Lent, o)
	if err != nil {
		return nil, id
	}
	if lent, ok := d.(*remote.Device); ok {
		about.User = lent.Writer()
		return d, lent.Served()
	}
	return d, d.Identity()
}

// latchedCounts returns the counters for a device's role as they were last latched. It does not latch them itself,
// because a run may be in progress.
func (what *AboutRequest) latchedCounts(d fpga.Registers) ([]HostCount, error) {
	if what.Generator {
		g, err := regmap.ReadGeneratorCounters(d)
		return []HostCount{{what.Device, "sent", g.SentPackets}, {what.Device, "late", g.LatePackets}}, err
	}
	q, err := regmap.ReadQueueCounters(d)
	return []HostCount{{what.Device, "in", q.In}, {what.Device, "delivered", q.DeliveredFrames},
		{what.Device, "dropped", q.DroppedFull + q.DroppedReward + q.DroppedMismatch}, {what.Device, "malformed", q.Malformed},
		{what.Device, "lost before the queue", q.LostBeforeEngine}}, err
}

// checkRole returns an error if the roles for which a device was built (common.role) do not include the requested role.
func (what *AboutRequest) checkRole(built uint32) error {
	role, bit := "queue", regmap.CommonRoleAccelerator
	if what.Generator {
		role, bit = "generator", regmap.CommonRoleGenerator
	}
	if built&bit != 0 {
		return nil
	}
	return fmt.Errorf("%w: %s was built without a %s (common.role is %#x); name a device or card image that has one", fpga.ErrRefused,
		what.Device, role, built)
}

// FindInterface returns the interface of this host with the given name. The interface must be up and have at least the
// given MTU.
func FindInterface(name string, leastMTU int) (*NIC, error) {
	nic, err := describeInterface(name)
	if err != nil {
		return nil, err
	}
	return nic, nic.check(leastMTU)
}

// check returns an error if the interface is down or has a smaller MTU.
func (nic *NIC) check(leastMTU int) error {
	switch {
	case !nic.Up:
		return fmt.Errorf("interface %s is down; run 'sudo ip link set %[1]s up'", nic.Name)
	case nic.MTU < leastMTU:
		return fmt.Errorf("interface %s has an MTU of %d, but frames need %d; run 'sudo ip link set %[1]s mtu %[3]d'",
			nic.Name, nic.MTU, leastMTU)
	}
	return nil
}

// checkRoom returns an error if a folder has too little free space, in bytes, for a run's files.
func checkRoom(folder string, free int64) error {
	if free >= leastFree {
		return nil
	}
	return fmt.Errorf("%s has room for %d MB, but a run's files take up to %d MB; free some space", folder, free>>20,
		leastFree>>20)
}

// describeInterface describes an interface of this host.
func describeInterface(name string) (*NIC, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		var names []string
		if all, err := net.Interfaces(); err == nil {
			for i := range all {
				names = append(names, all[i].Name)
			}
		}
		return nil, fmt.Errorf("there is no interface %s; there are %s", name, strings.Join(names, ", "))
	}
	driver := "virtual"
	if link, err := os.Readlink(filepath.Join("/sys/class/net", name, "device/driver")); err == nil {
		driver = filepath.Base(link)
	}
	rate := 0
	if text, err := os.ReadFile(filepath.Join("/sys/class/net", name, "speed")); err == nil { // not every driver reports it
		rate, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	return &NIC{Name: name, Mbps: max(rate, 0), Driver: driver, MAC: i.HardwareAddr.String(), MTU: i.MTU, Up: i.Flags&net.FlagUp != 0}, nil
}
