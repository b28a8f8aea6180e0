package onwire

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/backends"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/netlab"
)

// bed opens a testbed for a training run; it skips the test if rights are missing.
func bed(t *testing.T, workers int) *testbed.Testbed {
	t.Helper()
	device := backends.KernelDevice()
	b, err := testbed.OpenTestbed(t.Context(), device.Prefix,
		testbed.OpenOptions{Access: testbed.Access{Devices: testbed.Devices{device}}, Workers: workers, Addresses: GradientLayout().Packets()})
	if errors.Is(err, netlab.ErrRights) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestKilledProcessEndsTraining checks that if a worker or the server is killed before the training is over, the error
// names the process and the reason, and all other processes are ended.
func TestKilledProcessEndsTraining(t *testing.T) {
	c := small()
	b := bed(t, c.Workers)
	begun := filepath.Join(t.TempDir(), "begun") // a worker has started
	if err := unix.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	ready := fmt.Sprintf(`echo '{"listening":"%s:20300"}'; exec sleep 600`, b.Hosts.Server.Address)
	for _, k := range []struct{ name, server, worker, says string }{
		{"worker", ready, "kill -9 $$", "worker on 10.78."},
		{"server", strings.Replace(ready, "exec sleep 600", "read told <"+begun+"; kill -9 $$", 1),
			"trap '' PIPE; echo >" + begun + "; exec sleep 600", "ps on 10.78.4.2"},
		{"server before it hears", "exit 3", "exec sleep 600", "ps on 10.78.4.2"},
		{"worker without a report", ready, "exit 0", "no report"},
	} {
		t.Run(k.name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			var started []*exec.Cmd
			_, err := Train(ctx, c, b, Options{Command: func(args ...string) *exec.Cmd {
				cmd := exec.Command("sh", "-c", map[string]string{"ps": k.server, "worker": k.worker}[args[0]])
				started = append(started, cmd)
				return cmd
			}})
			if !errors.Is(err, ErrHost) || !strings.Contains(fmt.Sprint(err), k.says) || strings.HasSuffix(fmt.Sprint(err), ":") ||
				strings.HasSuffix(fmt.Sprint(err), ": ") {
				t.Errorf("%v", err)
			}
			for _, cmd := range started {
				if cmd.ProcessState == nil {
					t.Errorf("%v still runs", cmd.Args)
				}
			}
		})
	}
}

// TestDetachedProgramEndsTraining checks that detaching the program while workers train by sums ends the training with
// an error that names the program and the cable.
func TestDetachedProgramEndsTraining(t *testing.T) {
	if err := netlab.CheckRights(lab.Rights()...); err != nil {
		t.Skip(err)
	}
	c := small()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var workers []*exec.Cmd
	_, err := TrainSums(ctx, c, "", Options{Command: func(args ...string) *exec.Cmd {
		cmd := exec.Command("sleep", "600")
		if args[0] == workerProgram {
			workers = append(workers, cmd)
		}
		if len(workers) == c.Workers {
			if err := testbedtest.DetachPrograms("arrive"); err != nil {
				t.Error(err)
			}
		}
		return cmd
	}})
	if !errors.Is(err, lab.ErrBroken) || !regexp.MustCompile(`the program arrive was detached from w\d of s0`).MatchString(err.Error()) {
		t.Error(err)
	}
}

// TestCutCableEndsTraining checks that removing the server's cable while workers train through a queue ends the
// training with an error that names the cable, whatever the programs report.
func TestCutCableEndsTraining(t *testing.T) {
	c := small()
	b := bed(t, c.Workers)
	ready, gone := fmt.Sprintf(`echo '{"listening":"%s:20300"}'; exec sleep 600`, b.Hosts.Server.Address), false
	_, err := Train(t.Context(), c, b, Options{Command: func(args ...string) *exec.Cmd {
		if args[0] == "ps" {
			return exec.Command("sh", "-c", ready)
		}
		if !gone {
			if err := testbedtest.DoAtInterface("server", netlink.LinkDel); err != nil {
				t.Error(err)
			}
		}
		gone = true
		return exec.Command("sh", "-c", "echo this host has no network >&2; exit 1")
	}})
	if !errors.Is(err, fpga.ErrGone) || !strings.Contains(err.Error(), "the cable from switch to server was removed") {
		t.Error(err)
	}
}
