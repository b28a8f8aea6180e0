package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
	testbedcmd "github.com/olafctl/olaf/cmd/olafctl/testbed"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/fpga/realtime"
	"github.com/olafctl/olaf/fpga/xdp"
)

// realRights are the rights that real packets require.
var realRights = slices.Concat(netlab.NamespaceRights, netlab.PacketRights, xdp.LoadRights)

// without runs this program in a process that lacks some rights, and returns its output.
func without(t *testing.T, rights []netlab.Right, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	self, err := exec.LookPath("olafctl") // this program, as scripts run it
	if err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	cmd := &exec.Cmd{Path: self, Args: append([]string{"olafctl"}, args...), Stdout: &out, Stderr: &said, Env: append(os.Environ(), "OLAFCTL_HOME="+t.TempDir())}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends together with its lost rights
		for _, r := range rights {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(r.Number), 0, 0, 0); err != nil {
				started <- err
				return
			}
		}
		started <- cmd.Start()
	}()
	if err := <-started; errors.Is(err, unix.EPERM) {
		t.Skip("rights can't be given up without CAP_SETPCAP")
	} else if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code is returned
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

// setcapAll is the command that the doctor prints for any missing right. It lists all rights, because each call
// replaces earlier ones.
const setcapAll = `: sudo setcap cap_bpf,cap_net_admin,cap_perfmon,cap_sys_admin,cap_net_raw,cap_sys_nice+ep $(command -v olafctl)"`

// TestMissingRights removes the rights of a process that uses real packets, one by one and all together. It checks that
// the error names the right, its use and a remedy, that nothing is started, and that the doctor reports the same.
func TestMissingRights(t *testing.T) {
	if !canReal() {
		t.Skip("no rights for real packets that could be given up")
	}
	held := map[string][]netlab.Right{"all": realRights}
	for _, r := range realRights {
		held[r.Name] = []netlab.Right{r}
	}
	// testbeds work without it but carry less, on a busy machine too little
	t.Run("priority doctor", func(t *testing.T) {
		stdout, _, code := without(t, []netlab.Right{realtime.PriorityRight}, "testbed", "doctor", "-o", "json")
		var doctor struct{ Checks []testbedcmd.Ability }
		if err := json.Unmarshal([]byte(stdout), &doctor); err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, a := range doctor.Checks {
			if a.Better != (a.Name == realtime.PriorityRight.Name) || a.Better && (a.OK || !strings.Contains(a.Remedy, "cap_sys_nice+ep")) {
				t.Errorf("%+v", a)
			}
			if !a.OK && !a.Better {
				want = cli.ExitDevice
			}
		}
		if code != want || !strings.Contains(stdout, setcapAll) || !strings.Contains(stdout, "frames with 48 lanes per second") {
			t.Errorf("exit code %d, want %d:\n%s", code, want, stdout)
		}
	})
	t.Run("priority doctor's table", func(t *testing.T) {
		stdout, _, _ := without(t, []netlab.Right{realtime.PriorityRight}, "testbed", "doctor")
		if strings.Contains(stdout, "MISSING  CAP") || !strings.Contains(stdout, "better   CAP_SYS_NICE") && !strings.Contains(stdout, "better  CAP_SYS_NICE") {
			t.Errorf("it says\n%s", stdout)
		}
	})
	for name, rights := range held {
		for _, args := range [][]string{
			{"bench", "-d", "xdp:", "--runs", "1", "--rate", "1M", "--out-rate", "1M"},
			{"bench", "-d", "xdp:", "--system", "xagg", "--runs", "1"},
			{"train", "-d", "xdp:", "--workers", "2"},
		} {
			t.Run(name+" "+strings.Join(args[:3], " "), func(t *testing.T) {
				t.Parallel()
				stdout, stderr, code := without(t, rights, args...)
				if code != cli.ExitDevice || stdout != "" {
					t.Errorf("exit code %d, printed %q", code, stdout)
				}
				_, list, ok := strings.Cut(stderr, "rights are missing: ")
				list, advice, _ := strings.Cut(list, "; ")
				if !ok || strings.Count(stderr, "\n") != 1 || advice != "run as root, or give the program what it lacks with the command that 'olafctl testbed doctor' prints\n" {
					t.Errorf("printed %q, want one line with the rights and advice", stderr)
				}
				names := map[string]bool{}
				for _, r := range rights {
					if names[r.Name] = true; !strings.Contains(list, r.Name+" (to ") {
						t.Errorf("%s is not listed: %s", r.Name, list)
					}
				}
				if n := strings.Count(list, "CAP_"); n != len(names) {
					t.Errorf("%d rights are listed, want %d: %s", n, len(names), list)
				}
			})
		}
		t.Run(name+" doctor", func(t *testing.T) {
			stdout, stderr, code := without(t, rights, "testbed", "doctor", "-o", "json")
			if code != cli.ExitDevice || !strings.Contains(stderr, "this machine lacks") {
				t.Errorf("exit code %d, %s", code, stderr)
			}
			names := map[string]bool{}
			for _, r := range rights {
				names[r.Name] = true
				if !strings.Contains(stdout, r.Name+`",`) {
					t.Errorf("nothing of %s in\n%s", r.Name, stdout)
				}
			}
			if n := strings.Count(stdout, setcapAll); n != len(names) {
				t.Errorf("%d remedies for %d rights in\n%s", n, len(names), stdout)
			}
		})
	}
}

// old simulates a kernel without ring buffers and bpf_loop.
type old struct{}

func (old) ProgramType(ebpf.ProgramType) error { return nil }

func (old) MapType(t ebpf.MapType) error {
	if t == ebpf.RingBuf {
		return ebpf.ErrNotSupported
	}
	return nil
}

func (old) Helper(_ ebpf.ProgramType, f asm.BuiltinFunc) error {
	if f == asm.FnLoop {
		return ebpf.ErrNotSupported
	}
	return nil
}

func (old) BTF() error { return nil }

// TestDoctorOfOldKernel checks that the doctor lists each feature that a kernel lacks, and none for a kernel that has
// all.
func TestDoctorOfOldKernel(t *testing.T) {
	all := testbedcmd.FeatureAbilities(old{})
	if len(all) != 2 || all[0].Name != "ring buffers" || all[1].Name != "bpf_loop" {
		t.Fatalf("%+v", all)
	}
	for _, a := range all {
		if a.OK || !strings.Contains(a.Finding, "not in this kernel, needed to ") || !strings.Contains(a.Remedy, "run Linux 5.") || !strings.Contains(a.Remedy, "or use -d host:") {
			t.Errorf("%+v", a)
		}
	}
	if canReal() {
		if all := testbedcmd.FeatureAbilities(xdp.RunningKernel()); all != nil {
			t.Errorf("of this kernel: %+v", all)
		}
	}
}
