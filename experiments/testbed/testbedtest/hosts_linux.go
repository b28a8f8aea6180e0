package testbedtest

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/internal/test/peer"
)

// Network consists of a head and several hosts, each in a separate network namespace. A cable connects the head with each
// host.
type Network struct {
	Head  *netlab.Node
	Hosts []*Host
	// SSH is the ssh program with the options that reach the hosts: OLAFCTL_SSH.
	SSH string

	before []string // sockets' folders of other programs on this machine
}

// Host is a host on which sshd runs. All hosts share the file system of this machine, but each has its own user cache
// in Folder.
type Host struct {
	*netlab.Node
	Name   string // root@ADDRESS
	Folder string
	Sshd   *netlab.Process
	cable  *netlab.Cable
}

// Cut unplugs the host's cable if out is set, and plugs it in again otherwise.
func (h *Host) Cut(t testing.TB, out bool) {
	t.Helper()
	requireNoError(t, h.cable.B.Do(func() error {
		link, err := netlink.LinkByIndex(h.cable.B.Index)
		if err != nil {
			return err
		}
		if out {
			return netlink.LinkSetDown(link)
		}
		return netlink.LinkSetUp(link)
	}))
}

// NewNetwork starts n hosts that run until the test ends. On the hosts, the folder path is in PATH, and settings are added to
// sshd's configuration. NewNetwork skips the test if sshd, ssh or a right is missing.
func NewNetwork(t testing.TB, n int, path string, settings ...string) *Network {
	t.Helper()
	sshd, keygen := "/usr/sbin/sshd", peer.NeedProgram(t, "ssh-keygen")
	if _, err := os.Stat(sshd); err != nil {
		sshd = peer.NeedProgram(t, "sshd")
	}
	if err := netlab.CheckRights(netlab.NamespaceRights...); err != nil {
		t.Skip(err)
	}
	networks, err := netlab.New()
	requireNoError(t, err)
	t.Cleanup(func() { requireNoError(t, networks.Close()) })
	folder := t.TempDir()
	for _, key := range []string{"host", "user"} {
		mustRun(t, keygen, "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(folder, key))
	}
	requireNoError(t, os.MkdirAll("/run/sshd", 0o755)) // sshd requires it
	l := &Network{SSH: fmt.Sprintf("ssh -F none -i %s/user -o UserKnownHostsFile=%s/known", folder, folder), before: listSocketFolders()}
	l.Head, err = networks.Node("head")
	requireNoError(t, err)
	public, err := os.ReadFile(filepath.Join(folder, "host.pub"))
	requireNoError(t, err)
	var known bytes.Buffer
	for i := range n {
		address := fmt.Sprintf("10.29.%d.2", i)
		h := &Host{Name: "root@" + address, Folder: filepath.Join(folder, fmt.Sprint("host", i))}
		requireNoError(t, os.Mkdir(h.Folder, 0o755))
		h.Node, err = networks.Node(fmt.Sprint("host", i))
		requireNoError(t, err)
		cable, err := netlab.ConnectNodes(netlab.End{Node: l.Head, Name: fmt.Sprint("to", i)}, netlab.End{Node: h.Node, Name: "lan"}, 1500)
		requireNoError(t, err)
		h.cable = cable
		requireNoError(t, cable.A.Address(netip.MustParsePrefix(fmt.Sprintf("10.29.%d.1/24", i))))
		requireNoError(t, cable.B.Address(netip.MustParsePrefix(address+"/24")))
		fmt.Fprintf(&known, "%s %s", address, public)
		h.startSshd(t, sshd, folder, path, settings)
		l.Hosts = append(l.Hosts, h)
	}
	requireNoError(t, os.WriteFile(filepath.Join(folder, "known"), known.Bytes(), 0o600))
	return l
}

// startSshd starts sshd on the host and waits until it listens.
func (h *Host) startSshd(t testing.TB, sshd, folder, path string, settings []string) {
	t.Helper()
	lines := append(slices.Clone(settings), "ListenAddress 0.0.0.0", "HostKey "+folder+"/host", "AuthorizedKeysFile "+folder+"/user.pub",
		"PidFile none", "StrictModes no", "UsePAM no", "PermitRootLogin yes", "PasswordAuthentication no",
		"SetEnv PATH="+path+":/usr/bin:/bin XDG_CACHE_HOME="+h.Folder+" OLAFCTL_CONFIG=/dev/null")
	config := filepath.Join(h.Folder, "sshd_config")
	requireNoError(t, os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	cmd := exec.Command(sshd, "-D", "-e", "-f", config)
	words, err := cmd.StderrPipe()
	requireNoError(t, err)
	h.Sshd, err = h.Start(cmd)
	requireNoError(t, err)
	listens := make(chan bool, 1)
	go func() {
		for all := bufio.NewScanner(words); all.Scan(); {
			if strings.Contains(all.Text(), "Server listening") {
				listens <- true
			}
		}
		close(listens)
	}()
	if !<-listens {
		t.Fatal("sshd does not start")
	}
}

// AwaitReachable waits until the head can reach a host again.
func (l *Network) AwaitReachable(t testing.TB, h *Host) {
	t.Helper()
	_, address, _ := strings.Cut(h.Name, "@")
	requireNoError(t, l.Head.Do(func() (err error) {
		for deadline := time.Now().Add(leavePatience); time.Now().Before(deadline); {
			var c net.Conn
			if c, err = net.DialTimeout("tcp", address+":22", leavePatience); err == nil {
				return c.Close()
			}
		}
		return err
	}))
}

// URL returns the address of a device on the host.
func (h *Host) URL(device string) string { return "ssh://" + h.Name + "/" + device }

// Processes returns the programs that run on the host, except for sshd and this test.
func (h *Host) Processes(t testing.TB) (all []string) {
	t.Helper()
	own, err := os.Stat(h.Path())
	requireNoError(t, err)
	entries, err := filepath.Glob("/proc/[0-9]*")
	requireNoError(t, err)
	for _, p := range entries { // any of them may end meanwhile
		if p == fmt.Sprint("/proc/", os.Getpid()) || !hasThreadIn(p, own) {
			continue
		}
		if command, _ := os.ReadFile(p + "/cmdline"); len(command) > 0 && !bytes.Contains(command, []byte("sshd")) {
			all = append(all, fmt.Sprintf("%s %q", filepath.Base(p), bytes.ReplaceAll(command, []byte{0}, []byte(" "))))
		}
	}
	return all
}

// hasThreadIn reports whether a process has a thread in a network. Programs enter other networks with single threads, and
// the first one may be among them.
func hasThreadIn(process string, network os.FileInfo) bool {
	threads, _ := filepath.Glob(process + "/task/[0-9]*/ns/net") // none if it has ended
	return slices.ContainsFunc(threads, func(thread string) bool {
		its, err := os.Stat(thread)
		return err == nil && os.SameFile(network, its)
	})
}

// leavePatience is the longest time that an agent may take to end. It includes the longest silence and the time to
// close the device.
const leavePatience = time.Minute

// AwaitIdle waits until no program is running on the given hosts. If no hosts are given, it waits until all hosts are
// idle and no socket is left.
func (l *Network) AwaitIdle(t testing.TB, hosts ...*Host) {
	t.Helper()
	for deadline := time.Now().Add(leavePatience); ; time.Sleep(50 * time.Millisecond) { // there is no notification
		var left []string
		if len(hosts) == 0 { // hosts share the file system, so that the sockets of others are seen
			for _, folder := range listSocketFolders() {
				if !slices.Contains(l.before, folder) {
					left = append(left, folder)
				}
			}
			left = append(left, programsOn(t, l.Hosts)...)
		}
		left = append(left, programsOn(t, hosts)...)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind: %s", strings.Join(left, "; "))
		}
	}
}

func programsOn(t testing.TB, hosts []*Host) (all []string) {
	t.Helper()
	for _, h := range hosts {
		all = append(all, h.Processes(t)...)
	}
	return all
}

// listSocketFolders returns the folders of agents' sockets on this machine. It ignores the error of filepath.Glob,
// because the pattern is valid.
func listSocketFolders() []string {
	folders, _ := filepath.Glob("/tmp/olafctl-" + strings.Repeat("[A-Z2-7]", len(rand.Text())))
	return folders
}

func mustRun(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}
