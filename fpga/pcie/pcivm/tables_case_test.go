package pcivm

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/results"
)

// tablesText contains entries that fit into the stand-in's tables.
const tablesText = `schema: olafctl.tables/v1
servers: [10.0.0.1]
workers:
  - {address: 10.1.0.0, cluster: 0, worker: 0}
  - {address: 10.1.0.1, cluster: 0, worker: 1}
  - {address: 10.1.0.2, cluster: 1, worker: 2}
`

// bench is a bench whose entries also fit into them. On a slow guest its ages are withheld, but its counts are not.
const bench = "olafctl bench --runs 1 --out-rate 40G --clusters 3 --workers 6 --updates 50 --versus none --keep=false -q -o json"

// wire carries frames of cards to guests.
type wire struct {
	dir   string
	conn  *net.UnixConn
	ends  []*net.UnixAddr
	count int // frames sent
}

// newWire returns a wire without guests.
func newWire(t *testing.T) *wire {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &wire{dir: dir}
}

// attach returns the path of the socket at which one more guest receives frames. Frames that the guest sends are
// dropped.
func (w *wire) attach(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(w.dir, name)
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path + ".far", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 1<<16)
		for {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
		}
	}()
	w.conn = conn
	w.ends = append(w.ends, &net.UnixAddr{Name: path, Net: "unixgram"})
	return path
}

// send sends a frame to all guests.
func (w *wire) send(frame []byte) {
	w.count++
	for _, end := range w.ends {
		_, _ = w.conn.WriteToUnix(frame, end) // lost if the guest is off, as on a cable
	}
}

// insertLive inserts a card whose frames go to the wire.
func (m *machine) insertLive(t *testing.T, w *wire) {
	t.Helper()
	b := m.replace(t)
	b.with(func() { b.card.(*realCard).send, w.count = w.send, 0 })
	b.live(t)
}

// bootOnWire starts a guest whose eth0 is on the wire, with additional arguments for QEMU.
func bootOnWire(t *testing.T, w *wire, name string, qemu ...string) *machine {
	t.Helper()
	m := &machine{blocks: "twin", guest: boot(t, profile{wire: w.attach(t, name), qemu: qemu})}
	for _, module := range modules[len(modules)-8:] {
		m.do(t, "insmod /modules/"+module+".ko")
	}
	m.do(t, "await /sys/class/net/eth0")
	m.do(t, "ip link set eth0 up")
	return m
}

// TestTables runs benches and writes tables on a card, and then from another host.
func TestTables(t *testing.T) {
	needMatrix(t)
	t.Parallel()
	w := newWire(t)
	m := bootFar(t, w, "owner")
	m.runCases(t, []busCase{
		{"bench", func(t *testing.T, m *machine) { checkBench(t, m, w) }, false},
		{"link dies in a table batch", checkDyingBatch, false},
		{"replugged behind an agent with tables", checkReplugTables, false},
		{"link dies in a bench", checkDyingBench, false},
	})
	t.Run("far", func(t *testing.T) { checkFar(t, m, w) })
}

// checkBench compares the counts of a bench on the card with those of a bench on the twin: the card's registers, and
// the run if there is one. A run on the RTL is refused, because its clock is much slower than real time (see
// byTheWall).
func checkBench(t *testing.T, m *machine, w *wire) {
	want := statsOf(t, m.expect(t, 0, bench))
	if want["received"] == 0 || want["aggregated"] == 0 {
		t.Fatalf("the twin counts %v", want)
	}
	m.insertLive(t, w)
	const onCard = bench + card + " --capture eth0 " + driverFlags
	if m.blocks == "rtl" {
		m.expect(t, 1, onCard, "a clock was set during the run")
	} else if got := statsOf(t, m.expect(t, 0, onCard)); !maps.Equal(got, want) {
		t.Errorf("the run on the card counts %v, on the twin %v", got, want)
	}
	for register, metric := range map[string]string{"queue.delivered_frames": "received", "queue.aggregated": "aggregated"} {
		m.expect(t, 0, "olafctl device reg read "+register+card, fmt.Sprintf(`\b%v\b`, want[metric]))
	}
	m.card.with(func() {
		if float64(w.count) != want["received"] {
			t.Errorf("%d frames left the card, the twin delivers %v", w.count, want["received"])
		}
	})
}

// statsOf returns the counts of a bench's only run.
func statsOf(t *testing.T, a answer) map[string]float64 {
	t.Helper()
	var report results.Bench
	if err := json.Unmarshal([]byte(a.out), &report); err != nil || len(report.Rows) != 1 {
		t.Fatalf("%v\n%s%s", err, a.out, a.err)
	}
	counts := map[string]float64{}
	for _, metric := range []string{"sent", "received", "aggregated"} {
		counts[metric] = float64(report.Rows[0].Stats.Of(metric).Mean)
	}
	return counts
}

// lendTables serves the card with its tables and writes some entries.
func (m *machine) lendTables(t *testing.T) *session {
	t.Helper()
	m.send(t, Command{Args: []string{"write", "/tmp/tables.yaml", tablesText}}).wait(t)
	s := m.start(t, serve+" "+driverFlags)
	s.awaitLine(t, "serving")
	return s
}

const apply = "olafctl tables apply /tmp/tables.yaml --target unix:/tmp/agent"

// checkDyingBatch kills the link at the third entry of a batch. The batch must not be reported as written.
func checkDyingBatch(t *testing.T, m *machine) {
	b := m.replace(t)
	s := m.lendTables(t)
	entries := 0
	died := b.killAt(func(_ int, a access) bool {
		if a.write && pcietest.IsTableCommand(uint32(a.addr)) {
			entries++
		}
		return entries == 3
	})
	a := m.run(t, apply)
	<-died
	expectAnswer(t, "tables apply", a, 3)
	if strings.Contains(a.out+a.err, ": done") {
		t.Errorf("the batch is reported as written:\n%s%s", a.out, a.err)
	}
	if a := s.wait(t); a.code == 0 || a.code > 5 {
		t.Errorf("the agent ended with %d: %s", a.code, a.err)
	}
}

// checkReplugTables swaps the card of an idle agent. The tables of the new card must stay empty.
func checkReplugTables(t *testing.T, m *machine) {
	m.replace(t)
	s := m.lendTables(t)
	m.expect(t, 0, apply, "8 added")
	b := m.replace(t)
	a := m.expect(t, 3, "olafctl tables cluster move --to 1 10.1.0.0 --target unix:/tmp/agent")
	if strings.Contains(a.out+a.err, ": done") {
		t.Errorf("the batch is reported as written:\n%s%s", a.out, a.err)
	}
	if a := s.wait(t); a.code == 0 || a.code > 5 {
		t.Errorf("the agent ended with %d: %s", a.code, a.err)
	}
	b.with(func() {
		if n := b.card.(*realCard).tables.Version(); n != 0 {
			t.Errorf("the new card's tables changed %d times", n)
		}
	})
}

// checkDyingBench kills the link after the bench has written its tables.
func checkDyingBench(t *testing.T, m *machine) {
	b := m.replace(t)
	died := b.killAt(func(n int, _ access) bool { return n == 900 })
	a := m.run(t, bench+card+" --capture eth0 "+driverFlags)
	<-died
	expectAnswer(t, "bench", a, 3)
}
