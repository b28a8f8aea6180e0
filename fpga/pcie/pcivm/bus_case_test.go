package pcivm

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/olafctl/olaf/fpga/regmap"
)

// busCase is a state of the card, with a check of olafctl's behavior in it.
type busCase struct {
	name string
	run  func(*testing.T, *machine)
	core bool // also run without -matrix
}

// busCases run on one machine, one after the other. Each puts its own card into the slot.
var busCases = []busCase{
	{"healthy", checkHealthy, true},
	{"commands of the guide", checkGuide, false},
	{"decoding off", checkDecodingOff, true},
	{"D3hot behind the kernel's back", checkAsleep, true},
	{"unplugged", checkUnplugged, true},
	{"replugged with the same image", checkReplugged, false},
	{"replugged with another image", checkReplacedImage, false},
	{"reprogrammed behind an agent", checkReprogrammed, true},
	{"function reset", checkFunctionReset, false},
	{"remove and rescan", checkRemoved, false},
	{"two functions", checkTwoFunctions, false},
	{"other images", checkOtherImages, false},
	{"driver that owns BAR2", checkOwnedBAR, false},
	{"driver bound while open", checkBoundWhileOpen, false},
	{"other user", checkOtherUser, true},
	{"owner killed", checkKilledOwner, false},
	{"link dead", checkDeadLink, true},
	{"link dies in the middle", checkDyingLink, true},
	{"no room behind the bridge", checkNoWindow, false},
	{"socket closed", checkClosedSocket, false},
}

// byTheWall lists the checks that compare the card's clock with the host's, for which the RTL is too slow. They may
// fail on the RTL. The bench of TestTables contains another such check: olafctl refuses the run, since the card's clock
// advances by milliseconds while the host's advances by seconds. The registers of that run are compared instead.
var byTheWall = []string{"conformance cycles_advance"}

// TestBus runs the cases on one machine.
func TestBus(t *testing.T) {
	t.Parallel()
	m := &machine{blocks: "twin"}
	m.card = m.newCard(t, openNIC, 1)
	needImages(t) // before the clock starts
	begin := time.Now()
	m.guest = boot(t, profile{card: m.card})
	m.do(t, "olafctl device list")
	t.Logf("from starting QEMU to the output of 'device list': %v", time.Since(begin).Round(100*time.Millisecond))
	m.card.takeLog()
	m.runCases(t, busCases)
}

// runCases runs cases on cards that have the twin behind their bus, and then on cards that have the Verilated RTL.
func (m *machine) runCases(t *testing.T, cases []busCase) {
	for _, m.blocks = range []string{"twin", "rtl"} {
		t.Run(m.blocks, func(t *testing.T) {
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					if !c.core || m.blocks == "rtl" {
						needMatrix(t)
					}
					c.run(t, m)
				})
			}
		})
	}
}

// kernels lists machines with a different kernel or slot, and their cases. They start with an empty slot. Only the
// machine for vfio-pci has an IOMMU. While Linux turns the IOMMU on, QEMU 7.2 may free the memory region that the write
// is in, and then crashes. This takes long enough only with a card in the slot or a network card in addition.
var kernels = []struct {
	name    string
	profile profile
	cases   []busCase
}{
	{"locked down", profile{kernel: "lockdown=integrity"}, []busCase{{"lockdown", checkLockdown, false}}},
	{"relaxed", profile{kernel: "iomem=relaxed intel_iommu=on", qemu: []string{"-device", "intel-iommu"}},
		[]busCase{{"iomem=relaxed", checkRelaxed, false}, {"vfio-pci and D3hot", checkVFIO, false}}},
	{"native hot plug", profile{qemu: []string{"-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"}},
		[]busCase{{"unplugged", checkUnplugged, false}, {"replugged with the same image", checkReplugged, false}}},
}

// TestBusKernels runs the cases of other kernels and slots.
func TestBusKernels(t *testing.T) {
	needMatrix(t)
	t.Parallel()
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			m := &machine{blocks: "twin"}
			m.guest = boot(t, k.profile)
			m.runCases(t, k.cases)
		})
	}
}

// checkLockdown opens a card on a kernel that does not let programs map BARs. Reading sysfs does not need a BAR.
func checkLockdown(t *testing.T, m *machine) {
	m.replace(t)
	m.expect(t, 3, "olafctl device doctor"+card, "locked down", "lockdown=none")
	m.expect(t, 3, "olafctl reg read queue.depth"+card, "locked down")
	m.expect(t, 0, "olafctl device list --sysfs", address)
	if _, n := m.card.takeLog(); n != (counts{}) {
		t.Errorf("the card was accessed: %v", n)
	}
}

// checkRelaxed shares BAR2 with the driver that owns it, and checks that a program that maps the card through that
// driver is found.
func checkRelaxed(t *testing.T, m *machine) {
	m.replace(t)
	m.bind(t, cif, "uio", "uio_cif")
	m.expect(t, 0, "olafctl device doctor"+card, cif+" is bound")
	other := m.start(t, "/init map /dev/uio0")
	other.awaitLine(t, "held")
	m.expect(t, 3, "olafctl reg write queue.depth=7"+card, "/dev/uio0", "without holding the lock")
	m.expect(t, 0, "olafctl reg read queue.depth"+card, `\b8\b`)
	other.stop(t, syscall.SIGKILL)
	m.expect(t, 0, "olafctl reg write queue.depth=7"+card)
}

// checkHealthy uses the card that was present at the start. The firmware enabled its memory.
func checkHealthy(t *testing.T, m *machine) {
	if m.blocks == "rtl" {
		m.replace(t)
	}
	if got := m.listed(t, address); !strings.Contains(got, `"state": "loaded"`) || !strings.Contains(got, "OLAF, map") {
		t.Errorf("it is listed as %s", got)
	}
	if _, n := m.card.takeLog(); n.writes > 0 || n.reads == 0 || n.reads > 100 {
		t.Errorf("'device list' made %v", n)
	}
	m.do(t, "olafctl device list --sysfs")
	if _, n := m.card.takeLog(); n != (counts{}) {
		t.Errorf("'device list --sysfs' made %v", n)
	}
	m.do(t, "olafctl reg write queue.depth=6 --dry-run"+card)
	if _, n := m.card.takeLog(); n.writes > 0 {
		t.Errorf("--dry-run made %v", n)
	}
	m.do(t, "olafctl reg write queue.depth=6"+card)
	log, _ := m.card.takeLog()
	written := 0
	for _, a := range log {
		if a.write && uint32(a.addr) == regmap.QueueDepth {
			written++
		}
	}
	if written != 1 {
		t.Errorf("queue.depth was written %d times", written)
	}
	m.expect(t, 0, "olafctl reg read queue.depth"+card, `\b6\b`)
	m.card.takeLog()
	checkConformance(t, m)
	log, n := m.card.takeLog()
	t.Logf("'device doctor --full' made %v", n)
	if what := readBeforeWrite(log); what != "" {
		t.Errorf("a write is also a read: %s", what)
	}
}

// checkGuide runs the commands in docs/guide/card.md from "Find it" to "Reset", in order, and compares their output
// with the output on the page. An ellipsis on the page stands for any text.
func checkGuide(t *testing.T, m *machine) {
	page, err := os.ReadFile("../../../docs/guide/card.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "## 2. Find it")
	text, _, found := strings.Cut(text, "## 7. Lend it")
	text = strings.NewReplacer("0000:3b:00.0", address, "before.json", m.blocks+".json", "sudo ", "").Replace(text)
	steps := regexp.MustCompile(`(?m)^\$ (olafctl [^#\n]*).*\n((?:[^\x60$].*\n|\n)*)`).FindAllStringSubmatch(text, -1)
	if !found || len(steps) < 10 || len(steps) != strings.Count(text, "\n$ ") {
		t.Fatalf("the guide has %d commands in these steps", len(steps))
	}
	m.replace(t)
	for _, step := range steps {
		command := strings.TrimSpace(step[1])
		if strings.Contains(command, "--full") && m.blocks == "rtl" {
			continue // the healthy case runs this command and handles the RTL's limits
		}
		s := m.start(t, command)
		if strings.HasPrefix(command, "olafctl device watch") {
			s.awaitLine(t, "in")
			s.awaitLine(t, "0")
			s.stop(t, syscall.SIGINT)
		}
		shown := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(strings.Fields(step[2]), " ")), "…", ".*")
		expectAnswer(t, command, s.wait(t), 0, "^"+shown+" ?$")
	}
}

// readBeforeWrite describes a write to a register with side effects that directly follows a read of the same register,
// as in a locked exchange. It returns "" if there is none.
func readBeforeWrite(log []access) string {
	effects := map[uint32]bool{
		regmap.GeneratorMemData: true, regmap.ReplicationMemberData: true,
		regmap.CommonCommand: true, regmap.GeneratorCommand: true,
	}
	for i, a := range log[:max(0, len(log)-1)] {
		if next := log[i+1]; effects[uint32(next.addr)] && next.write && !a.write && a.addr == next.addr {
			return fmt.Sprintf("access %d reads %#x and access %d writes it", i, a.addr, i+1)
		}
	}
	return ""
}

// checkConformance runs the whole conformance suite. Cases that compare the card's clock with the host's may fail on
// the RTL.
func checkConformance(t *testing.T, m *machine) {
	a := m.run(t, "olafctl device doctor --full -o csv"+card)
	for line := range strings.Lines(a.out) {
		fields := strings.Split(line, ",")
		if len(fields) > 1 && fields[1] == "failed" && !(m.blocks == "rtl" && slices.Contains(byTheWall, fields[0])) {
			t.Errorf("doctor: %s", line)
		}
	}
	if !strings.Contains(a.out, "conformance") || a.code != 0 && m.blocks == "twin" {
		t.Errorf("doctor: exit code %d\n%s%s", a.code, a.out, a.err)
	}
}

// checkDecodingOff inserts a card. The kernel does not enable its memory decoding without a driver.
func checkDecodingOff(t *testing.T, m *machine) {
	m.remove(t)
	m.insert(t, m.newCard(t, openNIC, 1))
	got := m.listed(t, address)
	if !strings.Contains(got, `"state": "refused"`) || !strings.Contains(got, "memory decoding is off") {
		t.Errorf("it is listed as %s", got)
	}
	m.expect(t, 3, "olafctl device doctor"+card, "memory decoding is off", "/enable")
	m.enable(t)
	m.expect(t, 0, "olafctl device doctor"+card)
}

// checkAsleep puts the card into D3hot without the kernel's knowledge.
func checkAsleep(t *testing.T, m *machine) {
	m.replace(t)
	m.do(t, "poke "+sysfs+"config 0x44 03")
	m.expect(t, 3, "olafctl device doctor"+card, "all ones")
	m.do(t, "poke "+sysfs+"config 0x44 00")
	m.expect(t, 0, "olafctl device doctor"+card)
}

// checkUnplugged removes the card during a watch.
func checkUnplugged(t *testing.T, m *machine) {
	m.replace(t)
	w := m.start(t, watch)
	w.awaitLine(t, `"cycle"`)
	m.remove(t)
	expectAnswer(t, "watch", w.wait(t), 3)
	m.expect(t, 3, "olafctl device doctor"+card, "no such PCI device")
}

// checkReplugged swaps the card of an idle agent for one with the same image.
func checkReplugged(t *testing.T, m *machine) {
	m.replace(t)
	s := m.lend(t)
	m.replace(t)
	m.checkLost(t, s)
}

// checkReplacedImage swaps the card of an idle agent for one with another image.
func checkReplacedImage(t *testing.T, m *machine) {
	m.replace(t)
	s := m.lend(t)
	m.remove(t)
	b := m.newCard(t, openNIC, 1)
	b.card.(*realCard).Reprogram()
	m.insert(t, b)
	m.enable(t)
	m.checkLost(t, s)
	m.expect(t, 0, "olafctl reg read queue.depth"+card, `\b8\b`)
}

// checkReprogrammed loads another image into the card of an idle agent.
func checkReprogrammed(t *testing.T, m *machine) {
	b := m.replace(t)
	s := m.lend(t)
	b.with(func() { b.card.(*realCard).Reprogram() })
	m.checkLost(t, s)
}

// lend serves the card by an agent and writes a register through the agent.
func (m *machine) lend(t *testing.T) *session {
	t.Helper()
	s := m.start(t, serve)
	s.awaitLine(t, "serving")
	m.expect(t, 0, "olafctl reg write queue.depth=6"+agent)
	return s
}

// checkLost checks that an agent does not return data of the card that replaced its own card, and that it ends.
func (m *machine) checkLost(t *testing.T, s *session) {
	t.Helper()
	m.expect(t, 3, "olafctl reg write queue.depth=5"+agent)
	if a := s.wait(t); a.code == 0 || a.code > 5 {
		t.Errorf("the agent ended with %d: %s", a.code, a.err)
	}
	m.card.with(func() {
		for _, a := range m.card.log {
			if a.write && uint32(a.addr) == regmap.QueueDepth && a.value == 5 {
				t.Error("a write reached the card that replaced the agent's")
			}
		}
	})
}

// checkFunctionReset resets the function through sysfs. The kernel restores its configuration space.
func checkFunctionReset(t *testing.T, m *machine) {
	m.replace(t)
	m.expect(t, 0, "olafctl reg write queue.depth=6"+card)
	if methods := m.do(t, "read "+sysfs+"reset_method"); !strings.Contains(methods, "flr") {
		t.Fatalf("the kernel resets it by %s", methods)
	}
	m.do(t, "write "+sysfs+"reset 1")
	m.expect(t, 0, "olafctl reg read queue.depth"+card, `\b6\b`)
}

// checkRemoved removes the function through sysfs during a watch and lets the kernel find it again.
func checkRemoved(t *testing.T, m *machine) {
	m.replace(t)
	w := m.start(t, watch)
	w.awaitLine(t, `"cycle"`)
	m.do(t, "write "+sysfs+"remove 1")
	expectAnswer(t, "watch", w.wait(t), 3)
	m.do(t, "write /sys/bus/pci/rescan 1")
	m.await(t, address)
	m.enable(t)
	m.expect(t, 0, "olafctl device doctor"+card)
}

// checkTwoFunctions opens both functions of a card. They show the same registers.
func checkTwoFunctions(t *testing.T, m *machine) {
	m.remove(t)
	m.insert(t, m.newCard(t, openNIC, 2))
	m.enable(t)
	second := strings.Replace(sysfs, "00.0", "00.1", 1)
	m.await(t, "0000:01:00.1")
	m.do(t, "write "+second+"enable 1")
	if got := m.listed(t, "0000:01:00.1"); !strings.Contains(got, "0000:01:00.0") && !strings.Contains(got, "function") {
		t.Errorf("the second function is listed as %s", got)
	}
	w := m.start(t, watch)
	w.awaitLine(t, `"cycle"`)
	m.expect(t, 3, "olafctl reg write queue.depth=7 -d pci:0000:01:00.1", "in use")
	expectAnswer(t, "watch", w.stop(t, syscall.SIGINT), 0)
}

// cif is the name under which uio_cif registers. It requests the regions of a card, as onic does.
const cif = "hilscher"

// checkOwnedBAR binds a driver that requests the region of BAR2, which the kernel then reserves for the driver.
func checkOwnedBAR(t *testing.T, m *machine) {
	m.replace(t)
	m.bind(t, cif, "uio", "uio_cif")
	m.expect(t, 3, "olafctl reg read queue.depth"+card, cif, "unbind", "iomem=relaxed")
	m.do(t, "write "+sysfs+"driver/unbind "+address)
	m.do(t, "write "+sysfs+"enable 1")
	m.expect(t, 0, "olafctl reg read queue.depth"+card)
}

// checkBoundWhileOpen binds that driver during a watch. The kernel then removes the mapping.
func checkBoundWhileOpen(t *testing.T, m *machine) {
	m.replace(t)
	w := m.start(t, watch)
	w.awaitLine(t, `"cycle"`)
	m.bind(t, cif, "uio", "uio_cif")
	expectAnswer(t, "watch", w.wait(t), 3, cif)
}

// checkVFIO binds vfio-pci, which puts an idle card into D3hot.
func checkVFIO(t *testing.T, m *machine) {
	m.replace(t)
	m.bind(t, "vfio-pci", "irqbypass", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci")
	m.expect(t, 3, "olafctl device doctor"+card, "D3hot", "power/control")
	m.do(t, "write "+sysfs+"power/control on")
	m.expect(t, 0, "olafctl device doctor"+card, "vfio-pci is bound")
	other := m.start(t, "/init hold /dev/vfio/[0-9]*")
	other.awaitLine(t, "held")
	m.expect(t, 3, "olafctl reg write queue.depth=7"+card, "/dev/vfio/[0-9]+ open", "without holding the lock")
	m.expect(t, 0, "olafctl reg read queue.depth"+card, `\b8\b`)
	other.stop(t, syscall.SIGKILL)
	m.expect(t, 0, "olafctl reg write queue.depth=7"+card)
}

// checkOtherImages inserts functions with other device ids of OpenNIC, one that is not from OpenNIC, and an image with
// one port.
func checkOtherImages(t *testing.T, m *machine) {
	for _, c := range []struct {
		id    uint16
		state string
	}{{0x9038, "loaded"}, {0x9348, "loaded"}, {0x9028, "skipped"}} { // the last card stays for the doctor
		m.remove(t)
		m.insert(t, m.newCard(t, identity{c.id, addressable64}, 1))
		m.enable(t)
		if got := m.listed(t, address); !strings.Contains(got, `"state": "`+c.state+`"`) {
			t.Errorf("%04x: want %s: %s", c.id, c.state, got)
		}
	}
	m.expect(t, 3, "olafctl device doctor"+card, "9028")
	b := m.replace(t)
	b.with(func() {
		b.card.(*realCard).OnLoad = func(_ int, offset, v uint32) uint32 {
			if offset >= 0xC000 && offset < 0xF000 { // the second MAC and its adapter are not built
				return 0xC1000000 | offset&0xFFFF
			}
			return v
		}
	})
	m.expect(t, 0, "olafctl device doctor"+card, "port 0")
	m.expect(t, 3, "olafctl device reset --part cmac1"+card, "has 1 port from 0")
}

// checkOtherUser opens the card without root. It is refused at first, and allowed with the rights of a group.
func checkOtherUser(t *testing.T, m *machine) {
	m.replace(t)
	const user, group, command = 1000, 1001, "olafctl reg read queue.depth" + card
	as := func(also int) answer {
		return m.send(t, Command{Args: strings.Fields(command), User: user, Also: also}).wait(t)
	}
	expectAnswer(t, command, as(0), 3, "root")
	m.do(t, "share "+sysfs+"resource2 1001")
	expectAnswer(t, command, as(0), 3, "root")
	expectAnswer(t, command, as(group), 0, `\b8\b`)
}

// checkKilledOwner kills the process that uses the card and checks that the next process can open it.
func checkKilledOwner(t *testing.T, m *machine) {
	m.replace(t)
	w := m.start(t, watch)
	w.awaitLine(t, `"cycle"`)
	m.expect(t, 3, "olafctl reg write queue.depth=7"+card, "in use")
	if a := w.stop(t, syscall.SIGKILL); a.code != 128+int(syscall.SIGKILL) {
		t.Fatalf("the watch ended with %d", a.code)
	}
	m.expect(t, 0, "olafctl reg write queue.depth=7"+card)
}

// checkDeadLink opens a card whose configuration space reads all ones.
func checkDeadLink(t *testing.T, m *machine) {
	b := m.replace(t)
	b.kill(true)
	m.expect(t, 3, "olafctl device doctor"+card, "link")
	got := m.listed(t, address)
	if !strings.Contains(got, `"state": "refused"`) || strings.Contains(got, "decoding is off;") || strings.Contains(got, "x63") {
		t.Errorf("it is listed as %s", got)
	}
	b.kill(false)
	m.expect(t, 0, "olafctl device doctor"+card)
}

// checkDyingLink kills the link during commands. It checks that each reports that the card is gone, and that none
// blames the image.
func checkDyingLink(t *testing.T, m *machine) {
	b := m.replace(t)
	died := b.killAt(func(n int, _ access) bool { return n == 1500 })
	a := m.run(t, "olafctl device doctor --full"+card)
	<-died
	expectAnswer(t, "doctor", a, 3)
	if strings.Contains(a.out, "the image does not do") {
		t.Errorf("doctor blames the image:\n%s", a.out)
	}
	b = m.replace(t)
	w := m.start(t, watch)
	w.awaitLine(t, `"cycle"`)
	b.kill(true)
	expectAnswer(t, "watch", w.wait(t), 3, "gone")
}

// checkNoWindow inserts cards behind a bridge that has no room for BAR2, with a 64-bit and with a 32-bit BAR.
func checkNoWindow(t *testing.T, m *machine) {
	m.remove(t)
	for _, id := range []identity{openNIC, narrow} {
		m.plug(t, m.newCard(t, id, 1), "rp2")
		const small = "0000:02:00.0"
		m.await(t, small)
		if got := m.listed(t, small); !strings.Contains(got, `"state": "refused"`) || !strings.Contains(got, "bridge") {
			t.Errorf("it is listed as %s", got)
		}
		m.expect(t, 3, "olafctl device doctor -d pci:"+small, "bridge", "pci=realloc")
		m.unplug(t)
		m.do(t, "absent /sys/bus/pci/devices/"+small)
	}
}

// checkClosedSocket closes the connection to the card during a watch, as in a surprise removal.
func checkClosedSocket(t *testing.T, m *machine) {
	b := m.replace(t)
	w := m.start(t, watch)
	w.awaitLine(t, `"cycle"`)
	b.close()
	expectAnswer(t, "watch", w.wait(t), 3, "gone")
}
