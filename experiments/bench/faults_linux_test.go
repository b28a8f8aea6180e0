package bench

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/netlab"
)

// saboteur does something to the machine when a run has begun.
type saboteur struct {
	do   func() error
	done bool
	err  error
}

// Event implements Sink.
func (s *saboteur) Event(e Event) error {
	if _, ok := e.(RunStarted); ok && !s.done {
		s.done, s.err = true, s.do()
	}
	return nil
}

// sabotaged measures real packets while somebody does something in the middle of the first run.
func sabotaged(t *testing.T, do func() error) (*Measurement, error) {
	t.Helper()
	spec := usual()
	w := &spec.Workload
	w.MeanRate, w.LineRate, w.BurstPackets, w.UpdatesPerWorker = 4*olaf.Mbps, 4*olaf.Mbps, 1, 20
	spec.OutRates, spec.Runs, spec.Versus = []olaf.Rate{2 * olaf.Mbps}, 1, ""
	s := &saboteur{do: do}
	device := testbed.Kernel()
	m, err := Measure(t.Context(), spec, Options{Device: device.Prefix, Access: testbed.Access{Devices: testbed.Devices{device}}, Stream: NewStream(s)})
	if errors.Is(err, netlab.ErrRights) {
		t.Skip(err)
	}
	if s.err != nil || !s.done {
		t.Fatalf("done: %v, %v", s.done, s.err)
	}
	return m, err
}

// namespaces are the network namespaces that this process holds.
func namespaces(t *testing.T) (paths []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := "/proc/self/fd/" + e.Name()
		if to, err := os.Readlink(path); err == nil && strings.HasPrefix(to, "net:") {
			paths = append(paths, path)
		}
	}
	return paths
}

// somewhere does something to an interface of a name, in whatever namespace it is.
func somewhere(t *testing.T, name string, do func(netlink.Link) error) error {
	t.Helper()
	for _, path := range namespaces(t) {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // and never unlocked, so that the thread ends
			done <- inside(path, name, do)
		}()
		if err := <-done; !errors.As(err, new(netlink.LinkNotFoundError)) {
			return err
		}
	}
	return fmt.Errorf("no interface is called %s", name)
}

// inside does it in a namespace, in which the calling thread stays.
func inside(path, name string, do func(netlink.Link) error) error {
	ns, err := os.Open(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return do(l)
}

// TestFaultsInMidRun lets somebody take the program, a cable or the server's interface away while a run goes on. The run is marked and the
// reason said, or the measurement ends with an error of the device; whichever it is, nothing is left.
func TestFaultsInMidRun(t *testing.T) {
	if testing.Short() {
		t.Skip("opens a card for each fault")
	}
	for _, c := range []struct {
		name, says string
		do         func() error
	}{
		{"program taken off", "the program arrive at the cable from workers to switch was taken off in the middle of the run", func() error {
			return testbedtest.Detach("arrive")
		}},
		{"server's cable down", "the interface towards the server refused", func() error {
			return somewhere(t, "server", netlink.LinkSetDown)
		}},
		{"cable gone", "gone", func() error {
			return somewhere(t, "server", netlink.LinkDel)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := sabotaged(t, c.do)
			said := fmt.Sprint(err)
			if err == nil {
				if err = m.Err(); !errors.Is(err, ErrInvalid) {
					t.Fatalf("the run was taken for good: %v", err)
				}
				said = strings.Join(m.Outcome.Runs[0][0].Invalid, "\n")
			} else if !errors.Is(err, fpga.ErrGone) && !errors.Is(err, netlab.ErrNetwork) && !errors.Is(err, fpga.ErrDoubtful) {
				t.Errorf("%v is no error of the device", err)
			}
			t.Log(said)
			if !strings.Contains(said, c.says) {
				t.Errorf("%q does not say %q", said, c.says)
			}
			if left, err := testbedtest.Links(); len(left) > 0 || err != nil {
				t.Errorf("%d programs are left, %v", len(left), err)
			}
			if left := namespaces(t); len(left) > 0 {
				t.Errorf("namespaces are left: %v", left)
			}
		})
	}
}
