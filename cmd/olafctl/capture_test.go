//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/ages"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/capture/live/livetest"
	capturecmd "github.com/olafctl/olaf/cmd/olafctl/capture"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/internal/test/peer"
)

// cable is a pair of interfaces, worker and server. A second socket reports each arrival only after the command can see
// it.
type cable struct {
	t       *testing.T
	tx      *livetest.Transmitter
	witness *live.Socket
	stdout  bytes.Buffer
	stderr  *signalWriter
}

func newCable(t *testing.T) *cable {
	livetest.EnterNamespace(t)
	livetest.SetUp(t, "lo")
	livetest.AddVeth(t, "worker", "server")
	witness, err := live.Open(live.Options{Interface: "server", All: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { witness.Close() })
	return &cable{t: t, tx: livetest.NewSender(t, "worker"), witness: witness}
}

// arrived waits until n more packets have arrived.
func (c *cable) arrived(n int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var p capture.Packet
	for n > 0 {
		err := c.witness.Next(&p)
		if errors.Is(err, capture.ErrIdle) {
			if err = c.witness.Wait(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			c.t.Errorf("%d packets are missing: %v", n, err)
			return
		}
		n--
	}
}

// run runs the command on this thread. traffic starts when the command begins to capture, and can interrupt it.
func (c *cable) run(traffic func(interrupt func()), args ...string) (code int, report capturecmd.Report) {
	c.stdout.Reset()
	c.stderr = &signalWriter{text: "capturing from", seen: make(chan struct{})}
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-c.stderr.seen:
			traffic(cancel)
		case <-ctx.Done():
		}
	}()
	code = run(ctx, testEnvironment(&c.stdout, c.stderr), append([]string{"capture", "-i", "server", "-o", "json"}, args...))
	cancel()
	<-ended
	if c.stdout.Len() == 0 {
		return code, report
	}
	if err := json.Unmarshal(c.stdout.Bytes(), &report); err != nil {
		c.t.Fatalf("%v: %s%s", err, c.stdout.String(), c.stderr.all.String())
	}
	return code, report
}

// send sends n updates of worker 5 and a packet that is not OLAF.
func (c *cable) send(n int) {
	c.tx.Send(c.t, append(bytes.Repeat([]byte{0xff}, 12), 0x88, 0xb5, 1, 2))
	for i := range n {
		c.tx.Update(c.t, 5, uint32(i))
	}
	c.arrived(n + 1)
}

func TestCaptureUntilInterrupted(t *testing.T) {
	c := newCable(t)
	for _, name := range []string{"run.pcapng", "run.pcap"} {
		file := filepath.Join(t.TempDir(), name)
		code, r := c.run(func(interrupt func()) { c.send(500); interrupt() }, "-w", file)
		if code != cli.ExitDone || !r.Valid || r.Partial || r.Dropped != 0 || r.Clock != live.Kernel || r.File != file {
			t.Errorf("exit code %d, %+v\n%s", code, r, c.stderr.all.String())
		}
		if want := (capture.Losses{Packets: 500, Updates: 500}); r.Capture != want || r.Stamped.Kernel != 500 {
			t.Errorf("%+v, want %+v", r, want)
		}
		var out, stderr bytes.Buffer
		if code := run(t.Context(), testEnvironment(&out, &stderr), []string{"replay", file, "-o", "csv"}); code != cli.ExitDone ||
			!strings.Contains(out.String(), "\nsent,500,") {
			t.Errorf("replay: exit code %d\n%s%s", code, out.String(), stderr.String())
		}
	}
}

// TestCaptureReportsAgesOrReasons checks that updates stamped by this host's clock have ages, and that other updates
// have a reason for lacking them.
func TestCaptureReportsAgesOrReasons(t *testing.T) {
	c := newCable(t)
	_, r := c.run(func(interrupt func()) { c.send(30); interrupt() })
	if r.Ages.Available() || !strings.Contains(r.Ages.Reason, "is not the one that the workers stamp by") {
		t.Errorf("%+v", r.Ages)
	}
	sendOwn := func(interrupt func()) {
		frame := make([]byte, 1514)
		for i := range 30 {
			u := olaf.Update{Cluster: 3, Worker: 5, Seq: uint32(i), Count: 1, GenNS: uint64(time.Now().UnixNano()) % (1 << 48)}
			n, err := olaf.EncodeUpdate(frame, &livetest.Addresses, &u, nil)
			if err != nil {
				t.Error(err)
			}
			c.tx.Send(t, frame[:n])
		}
		c.arrived(30)
		interrupt()
	}
	file := filepath.Join(t.TempDir(), "run.pcapng")
	code, r := c.run(sendOwn)
	if r.Ages.ClockErrorNS.Known() {
		t.Errorf("a cable may lead to another host, but the clock error is %v", r.Ages.ClockErrorNS)
	}
	aom := r.Ages.Metrics.Of("aom_cluster_ns")
	if code != cli.ExitDone || r.Ages.Clock != ages.WallClock || !(aom > 0 && aom < 1e9) || len(r.Ages.Clusters) != 1 ||
		r.Ages.Clusters[0].Deliveries != 30 {
		t.Errorf("exit code %d, %+v\n%s", code, r.Ages, c.stderr.all.String())
	}
	c.run(sendOwn, "--clock-error", "0s", "-w", file, "--keep", "--store", t.TempDir())
	if said := c.stderr.all.String(); !strings.Contains(said, "kept as ") || !strings.Contains(said, "-capture") {
		t.Errorf("with --keep, no id of the run is printed: %s", said)
	}
	for flag, want := range map[string]string{"": "; packets and workers share one clock\n",
		"--clock-error=1ns": "; clock error at most 1ns\n", "--clock-error=1s": "may be 1s apart, more than 10 % of the mean age"} {
		var out, stderr bytes.Buffer
		args := append([]string{"replay", file}, strings.Fields(flag)...)
		if run(t.Context(), testEnvironment(&out, &stderr), args); !strings.Contains(out.String(), want) {
			t.Errorf("replay %s prints no %q:\n%s%s", flag, want, out.String(), stderr.String())
		}
	}
}

func TestCaptureLimits(t *testing.T) {
	c := newCable(t)
	file := filepath.Join(t.TempDir(), "run.pcapng")
	code, r := c.run(func(func()) { c.send(50) }, "--count", "20", "--all", "-w", file)
	if code != cli.ExitDone || r.Partial || !r.All || r.Capture.Packets != 20 || r.Capture.Updates != 19 || r.Capture.Bypassed != 1 ||
		len(r.Faults) != 1 {
		t.Errorf("exit code %d, %+v", code, r)
	}
	code, r = c.run(func(interrupt func()) { c.send(50); interrupt() }, "--duration", "1h", "--force", "-w", file)
	if code != cli.ExitInterrupted || !r.Partial || r.Capture.Updates != 50 || !r.Valid ||
		!strings.Contains(c.stderr.all.String(), "interrupted; what is shown is partial") {
		t.Errorf("exit code %d, %+v\n%s", code, r, c.stderr.all.String())
	}
	if r, err := capture.Open(file); err != nil {
		t.Error("an interrupted capture keeps its file:", err)
	} else {
		r.Close()
	}
	code, r = c.run(func(func()) {}, "--duration", "20ms")
	if code != cli.ExitDone || r.Partial || r.Capture.Packets != 0 || !strings.Contains(c.stderr.all.String(), "no OLAF frame arrived") {
		t.Errorf("exit code %d, %+v\n%s", code, r, c.stderr.all.String())
	}
}

// TestCaptureCountsLosses checks that losses are counted exactly, are written to the file, and determine the exit code.
func TestCaptureCountsLosses(t *testing.T) {
	c := newCable(t)
	const sent = 20_000
	file := filepath.Join(t.TempDir(), "run.pcapng")
	code, r := c.run(func(interrupt func()) { c.send(sent); interrupt() }, "--buffer", "2304B", "-w", file)
	if code != cli.ExitFailed || r.Valid || r.Partial || r.Drops.Socket == 0 || r.Dropped != r.Drops.Total() ||
		r.Capture.CaptureDropped != r.Dropped {
		t.Errorf("exit code %d, %+v", code, r)
	}
	if r.Capture.Updates+r.Dropped != sent {
		t.Errorf("%d captured and %d dropped of %d", r.Capture.Updates, r.Dropped, sent)
	}
	if want := fmt.Sprintf("olafctl: the capture lost %d packets: the socket %d, the interface %d;", r.Dropped, r.Drops.Socket,
		r.Drops.Interface()); !strings.Contains(c.stderr.all.String(), want) {
		t.Errorf("%s, want %s", c.stderr.all.String(), want)
	}
	if got := dropsIn(t, file); got != r.Dropped {
		t.Errorf("the file says that %d were dropped, not %d", got, r.Dropped)
	}
	for _, words := range [][]string{
		{"-r", file, "-T", "fields", "-e", "frame.interface_name", "-c", "1"},
		{"-r", file, "-X", `read_format:MIME Files Format`, "-V"}, // print the file's metadata
	} {
		text := tshark(t, words...)
		if want := fmt.Sprintf("Number of Dropped Packets: %d", r.Dropped); !strings.Contains(text, "server") || len(words) == 5 &&
			!strings.Contains(text, want) {
			t.Errorf("tshark does not say %q:\n%s", want, text[max(0, len(text)-2000):])
		}
	}
}

// TestCaptureFullDisk checks that if a file cannot be written, an existing file stays and there is a single error.
func TestCaptureFullDisk(t *testing.T) {
	c := newCable(t)
	dir := t.TempDir()
	if mountSmall(dir) != nil {
		t.Skip("needs the right to mount a small file system")
	}
	defer func() {
		if err := exec.Command("umount", dir).Run(); err != nil {
			t.Error(err)
		}
	}()
	file := filepath.Join(dir, "run.pcapng")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, r := c.run(func(interrupt func()) { c.send(2000); interrupt() }, "--force", "-w", file)
	if text := c.stderr.all.String(); code != cli.ExitFailed || !strings.HasSuffix(text, "olafctl: write "+file+": no space left on device; the file was not kept\n") {
		t.Errorf("exit code %d, %s", code, text)
	}
	if r.Valid || !r.Partial || r.File != "" || r.Capture.Updates == 0 || !strings.Contains(r.Reason, "no space left") {
		t.Errorf("%+v", r)
	}
	left, err := os.ReadDir(dir)
	if text, _ := os.ReadFile(file); string(text) != "old" || len(left) != 1 || err != nil {
		t.Errorf("%q, %v, %v", text, left, err)
	}
}

// TestCaptureSurvivesAFileAtItsPath checks that a capture is kept if another file appears at its path.
func TestCaptureSurvivesAFileAtItsPath(t *testing.T) {
	c := newCable(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "run.pcapng")
	code, r := c.run(func(interrupt func()) {
		c.send(5)
		if err := os.WriteFile(file, []byte("theirs"), 0o644); err != nil {
			t.Error(err)
		}
		interrupt()
	}, "-w", file)
	if text := c.stderr.all.String(); code != cli.ExitUsage || r.Capture.Updates != 5 ||
		!strings.Contains(text, "this one is now "+filepath.Join(dir, "run-2.pcapng")) {
		t.Errorf("exit code %d, %+v, %s", code, r, text)
	}
	if text, _ := os.ReadFile(file); string(text) != "theirs" || dropsIn(t, filepath.Join(dir, "run-2.pcapng")) != 0 {
		t.Errorf("%q", text)
	}
}

// dropsIn returns the number of dropped packets in a capture file.
func dropsIn(t *testing.T, file string) int64 {
	t.Helper()
	r, err := capture.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d := capture.NewDecoder(r)
	for a := (capture.Arrival{}); d.Next(&a) == nil; {
	}
	return d.Losses().CaptureDropped
}

func tshark(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(peer.NeedProgram(t, "tshark"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestCaptureInterfaceVanishes checks that the packets that arrived before the interface vanished are kept.
func TestCaptureInterfaceVanishes(t *testing.T) {
	c := newCable(t)
	file := filepath.Join(t.TempDir(), "run.pcapng")
	// The thread with the traffic is in another namespace than the command's, which must remove the interface.
	env, stdout := testEnvironment(&c.stdout, &removing{t: t, c: c}), &c.stdout
	code := run(t.Context(), env, []string{"capture", "-i", "server", "-o", "json", "-w", file})
	var r capturecmd.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if code != cli.ExitDevice || r.Valid || !r.Partial || r.Capture.Updates != 7 || !strings.Contains(r.Reason, "server was removed") {
		t.Errorf("exit code %d, %+v", code, r)
	}
	if got := tshark(t, "-r", file, "-T", "fields", "-e", "frame.number"); strings.Count(got, "\n") < 7 {
		t.Errorf("kept: %s", got)
	}
}

// removing sends packets and then removes the interface, once the command prints that it captures.
type removing struct {
	t    *testing.T
	c    *cable
	done bool
}

func (w *removing) Write(b []byte) (int, error) {
	if !w.done && strings.Contains(string(b), "capturing from") {
		w.done = true
		w.c.send(7)
		livetest.RemoveLink(w.t, "server")
	}
	return len(b), nil
}

// interrupter interrupts a command when its output contains a text.
type interrupter struct {
	bytes.Buffer
	text string
	end  func()
	send func() // when the command captures
}

func (u *interrupter) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "capturing from") {
		u.send()
	}
	n, err := u.Buffer.Write(b)
	if strings.Contains(u.String(), u.text) {
		u.end()
	}
	return n, err
}

// TestCaptureProgressCountsUpdates checks that updates are counted during the capture, not only at its end.
func TestCaptureProgressCountsUpdates(t *testing.T) {
	c := newCable(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stderr := &interrupter{text: "4 packets, 3 updates, dropped 0", end: cancel, send: func() { c.send(3) }}
	env := testEnvironment(&c.stdout, stderr)
	env.Interactive = true
	run(ctx, env, []string{"capture", "-i", "server", "--all"})
	if !strings.Contains(stderr.String(), stderr.text) {
		t.Errorf("no line of progress has %q in a minute: %q", stderr.text, stderr.String())
	}
}

func TestCaptureProgress(t *testing.T) {
	newCable(t)
	var stdout, stderr bytes.Buffer
	env := testEnvironment(&stdout, &stderr)
	env.Interactive = true
	if code := run(t.Context(), env, []string{"capture", "-i", "server", "--duration", "350ms"}); code != cli.ExitDone {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if text := stderr.String(); !strings.Contains(text, "0 packets, 0 updates, dropped 0 (socket 0, interface 0)\r\x1b[K") {
		t.Errorf("%q", text)
	}
	if text := stdout.String(); !strings.Contains(text, "\nrx_missed_errors   0      the card's ring was full\n") {
		t.Error(text)
	}
}
