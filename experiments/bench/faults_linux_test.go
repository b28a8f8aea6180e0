package bench

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/netlab"
)

// saboteur calls a function when a run has begun.
type saboteur struct {
	do   func() error
	runs int // number of runs that have begun
	err  error
}

// Event implements Sink.
func (s *saboteur) Event(e Event) error {
	if _, ok := e.(RunStarted); ok {
		if s.runs++; s.runs == 1 {
			s.err = s.do()
		}
	}
	return nil
}

// measureSabotaged measures real packets while do runs in the middle of the first run, and returns the number of runs that
// began.
func measureSabotaged(t *testing.T, do func() error) (m *Measurement, runs int, err error) {
	t.Helper()
	spec := usualSpec()
	w := &spec.Workload
	w.MeanRate, w.LineRate, w.BurstPackets, w.UpdatesPerWorker = 4*olaf.Mbps, 4*olaf.Mbps, 1, 20
	spec.OutRates, spec.Runs, spec.Versus = []olaf.Rate{2 * olaf.Mbps}, 2, ""
	s := &saboteur{do: do}
	device := backends.KernelDevice()
	m, err = MeasureSpec(t.Context(), spec, Options{Device: device.Prefix, Access: testbed.Access{Devices: testbed.Devices{device}},
		Stream: NewStream(s)})
	if errors.Is(err, netlab.ErrRights) {
		t.Skip(err)
	}
	if s.err != nil || s.runs == 0 {
		t.Fatalf("after %d runs: %v", s.runs, s.err)
	}
	return m, s.runs, err
}

// TestFaultsDuringARun checks that if the program, a cable or the server's interface is removed during a run, the run
// is marked with the reason or the measurement ends with a device error, and that nothing is left behind.
func TestFaultsDuringARun(t *testing.T) {
	if testing.Short() {
		t.Skip("opens a card for each fault")
	}
	for _, c := range []struct {
		name, says string // says: first reason
		runs       int    // runs that begin
		do         func() error
	}{
		{"program detached", "the program arrive was detached from the cable from workers to switch during the run", 2,
			func() error {
				return testbedtest.DetachPrograms("arrive")
			}},
		{"server's cable down", "the cable from switch to server is down at switch", 2, func() error {
			return testbedtest.DoAtInterface("server", netlink.LinkSetDown)
		}},
		{"cable gone", "device is gone: the cable from switch to server was removed", 1, func() error {
			return testbedtest.DoAtInterface("server", netlink.LinkDel)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, runs, err := measureSabotaged(t, c.do)
			said := fmt.Sprint(err)
			if err == nil {
				if err = m.Err(); !errors.Is(err, ErrInvalid) {
					t.Fatalf("the run was taken for good: %v", err)
				}
				said = strings.Join(m.Outcome.Runs[0][0].Invalid, "\n")
				if strings.Contains(said, "card") || strings.Contains(said, "MAC") {
					t.Errorf("%q is of cards", said)
				}
			} else if !errors.Is(err, fpga.ErrGone) && !errors.Is(err, netlab.ErrNetwork) && !errors.Is(err, fpga.ErrDoubtful) {
				t.Errorf("%v is no error of the device", err)
			}
			t.Log(said)
			if first, _, _ := strings.Cut(said, "\n"); !strings.Contains(first, c.says) || runs != c.runs {
				t.Errorf("after %d runs %q does not say %q first", runs, said, c.says)
			}
			if left, err := testbedtest.OwnLinks(); len(left) > 0 || err != nil {
				t.Errorf("%d programs are left, %v", len(left), err)
			}
			if left, err := testbedtest.OwnNamespaces(); len(left) > 0 || err != nil {
				t.Errorf("namespaces are left: %v, %v", left, err)
			}
		})
	}
}
