package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/sshlink"
	"github.com/olafctl/olaf/experiments/testbed/testbedtest"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/internal/test/peer"
)

// pathOfOlafctl returns the folder that contains the program olafctl, which is this test binary.
func pathOfOlafctl(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("olafctl")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(path)
}

// headCommand prepares an olafctl command on a laboratory's head.
func headCommand(t testing.TB, l *testbedtest.Network, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(filepath.Join(pathOfOlafctl(t), "olafctl"), args...)
	cmd.Env = append(os.Environ(), "OLAFCTL_SSH="+l.SSH, "OLAFCTL_HOME="+t.TempDir(), "OLAFCTL_CONFIG=/dev/null")
	return cmd
}

// runOnHead runs olafctl on the head and returns its output and exit code.
func runOnHead(t testing.TB, l *testbedtest.Network, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := headCommand(t, l, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	p, err := l.Head.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // the exit code is returned instead
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

// TestSSHDeviceIsLikeALocalOne measures on a twin on another host and checks that the rows equal those from a twin on
// this host, and that nothing is left there.
func TestSSHDeviceIsLikeALocalOne(t *testing.T) {
	l := testbedtest.NewNetwork(t, 1, pathOfOlafctl(t))
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
	both, said, code := runOnHead(t, l, append(bench, l.Hosts[0].URL("twin:"), "--generator", l.Hosts[0].URL("twin:"))...)
	if code != 0 || both != here {
		t.Errorf("with the generator of another twin there: exit code %d: %s\n%s\nhere:\n%s", code, said, both, here)
	}
	l.AwaitIdle(t)
}

// TestAgentIsCopiedOnce starts without olafctl on the other host and checks that --push copies it and that the copy is
// used from then on.
func TestAgentIsCopiedOnce(t *testing.T) {
	l := testbedtest.NewNetwork(t, 1, "/nowhere")
	info := []string{"device", "info", "-d", l.Hosts[0].URL("twin:")}
	if _, said, code := runOnHead(t, l, info...); code != 3 || !strings.Contains(said, "has no olafctl; --push copies this one") {
		t.Errorf("exit code %d without --push: %s", code, said)
	}
	unfill := fillDisk(t, l.Hosts[0].Folder)
	if _, said, code := runOnHead(t, l, append(info, "--push")...); code != 3 || !strings.Contains(said, "root@10.29.0.2") ||
		!strings.Contains(said, "No space left on device") {
		t.Errorf("exit code %d on a full disk: %s", code, said)
	}
	unfill()
	if out, said, code := runOnHead(t, l, append(info, "--push")...); code != 0 || !strings.Contains(out, "twin-1") {
		t.Errorf("exit code %d with --push: %s", code, said)
	}
	if _, said, code := runOnHead(t, l, info...); code != 0 {
		t.Errorf("exit code %d when it is there: %s", code, said)
	}
	l.AwaitIdle(t)
}

// fillDisk replaces a folder by a file system without room until undo is called or the test ends.
func fillDisk(t *testing.T, folder string) (undo func()) {
	t.Helper()
	if err := unix.Mount("full", folder, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	undo = func() { _ = unix.Unmount(folder, unix.MNT_DETACH) } // once
	t.Cleanup(undo)
	return undo
}

// TestFarHostWithoutRights measures with real packets as a user who lacks the rights on the other host, and checks that
// the message names the host and the right, and that nothing is left.
func TestFarHostWithoutRights(t *testing.T) {
	peer.NeedProgram(t, "setpriv")
	l := testbedtest.NewNetwork(t, 1, pathOfOlafctl(t),
		`ForceCommand setpriv --bounding-set=-all --inh-caps=-all sh -c "$SSH_ORIGINAL_COMMAND"`)
	file := writeRoles(t, l, "hosts: {q: {ssh: HOST0}, here: {}}\nroles:\n  generator: {host: here, nic: to0}\n"+
		"  queue: {host: q, device: 'xdp:lan,lo'}\n  server: {host: here, interface: lo}\n")
	for _, args := range [][]string{
		{"bench", "-d", l.Hosts[0].URL("xdp:"), "--keep=false"}, {"bench", "-d", "testbed:" + file, "--keep=false"},
	} {
		_, said, code := runOnHead(t, l, args...)
		if advised := strings.HasSuffix(said, "; or write 'sudo: true' at host q in the testbed's file\n"); advised != strings.Contains(args[2], "testbed:") {
			t.Errorf("%v: %s; advice only with a file: %t", args, said, advised)
		}
		if code != 3 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "CAP_") || !strings.Contains(said, "host q") && !strings.Contains(said, "10.29.0.2") {
			t.Errorf("%v: exit code %d, want 3 and one line with the host and the right: %s", args, code, said)
		}
	}
	l.AwaitIdle(t)
}

// TestSSHRefusals checks the message for each fault that ssh or the other host reports.
func TestSSHRefusals(t *testing.T) {
	path := pathOfOlafctl(t)
	l := testbedtest.NewNetwork(t, 1, path)
	url := l.Hosts[0].URL
	changed := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(changed, []byte("10.29.0.2 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJcTJMNUaEvJzKGOCtkXgHfVpUBmZSHjS4ZPKjnBGpG1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	withSSH := func(old, other string) *testbedtest.Network {
		return &testbedtest.Network{Head: l.Head, SSH: strings.Replace(l.SSH, old, other, 1)}
	}
	known := l.SSH[strings.LastIndex(l.SSH, "=")+1:]
	for _, c := range []struct {
		name, device string
		lab          *testbedtest.Network
		code         int
		want         string
	}{
		{"a key that the host does not know", url("twin:"), withSSH("/user ", "/host "), 3,
			"; ssh may not ask for a password here"},
		{"an unknown host key", url("twin:"), withSSH(known, "/dev/null"), 3, "compare it once with 'ssh root@10.29.0.2'"},
		{"a changed host key", url("twin:"), withSSH(known, changed), 3, "ask its owner, then 'ssh-keygen -R 10.29.0.2'"},
		{"a port without sshd", "ssh://10.29.0.2:23/twin:", l, 3, "Connection refused; start sshd there"},
		{"a device that is not there", url("pci:0000:3b:00.0"), l, 3, "root@10.29.0.2: no OLAF card at 0000:3b:00.0"},
		{"a device of no kind", url("nix:"), l, 2, "root@10.29.0.2: no such device backend"},
		{"no device", "ssh://10.29.0.2/", l, 2, "does not name a device"},
		{"an option as host", "ssh://-oProxyCommand=x/twin:", l, 2, "is no name of a host"},
		{"no ssh program", url("twin:"), &testbedtest.Network{Head: l.Head, SSH: "/nowhere/ssh"}, 3, "/nowhere/ssh"},
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

// TestDoctorExaminesFarCards checks that the doctor reports the state of a card on another host.
func TestDoctorExaminesFarCards(t *testing.T) {
	l := testbedtest.NewNetwork(t, 1, pathOfOlafctl(t), "AcceptEnv OLAFCTL_TEST_CARD")
	l.SSH += " -o SendEnv=OLAFCTL_TEST_CARD"
	for fault, want := range map[string]struct {
		code  int
		words []string
	}{
		"healthy": {0, []string{"host,passed,\"root@10.29.0.2, an agent of this build", "identity,passed", "port 1,", "generator,passed,idle"}},
		"gone":    {3, []string{"host,passed", ",failed,", "registers,skipped,the card was not opened"}},
	} {
		t.Setenv("OLAFCTL_TEST_CARD", fault)
		out, said, code := runOnHead(t, l, "device", "doctor", "-o", "csv", "-d", l.Hosts[0].URL("pci:0000:3b:00.0"))
		for _, w := range want.words {
			if code != want.code || !strings.Contains(out, w) {
				t.Errorf("%s card: exit code %d, want %d and %q: %s\n%s", fault, code, want.code, w, said, out)
			}
		}
	}
	l.AwaitIdle(t)
}

// TestSSHWithoutForwarding checks the error for an sshd that does not forward sockets.
func TestSSHWithoutForwarding(t *testing.T) {
	l := testbedtest.NewNetwork(t, 1, pathOfOlafctl(t), "AllowStreamLocalForwarding no")
	_, said, code := runOnHead(t, l, "device", "info", "-d", l.Hosts[0].URL("twin:"))
	if code != 3 || !strings.Contains(said, "set AllowStreamLocalForwarding yes") {
		t.Errorf("exit code %d: %s", code, said)
	}
	l.AwaitIdle(t)
}

// killedFlag is the number of moments per host of TestKilledAcrossHosts; 'make hosts' sets it to 30.
var killedFlag = flag.Int("hosts", 2, "moments per host at which something is killed, stopped or cut off")

// victims lists the faults at those moments, with the exit codes of the bench: 3 for a lost device, 130 after Ctrl-C,
// and -1 if the head was killed. The head is also killed where an agent or ssh does not run yet, and by a Ctrl-C before
// it handles signals. A holder is killed after 'testbed up', with a bench on the device that it lends.
var victims = []struct {
	name  string
	codes []int
}{{"head", []int{-1}}, {"ssh", []int{3, -1}}, {"agent", []int{3, -1}}, {"blip", []int{130, -1}}, {"stop", []int{3, -1}}, {"cut", []int{3}},
	{holderVictim, []int{3}}}

const (
	holderVictim = "holder"
	victimHost   = "victim" // name of the host in the testbed of that holder
)

// faultMoment is one fault and its effects.
type faultMoment struct {
	host   *testbedtest.Host
	victim int  // index in victims
	runs   bool // after is measured from the start of the agent, otherwise of the bench
	after  time.Duration
	code   int           // exit code of the bench
	ended  time.Duration // from the fault until the bench ended
	rested time.Duration // from the fault, or the repair of a cable or agent, until no program ran on the host
}

func (m *faultMoment) String() string {
	since := "the bench's start"
	if m.runs {
		since = "the agent's start"
	}
	return fmt.Sprintf("%s on %s %.2fs after %s: exit code %d after %.1fs, idle after %.1fs", victims[m.victim].name, m.host.Name, m.after.Seconds(), since,
		m.code, m.ended.Seconds(), m.rested.Seconds())
}

// TestKilledAcrossHosts runs a bench on each of three hosts. At a moment drawn from the seed it kills the bench's head,
// ssh, agent or holder, stops the agent, or cuts the cable for 200 ms or permanently. It checks that nothing is left on
// any host and that the next bench works.
func TestKilledAcrossHosts(t *testing.T) {
	if !canReal() {
		t.Skip("without the rights to make namespaces and load programs")
	}
	l := testbedtest.NewNetwork(t, 3, pathOfOlafctl(t))
	seed := rapidSeed(t)
	draw := rand.New(rand.NewPCG(seed, 0))
	first := draw.IntN(len(victims))
	var all []*faultMoment
	for round := range *killedFlag {
		var hosts sync.WaitGroup
		var lines []string
		for k, host := range l.Hosts {
			// Two rounds use six of the seven victims; seven rounds use each victim on every host.
			m := &faultMoment{host: host, victim: (first + len(l.Hosts)*round + k) % len(victims),
				runs: draw.IntN(2) == 0, after: time.Duration(draw.Int64N(int64(2 * time.Second)))}
			all = append(all, m)
			hosts.Go(func() { m.harmBench(t, l) })
		}
		hosts.Wait()
		l.AwaitIdle(t)
		for _, m := range all[len(all)-len(l.Hosts):] {
			lines = append(lines, m.String())
		}
		t.Logf("round %d of %d\n%s", round+1, *killedFlag, strings.Join(lines, "\n"))
	}
	t.Log("\n" + tabulateMoments(all))
}

// harmBench starts a bench on the host, waits for the moment and causes the fault. Then the host must become idle, and
// another bench must work.
func (m *faultMoment) harmBench(t *testing.T, l *testbedtest.Network) {
	victim, url := victims[m.victim], m.host.URL("host:")
	device, takeDown := url, func() {}
	if victim.name == holderVictim {
		device, takeDown = m.bringUp(t, l)
	}
	cmd := headCommand(t, l, slowBench(device, "--runs", "1000")...)
	var said bytes.Buffer
	cmd.Stderr = &said
	p, err := l.Head.Start(cmd)
	if err != nil {
		t.Error(err)
		return
	}
	for m.runs && pidOf(t, m.host, "olafctl device serve") == 0 && !hasEnded(p) {
		time.Sleep(50 * time.Millisecond) // there is no notification
	}
	time.Sleep(m.after)
	fault := time.Now()
	repair := harm(t, l, m.host, cmd, victim.name)
	_ = p.Wait() // the exit code says more
	m.ended, m.code = time.Since(fault), cmd.ProcessState.ExitCode()
	if victim.name == "stop" || victim.name == "cut" {
		fault = time.Now()
	}
	repair()
	takeDown()
	names := strings.Contains(said.String(), m.host.Name) || strings.Contains(said.String(), "host "+victimHost)
	if !slices.Contains(victim.codes, m.code) || m.code == 3 && !names {
		t.Errorf("%v: want one of the exit codes %v, and the host's name: %s", m, victim.codes, &said)
	}
	l.AwaitIdle(t, m.host)
	m.rested = time.Since(fault)
	if _, said, code := runOnHead(t, l, slowBench(url, "--runs", "1")...); code != 0 {
		t.Errorf("%v; the next bench then ends with exit code %d: %s", m, code, said)
	}
}

// bringUp brings up a testbed with a device of the host, which a holder there lends. It returns the testbed's address and
// a function that takes the testbed down.
func (m *faultMoment) bringUp(t *testing.T, l *testbedtest.Network) (device string, takeDown func()) {
	name := fmt.Sprintf("killed%d%s", os.Getpid(), strings.NewReplacer("root@", "-", ".", "-").Replace(m.host.Name))
	file := filepath.Join(t.TempDir(), name+".yaml")
	text := fmt.Sprintf("hosts: {%s: {ssh: %s}}\nroles:\n  queue: {host: %[1]s, device: 'host:'}\n", victimHost, m.host.Name)
	expect := func(args ...string) {
		if _, said, code := runOnHead(t, l, append([]string{"testbed"}, args...)...); code != 0 {
			t.Errorf("%v: %v: exit code %d: %s", m, args, code, said)
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	expect("up", file)
	return "testbed:" + name, func() { expect("down", name) }
}

// slowBench returns a bench on real packets at 200 frames a second, which every machine carries while other tests run. A
// machine refuses rates above half of what it carries.
func slowBench(device string, flags ...string) []string {
	return append([]string{"bench", "-d", device, "--rate", "400k", "--out-rate", "150k", "--burst", "1", "--updates", "6", "-q",
		"--keep=false"}, flags...)
}

func hasEnded(p *netlab.Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// tabulateMoments returns a table with a row per victim, which lists how the benches ended and the longest times.
func tabulateMoments(all []*faultMoment) string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "VICTIM\tMOMENTS\tEXIT CODES\tBENCH ENDED WITHIN\tHOST IDLE WITHIN\t")
	for i, v := range victims {
		codes, moments := map[int]int{}, 0
		var ended, rested time.Duration
		for _, m := range all {
			if m.victim == i {
				moments++
				codes[m.code]++
				ended, rested = max(ended, m.ended), max(rested, m.rested)
			}
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%.1fs\t%.1fs\t\n", v.name, moments, strings.TrimPrefix(fmt.Sprint(codes), "map"), ended.Seconds(), rested.Seconds())
	}
	_ = table.Flush() // into memory
	return out.String()
}

// TestFarKernelBenches measures real packets on other hosts, one after the other, and checks that every run is valid:
// all counts agree, and every decision is the same as the engine's.
func TestFarKernelBenches(t *testing.T) {
	if !canReal() {
		t.Skip("without the rights to make namespaces and load programs")
	}
	t.Parallel() // 20 benches take a minute, of which a third is waiting
	l := testbedtest.NewNetwork(t, 3, pathOfOlafctl(t))
	for i := range 20 {
		device := l.Hosts[i%len(l.Hosts)].URL([]string{"xdp:", "host:"}[i%2])
		out, said, code := runOnHead(t, l, slowBench(device, "--runs", "1", "--updates", "2", "-o", "csv")...)
		if code != 0 || strings.Count(out, "\n") < 3 {
			t.Errorf("bench %d on %s: exit code %d: %s\n%s", i+1, device, code, said, out)
		}
	}
	l.AwaitIdle(t)
}

// harm applies the fault with a victim's name to the head, its ssh, its agent or its cable. The returned function
// repairs the damage after the head has exited.
func harm(t *testing.T, l *testbedtest.Network, host *testbedtest.Host, head *exec.Cmd, victim string) (after func()) {
	t.Helper()
	after = func() {}
	switch victim {
	case "blip":
		host.Cut(t, true)
		time.Sleep(200 * time.Millisecond)
		host.Cut(t, false)
		_ = head.Process.Signal(os.Interrupt) // it may have ended
	case "cut":
		host.Cut(t, true)
		after = func() {
			host.Cut(t, false)
			l.AwaitReachable(t, host)
		}
	case "stop":
		pid := pidOf(t, host, "olafctl device serve")
		if pid == 0 {
			_ = head.Process.Kill()
			return after
		}
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		after = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	default:
		killVictim(t, l, host, head, victim)
	}
	return after
}

// pidOf returns the process on a host whose command line contains all of the words, or 0 if there is none.
func pidOf(t *testing.T, host *testbedtest.Host, words ...string) (pid int) {
	t.Helper()
	for _, p := range host.Processes(t) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(p, word) }) {
			_, _ = fmt.Sscan(p, &pid) // a process begins with its number
		}
	}
	return pid
}

// killVictim kills the head, its ssh, its agent or the host's holder. It kills the head if the chosen process does not run yet.
func killVictim(t *testing.T, l *testbedtest.Network, host *testbedtest.Host, head *exec.Cmd, victim string) {
	t.Helper()
	pid := 0
	switch victim {
	case "ssh":
		pid = pidOf(t, &testbedtest.Host{Node: l.Head}, "ServerAliveInterval", strings.TrimPrefix(host.Name, "root@"))
	case "agent":
		pid = pidOf(t, host, "olafctl device serve")
	case holderVictim:
		if pid = pidOf(t, host, "olafctl testbed hold"); pid == 0 {
			t.Errorf("no holder runs on %s after 'testbed up', only %q", host.Name, host.Processes(t))
		}
	}
	if pid == 0 { // the victim is the head, or its process has not started yet
		pid = head.Process.Pid
	}
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
}

// rapidSeed returns the seed for property tests, which differs each time unless RAPID_SEED is set.
func rapidSeed(t *testing.T) uint64 {
	if seed, err := strconv.ParseUint(os.Getenv("RAPID_SEED"), 10, 64); err == nil && seed != 0 {
		return seed
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return seed
}

// connectHost starts an agent without a device on the first host.
func connectHost(t *testing.T, l *testbedtest.Network) *testbed.Host {
	t.Helper()
	at, _, err := sshlink.Parse(l.Hosts[0].URL(""))
	if err != nil {
		t.Fatal(err)
	}
	env := process()
	access := testbed.Access{SSH: sshlink.Options{Program: peer.NeedProgram(t, "nsenter") + " --net=" + l.Head.Path() + " " + l.SSH,
		Identify: env.Build, Executable: os.Executable}}
	h, err := testbed.ConnectHost(t.Context(), at, &access)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHostAgent checks the features of a host without a device: its clock, the programs of a closed list with their
// output, the files in the run's folder only, and the frames from an interface.
func TestHostAgent(t *testing.T) {
	l := testbedtest.NewNetwork(t, 1, pathOfOlafctl(t))
	h := connectHost(t, l)
	ctx := t.Context()
	offset, err := h.Offset(ctx)
	if err != nil || max(offset.OffsetNS, -offset.OffsetNS) > offset.BoundNS {
		t.Errorf("the clock of this machine seems to be off by %d ns ± %d (%v)", offset.OffsetNS, offset.BoundNS, err)
	}
	run := func(name string, args ...string) (out []string, code int, err error) {
		p, err := h.Start(ctx, testbed.HostCommand{Name: name, Args: args})
		if err != nil {
			return nil, 0, err
		}
		code, err = p.Wait(func(text string, _ bool) { out = append(out, text) })
		return out, code, err
	}
	if out, code, err := run("worker", "--help"); err != nil || code != 0 || len(out) < 10 {
		t.Errorf("worker --help: exit code %d, %v: %q", code, err, out)
	}
	if out, code, err := run("ps", "--no-such-flag"); err != nil || code != 2 || len(out) != 1 {
		t.Errorf("a wrong flag: exit code %d, %v: %q", code, err, out)
	}
	if _, _, err := run("sh", "-c", "true"); err == nil || !strings.Contains(err.Error(), "may start only worker, ps or capture here") {
		t.Errorf("a program that is not in the list: %v", err)
	}
	var file bytes.Buffer
	for _, name := range []string{"/etc/passwd", "../olafctl", "s", "none"} {
		if err := h.ReadFile(ctx, name, &file); err == nil || file.Len() > 0 {
			t.Errorf("file %s was read: %v", name, err)
		}
	}
	if err := h.Call(ctx, "nothing", 1, nil); err == nil || !strings.Contains(err.Error(), `does not support request "nothing"`) {
		t.Errorf("an unknown request: %v", err)
	}
	expectFrames(t, l, h)
	captureFile(t, l, h)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	l.AwaitIdle(t)
}

// TestKilledAgentLeavesNoPrograms kills an agent while its program runs, and checks that the kernel ends the program
// and the shell removes the folder with the program's files.
func TestKilledAgentLeavesNoPrograms(t *testing.T) {
	unfinished := func() (files []string) {
		files, _ = filepath.Glob(filepath.Join(os.TempDir(), ".left.pcapng*")) // the pattern is valid
		return files
	}
	before := unfinished()
	l := testbedtest.NewNetwork(t, 1, pathOfOlafctl(t))
	h := connectHost(t, l)
	captureFile(t, l, h)
	killVictim(t, l, l.Hosts[0], nil, "agent")
	l.AwaitIdle(t)
	if now := unfinished(); !slices.Equal(now, before) {
		t.Errorf("unfinished captures are left: %q, before %q", now, before)
	}
	if _, err := h.Offset(t.Context()); err == nil || !strings.Contains(err.Error(), "root@10.29.0.2") {
		t.Errorf("after its end, the host answers with %v", err)
	}
	_ = h.Close() // the host is gone
}

// sendFrame sends a datagram from the head to the host.
func sendFrame(t *testing.T, l *testbedtest.Network) {
	t.Helper()
	err := l.Head.Do(func() error {
		c, err := net.Dial("udp", "10.29.0.2:9")
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write([]byte("frame of this test"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// expectFrames captures a frame on the host.
func expectFrames(t *testing.T, l *testbedtest.Network, h *testbed.Host) {
	t.Helper()
	if _, err := h.OpenFrames(t.Context(), live.Options{Interface: "nothere"}); err == nil || !strings.Contains(err.Error(), "nothere") {
		t.Errorf("an interface that is not there: %v", err)
	}
	frames, err := h.OpenFrames(t.Context(), live.Options{Interface: "lan", All: true})
	if err != nil {
		t.Fatal(err)
	}
	sendFrame(t, l)
	for {
		var p capture.Packet
		err := frames.Next(&p)
		if err == nil && bytes.Contains(p.Data, []byte("frame of this test")) {
			break
		}
		if err != nil && !errors.Is(err, capture.ErrIdle) {
			t.Fatal(err)
		}
	}
	if drops, err := frames.Drops(); err != nil || drops.Total() != 0 || !strings.HasSuffix(frames.Info().Interface, "/lan") {
		t.Errorf("%+v, %v, %+v", drops, err, frames.Info())
	}
}

// captureFile runs a capture on the host, ends it and reads its file. A second capture is still running when the agent
// exits.
func captureFile(t *testing.T, l *testbedtest.Network, h *testbed.Host) {
	t.Helper()
	for _, name := range []string{"run.pcapng", "left.pcapng"} {
		p, err := h.Start(t.Context(), testbed.HostCommand{Name: "capture", Args: []string{"-i", "lan", "-w", name}})
		if err != nil {
			t.Fatal(err)
		}
		begun := make(chan bool, 1)
		var once sync.Once
		ended := make(chan int, 1)
		go func() {
			code, _ := p.Wait(func(string, bool) { once.Do(func() { begun <- true }) })
			ended <- code
		}()
		<-begun
		if name != "run.pcapng" {
			return
		}
		if err := p.Interrupt(); err != nil {
			t.Fatal(err)
		}
		if code := <-ended; code != 130 && code != 0 {
			t.Errorf("capture ended with exit code %d", code)
		}
		var file bytes.Buffer
		if err := h.ReadFile(t.Context(), name, &file); err != nil || file.Len() == 0 {
			t.Errorf("%d bytes of %s, %v", file.Len(), name, err)
		}
	}
}
