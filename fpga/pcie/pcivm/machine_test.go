package pcivm

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// The card's address, and commands that the cases run.
const (
	address = "0000:01:00.0"
	sysfs   = "/sys/bus/pci/devices/" + address + "/"
	card    = " -d pci:" + address
	agent   = " -d grpc:unix:/tmp/agent"
	serve   = "olafctl device serve --listen unix:/tmp/agent" + card
	watch   = "olafctl device watch --interval 20ms -o json" + card
)

// machine is a guest with a slot, into which one card after the other is inserted.
type machine struct {
	*guest
	blocks string // kind of its cards' blocks
	card   *board // in the slot; nil for none
}

// newCard returns a card for the slot.
func (m *machine) newCard(t *testing.T, id identity, functions int) *board {
	t.Helper()
	c, err := newCard(m.blocks)
	if err != nil {
		t.Fatal(err)
	}
	b := newBoard(c, id, functions)
	t.Cleanup(func() {
		b.with(func() {
			for _, err := range b.errs {
				t.Error(err)
			}
			if c.errs != nil {
				t.Error(c.errs)
			}
			if len(b.odd) > 0 {
				t.Errorf("accesses that are not four aligned bytes: %+v", b.odd)
			}
		})
	})
	return b
}

// insert puts a card into the empty slot and waits until the kernel has found it. The kernel does not enable memory
// decoding.
func (m *machine) insert(t *testing.T, b *board) {
	t.Helper()
	m.plug(t, b, "rp1")
	m.card = b
	m.await(t, address)
}

// await waits until the kernel has finished setting up a function.
func (m *machine) await(t *testing.T, bdf string) {
	t.Helper()
	m.do(t, "await /proc/bus/pci/"+strings.Replace(strings.TrimPrefix(bdf, "0000:"), ":", "/", 1))
}

// remove takes the card out of the slot.
func (m *machine) remove(t *testing.T) {
	t.Helper()
	if m.card == nil {
		return
	}
	m.card.kill(false)
	m.unplug(t)
	m.card = nil
	m.do(t, "absent "+sysfs)
}

// replace puts a new card into the slot, with memory decoding enabled.
func (m *machine) replace(t *testing.T) *board {
	t.Helper()
	m.remove(t)
	b := m.newCard(t, openNIC, 1)
	m.insert(t, b)
	m.enable(t)
	return b
}

func (m *machine) enable(t *testing.T) {
	t.Helper()
	m.do(t, "write "+sysfs+"enable 1")
}

// bind loads a driver's modules and binds the driver to the card, even if it does not list the card's ids.
func (m *machine) bind(t *testing.T, driver string, modules ...string) {
	t.Helper()
	for _, module := range modules {
		m.do(t, "insmod /modules/"+module+".ko")
	}
	m.do(t, "write "+sysfs+"driver_override "+driver)
	m.do(t, "write /sys/bus/pci/drivers_probe "+address)
	m.do(t, "await /sys/bus/pci/drivers/"+driver+"/"+address)
}

// expect runs a command and checks its exit code, and that its output, with white space reduced to single spaces,
// matches all patterns.
func (m *machine) expect(t *testing.T, code int, command string, patterns ...string) answer {
	t.Helper()
	return expectAnswer(t, command, m.run(t, command), code, patterns...)
}

func expectAnswer(t *testing.T, command string, a answer, code int, patterns ...string) answer {
	t.Helper()
	if a.code != code {
		t.Errorf("%s: exit code %d, want %d\n%s%s", command, a.code, code, a.out, a.err)
		return a
	}
	text := strings.Join(strings.Fields(a.out+" "+a.err), " ")
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(text) {
			t.Errorf("%s: no %q in\n%s%s", command, p, a.out, a.err)
		}
	}
	return a
}

// listed returns the JSON output of 'device list' for an address.
func (m *machine) listed(t *testing.T, bdf string) string {
	t.Helper()
	var list struct{ Cards []json.RawMessage }
	if err := json.Unmarshal([]byte(m.do(t, "olafctl device list -o json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Cards {
		if strings.Contains(string(c), bdf) {
			return strings.Join(strings.Fields(string(c)), " ")
		}
	}
	t.Fatalf("%s is not listed: %s", bdf, list.Cards)
	return ""
}
