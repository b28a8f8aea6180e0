package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/olafctl/olaf/experiments/testbed/sshlink/sshlinktest"
)

// pathOfOlafctl is the folder of the program olafctl, which is this test binary.
func pathOfOlafctl(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("olafctl")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(path)
}

// headCommand prepares olafctl on a laboratory's head.
func headCommand(t testing.TB, l *sshlinktest.Lab, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(filepath.Join(pathOfOlafctl(t), "olafctl"), args...)
	cmd.Env = append(os.Environ(), "OLAFCTL_SSH="+l.SSH, "OLAFCTL_HOME="+t.TempDir(), "OLAFCTL_CONFIG=/dev/null")
	return cmd
}

// runOnHead runs olafctl on the head and returns its output and exit code.
func runOnHead(t testing.TB, l *sshlinktest.Lab, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := headCommand(t, l, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	p, err := l.Head.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // the exit code says more
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

// TestSSHDeviceIsLikeALocalOne measures on a twin of another host: the rows are those of a twin of this host, and nothing is
// left there.
func TestSSHDeviceIsLikeALocalOne(t *testing.T) {
	l := sshlinktest.New(t, 1, pathOfOlafctl(t))
	bench := []string{"bench", "--runs", "2", "--updates", "60", "-o", "csv", "-q", "--keep=false", "-d"}
	here, said, code := runOnHead(t, l, append(bench, "twin:")...)
	if code != 0 {
		t.Fatal(said)
	}
	there, said, code := runOnHead(t, l, append(bench, l.Hosts[0].URL("twin:"))...)
	if code != 0 || said != "" {
		t.Fatalf("exit code %d: %s", code, said)
	}
	if here != there {
		t.Errorf("rows here:\n%s\nthere:\n%s", here, there)
	}
	l.AwaitIdle(t)
}

// TestAgentIsCopiedOnce starts without olafctl on the other host: it is copied with --push, and used from then on.
func TestAgentIsCopiedOnce(t *testing.T) {
	l := sshlinktest.New(t, 1, "/nowhere")
	info := []string{"device", "info", "-d", l.Hosts[0].URL("twin:")}
	if _, said, code := runOnHead(t, l, info...); code != 3 || !strings.Contains(said, "has no olafctl; --push copies this one") {
		t.Errorf("exit code %d without --push: %s", code, said)
	}
	if out, said, code := runOnHead(t, l, append(info, "--push")...); code != 0 || !strings.Contains(out, "twin-1") {
		t.Errorf("exit code %d with --push: %s", code, said)
	}
	if _, said, code := runOnHead(t, l, info...); code != 0 {
		t.Errorf("exit code %d when it is there: %s", code, said)
	}
	l.AwaitIdle(t)
}

// TestSSHRefusals checks the message of each fault that ssh or the other host reports.
func TestSSHRefusals(t *testing.T) {
	path := pathOfOlafctl(t)
	l := sshlinktest.New(t, 1, path)
	url := l.Hosts[0].URL
	changed := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(changed, []byte("10.29.0.2 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJcTJMNUaEvJzKGOCtkXgHfVpUBmZSHjS4ZPKjnBGpG1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	withSSH := func(old, other string) *sshlinktest.Lab {
		return &sshlinktest.Lab{Head: l.Head, SSH: strings.Replace(l.SSH, old, other, 1)}
	}
	known := l.SSH[strings.LastIndex(l.SSH, "=")+1:]
	for _, c := range []struct {
		name, device string
		lab          *sshlinktest.Lab
		code         int
		want         string
	}{
		{"a key that the host does not know", url("twin:"), withSSH("/user ", "/host "), 3,
			"; ssh may not ask for a password here"},
		{"an unknown host key", url("twin:"), withSSH(known, "/dev/null"), 3, "compare it once with 'ssh 10.29.0.2'"},
		{"a changed host key", url("twin:"), withSSH(known, changed), 3, "ask its owner, then 'ssh-keygen -R 10.29.0.2'"},
		{"a port without sshd", "ssh://10.29.0.2:23/twin:", l, 3, "Connection refused; start sshd there"},
		{"a device that is not there", url("pci:0000:3b:00.0"), l, 3, "root@10.29.0.2: "},
		{"a device of no kind", url("nix:"), l, 2, "root@10.29.0.2: no such device backend"},
		{"no device", "ssh://10.29.0.2/", l, 2, "names no device"},
		{"an option as host", "ssh://-oProxyCommand=x/twin:", l, 2, "is no name of a host"},
		{"no ssh program", url("twin:"), &sshlinktest.Lab{Head: l.Head, SSH: "/nowhere/ssh"}, 3, "/nowhere/ssh"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, said, code := runOnHead(t, c.lab, "device", "info", "-d", c.device)
			if code != c.code || !strings.Contains(said, c.want) || strings.Count(said, "\n") != 1 {
				t.Errorf("exit code %d, want %d and one line with %q: %s", code, c.code, c.want, said)
			}
		})
	}
	l.AwaitIdle(t)
}

// TestSSHWithoutForwarding names an sshd that forwards no sockets.
func TestSSHWithoutForwarding(t *testing.T) {
	l := sshlinktest.New(t, 1, pathOfOlafctl(t), "AllowStreamLocalForwarding no")
	_, said, code := runOnHead(t, l, "device", "info", "-d", l.Hosts[0].URL("twin:"))
	if code != 3 || !strings.Contains(said, "set AllowStreamLocalForwarding yes") {
		t.Errorf("exit code %d: %s", code, said)
	}
	l.AwaitIdle(t)
}

// killedFlag is the number of moments of TestKilledAcrossHosts.
var killedFlag = flag.Int("hosts", 6, "moments at which something is killed across hosts")

// TestKilledAcrossHosts kills the head, ssh or the agent during a bench on packets of another host's kernel, at moments drawn by
// the seed: nothing is left on the host, and the next command works.
func TestKilledAcrossHosts(t *testing.T) {
	if !canReal() {
		t.Skip("without the rights to make namespaces and load programs")
	}
	l := sshlinktest.New(t, 1, pathOfOlafctl(t))
	host := l.Hosts[0]
	seed := rapidSeed(t)
	draw := rand.New(rand.NewPCG(seed, 0))
	victims := []string{"head", "ssh", "agent"}
	for i := range *killedFlag {
		victim, moment := victims[i%len(victims)], time.Duration(draw.Int64N(int64(3*time.Second)))
		cmd := headCommand(t, l, "bench", "-d", host.URL("host:"), "--runs", "1000", "-q", "--keep=false")
		p, err := l.Head.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(moment)
		killVictim(t, l, cmd, victim)
		_ = p.Wait() // it was killed, or lost its device
		if code := cmd.ProcessState.ExitCode(); victim != "head" && code != 3 && code != -1 {
			t.Errorf("the bench ended with exit code %d after its %s was killed", code, victim)
		}
		l.AwaitIdle(t)
		if _, said, code := runOnHead(t, l, "device", "info", "-d", host.URL("host:")); code != 0 {
			t.Fatalf("%s killed after %v (seed %d), then exit code %d: %s", victim, moment, seed, code, said)
		}
	}
}

// rapidSeed returns the seed of property tests: another one each time, unless RAPID_SEED is set.
func rapidSeed(t *testing.T) uint64 {
	if seed, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 10, 64); err == nil && seed != 0 {
		return seed
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return seed
}

// killVictim kills the head, its ssh or its agent, if that runs yet.
func killVictim(t *testing.T, l *sshlinktest.Lab, head *exec.Cmd, victim string) {
	t.Helper()
	find := func(word string, among []string) (pid int) {
		for _, p := range among {
			if strings.Contains(p, word) {
				_, _ = fmt.Sscan(p, &pid) // a process begins with its number
			}
		}
		return pid
	}
	pid := head.Process.Pid
	switch victim {
	case "ssh":
		pid = find("ServerAliveInterval", (&sshlinktest.Host{Node: l.Head}).Processes(t))
	case "agent":
		pid = find("olafctl device serve", l.Hosts[0].Processes(t))
	}
	if pid == 0 {
		pid = head.Process.Pid
	}
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
}
