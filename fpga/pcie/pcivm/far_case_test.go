package pcivm

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// joined is one of two cards with a cable between them. Only one processor at a time accesses them.
type joined struct {
	*realCard
	both  *sync.Mutex
	queue *realCard // lets the time of both pass
}

func (j joined) pass() {
	j.both.Lock()
	defer j.both.Unlock()
	j.queue.pass()
}

// Load32 handles a read.
func (j joined) Load32(offset uint32) uint32 {
	j.both.Lock()
	defer j.both.Unlock()
	return j.realCard.Load32(offset)
}

// Store32 handles a write.
func (j joined) Store32(offset, value uint32) {
	j.both.Lock()
	defer j.both.Unlock()
	j.realCard.Store32(offset, value)
}

// farGuest is a guest with a card and an sshd, which is reached through a port of this host.
type farGuest struct {
	*machine
	url string
}

// bootFar starts a guest on the wire with an sshd. Its eth1 is connected to this host.
func bootFar(t *testing.T, w *wire, name string) *farGuest {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // find a free port
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	m := bootOnWire(t, w, name, "-device", "virtio-net-pci,netdev=head,romfile=",
		"-netdev", fmt.Sprintf("user,id=head,restrict=on,hostfwd=tcp:127.0.0.1:%d-:22", port))
	m.do(t, "await /sys/class/net/eth1")
	if err := makeKeys(); err != nil {
		t.Fatal(err)
	}
	script := []byte(sshdScript)
	for word, file := range map[string]string{"HOST": "host", "USER": "user.pub"} {
		key, err := os.ReadFile(filepath.Join(buildFolder, file))
		if err != nil {
			t.Fatal(err)
		}
		script = bytes.ReplaceAll(script, []byte(word), key)
	}
	m.send(t, Command{Args: []string{"sh", "-c", string(script)}}).awaitLine(t, "Server listening")
	return &farGuest{m, fmt.Sprintf("ssh://root@127.0.0.1:%d/", port)}
}

// makeKeys creates the guests' host key and this host's key.
var makeKeys = sync.OnceValue(func() (err error) {
	for _, key := range []string{"host", "user"} {
		_, err2 := output("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(buildFolder, key))
		err = errors.Join(err, err2)
	}
	return err
})

// sshdScript prepares a guest for sshd and starts it. HOST and USER are replaced by keys. OpenSSH's default key
// exchange would take seconds in the guest.
const sshdScript = `set -e
mkdir /etc /run/sshd
echo 'root:x:0:0::/tmp:/bin/sh
sshd:x:100:100::/run/sshd:/bin/false' >/etc/passwd
umask 077
echo 'HOST' >/etc/host
echo 'USER' >/etc/user
ip link set lo up
ip address add 10.0.2.15/24 dev eth1
ip link set eth1 up
exec /bin/sshd -D -e -f /dev/null -h /etc/host -o AuthorizedKeysFile=/etc/user -o StrictModes=no -o PidFile=none \
 -o KexAlgorithms=curve25519-sha256 -o SetEnv=PATH=/bin`

// startOnHead starts olafctl on this host.
func startOnHead(t *testing.T, command string) *headProcess {
	t.Helper()
	args := strings.Fields(command)
	p := &headProcess{Cmd: exec.CommandContext(t.Context(), filepath.Join(buildFolder, args[0]), args[1:]...), command: command}
	// A failed case leaves its plan in TMPDIR, which is one folder for all commands.
	p.Env = append(os.Environ(), "OLAFCTL_CONFIG=/dev/null", "OLAFCTL_HOME="+t.TempDir(), "TMPDIR="+buildFolder, fmt.Sprintf("OLAFCTL_SSH=ssh -F none -i %s/user "+
		"-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR", buildFolder))
	p.Stdout, p.Stderr = &p.out, &p.said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// headProcess is olafctl on this host.
type headProcess struct {
	*exec.Cmd
	command   string
	out, said bytes.Buffer
}

// expect waits for the process to end and checks its exit code and output.
func (p *headProcess) expect(t *testing.T, code int, patterns ...string) answer {
	t.Helper()
	_ = p.Wait() // the exit code says more
	return expectAnswer(t, p.command, answer{p.out.String(), p.said.String(), p.ProcessState.ExitCode()}, code, patterns...)
}

// farLab consists of two guests with cards: the generator of one sends to the queue of the other, whose frames go to
// both guests.
type farLab struct {
	generator, queue *farGuest
	cards            []*realCard // the generator's, and the queue's
	both             sync.Mutex
	wire             *wire
}

// newFarLab inserts joined cards into a new guest, which gets the generator, and into the guest with the queue.
func newFarLab(t *testing.T, queueGuest *farGuest, w *wire) *farLab {
	t.Helper()
	l := &farLab{wire: w, queue: queueGuest, generator: bootFar(t, w, "generator")}
	for range 2 {
		c, err := newCard("twin")
		if err != nil {
			t.Fatal(err)
		}
		l.cards = append(l.cards, c)
	}
	generator, queue := l.cards[0], l.cards[1]
	if err := twin.Join(generator.Twin(), queue.Twin()); err != nil {
		t.Fatal(err)
	}
	queue.feeds, queue.send = generator, l.wire.send
	for i, m := range []*farGuest{l.generator, l.queue} {
		m.remove(t)
		b := newBoard(joined{l.cards[i], &l.both, queue}, openNIC, 1)
		m.insert(t, b)
		m.enable(t)
	}
	l.queue.card.live(t)
	t.Cleanup(func() {
		if err := errors.Join(generator.errs, queue.errs); err != nil {
			t.Error(err)
		}
	})
	return l
}

// awaitCommand returns a channel that is closed when the generator next receives a command.
func (l *farLab) awaitCommand(command uint32) <-chan struct{} {
	received := make(chan struct{})
	b := l.generator.card
	b.with(func() {
		b.arrive = func(_ int, a access) {
			if a.write && uint32(a.addr) == regmap.GeneratorCommand && a.value&uint64(command) != 0 {
				b.arrive = nil
				close(received)
			}
		}
	})
	return received
}

// expectIdle checks that the generator does not send.
func (l *farLab) expectIdle(t *testing.T, when string) {
	t.Helper()
	l.both.Lock()
	defer l.both.Unlock()
	v, err := l.cards[0].Blocks.Read32(regmap.GeneratorState)
	if state := v & regmap.GeneratorStateStateMask; err != nil || state != regmap.GeneratorStateStateIdle {
		t.Errorf("%s, the generator's state is %d (%v), want idle", when, state, err)
	}
}

// checkFar uses the cards of two guests from this host, through the guests' sshds.
func checkFar(t *testing.T, queueGuest *farGuest, w *wire) {
	l := newFarLab(t, queueGuest, w)
	device := " -d " + l.queue.url + "pci:" + address
	single := device + " --capture eth0 " + driverFlags
	roles := device + " --generator " + l.generator.url + "pci:" + address + " --server " + l.generator.url + "eth0 " + driverFlags
	startOnHead(t, "olafctl device doctor"+device).expect(t, 0)
	want := statsOf(t, startOnHead(t, bench).expect(t, 0))

	started := l.awaitCommand(regmap.GeneratorCommandStart)
	p := startOnHead(t, slowBench+roles)
	<-started
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.expect(t, 130)
	l.expectIdle(t, "after Ctrl-C")

	died := l.queue.card.killAt(func(n int, _ access) bool { return n == 900 })
	p = startOnHead(t, bench+single)
	<-died
	p.expect(t, 3, "127.0.0.1.*gone")
	l.queue.card.kill(false)

	// The killed run leaves nothing behind: otherwise the cards would be in use, or the counts would differ.
	if got := statsOf(t, startOnHead(t, bench+single).expect(t, 0)); !maps.Equal(got, want) {
		t.Errorf("the run on the far card counts %v, on the twin %v", got, want)
	}
	l.checkHolders(t, want)
	l.checkRoles(t, roles, want)
}

// slowBench is a bench whose frames take three minutes.
const slowBench = bench + " --rate 10k"

// checkHolders brings up a testbed whose holders lend both cards. It checks a bench, and that a guard stops the
// generator if the holder of its card is killed while the bench can do nothing.
func (l *farLab) checkHolders(t *testing.T, want map[string]float64) {
	name := fmt.Sprintf("guests%d", os.Getpid())
	text := "hosts: {g: {ssh: 'SSHG'}, q: {ssh: 'SSHQ'}}\nroles:\n  generator: {host: g, device: 'pci:CARD'}\n" +
		"  queue: {host: q, device: 'pci:CARD'}\n  server: {host: g, interface: eth0}\n"
	destination := func(g *farGuest) string { return strings.Trim(strings.TrimPrefix(g.url, "ssh:"), "/") }
	text = strings.NewReplacer("SSHG", destination(l.generator), "SSHQ", destination(l.queue), "CARD", address).Replace(text)
	file := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startOnHead(t, "olafctl testbed up "+driverFlags+" "+file).expect(t, 0, "up: "+name)
	if got := statsOf(t, startOnHead(t, bench+" -d testbed:"+name).expect(t, 0)); !maps.Equal(got, want) {
		t.Errorf("the run on two held cards counts %v, on the twin %v", got, want)
	}
	started := l.awaitCommand(regmap.GeneratorCommandStart)
	p := startOnHead(t, slowBench+" -d testbed:"+name)
	<-started
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := l.awaitCommand(regmap.GeneratorCommandAbort)
	lock := "/run/lock/olafctl-" + pcie.Slot(address) + ".lock" // it contains the holder's process id
	l.generator.send(t, Command{Args: []string{"sh", "-c", "read pid rest <" + lock + " && kill -9 $pid"}}).wait(t)
	<-stopped
	l.generator.card.with(func() {}) // waits until the command was carried out
	l.expectIdle(t, "after its holder was killed")
	_ = p.Process.Kill()
	_ = p.Wait() // it was killed
	startOnHead(t, "olafctl testbed down "+name).expect(t, 0, name+" is down")
}

// checkRoles checks that frames of one card reached the queue of the other, and that all counts agree.
func (l *farLab) checkRoles(t *testing.T, roles string, want map[string]float64) {
	l.both.Lock()
	sentBefore, receivedBefore := l.countCable()
	l.wire.count = 0
	l.both.Unlock()
	if got := statsOf(t, startOnHead(t, bench+roles).expect(t, 0)); !maps.Equal(got, want) {
		t.Errorf("the run on two far cards counts %v, on the twin %v", got, want)
	}
	l.both.Lock()
	defer l.both.Unlock()
	sent, received := l.countCable()
	if sent-sentBefore != uint64(want["sent"]) || received-receivedBefore != uint64(want["sent"]) || l.wire.count != int(want["received"]) {
		t.Errorf("%d frames left one card, %d reached the other, and %d left it; the twin sends %v and delivers %v", sent-sentBefore,
			received-receivedBefore, l.wire.count, want["sent"], want["received"])
	}
}

// countCable returns the number of frames that the generator's card has sent over the cable, and the number that the
// queue's card has received.
func (l *farLab) countCable() (sent, received uint64) {
	sent, _ = l.cards[0].Twin().CableCounts()
	_, received = l.cards[1].Twin().CableCounts()
	return sent, received
}
