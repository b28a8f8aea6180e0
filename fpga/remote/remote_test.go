package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/fpgatest"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
	"github.com/olafctl/olaf/internal/caller"
	"github.com/olafctl/olaf/internal/silence"
)

// serve serves a twin over a unix socket.
func serve(tb testing.TB, d fpga.Device, tap Tap) (target string, stop func()) {
	tb.Helper()
	return serveBy(tb, d, tap, time.Now)
}

// serveBy is like serve, but with a clock for the server.
func serveBy(tb testing.TB, d fpga.Device, tap Tap, now func() time.Time) (target string, stop func()) {
	tb.Helper()
	l, err := net.Listen("unix", filepath.Join(tb.TempDir(), "s"))
	if err != nil {
		tb.Fatal(err)
	}
	l = silence.Listen(l, now)
	server := grpc.NewServer()
	NewServer(d, tap).Register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	stop = func() {
		server.Stop()
		if err := <-done; err != nil {
			tb.Error(err)
		}
		done <- nil
	}
	tb.Cleanup(stop)
	return "unix:" + l.Addr().String(), stop
}

func newTwin(tb testing.TB) *twin.Twin {
	tb.Helper()
	d, err := twin.New(twin.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func dial(tb testing.TB, target string, o Options) *Device {
	tb.Helper()
	d, err := Dial(context.Background(), target, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = d.Close() })
	return d
}

func TestConformance(t *testing.T) {
	target, _ := serve(t, newTwin(t), nil)
	d := dial(t, target, Options{})
	fpgatest.Run(t, func(*testing.T) fpga.Device { return d })
	if id := d.Identity(); id.Kind != "remote" || id.Address != "grpc://"+target || id.Build != twin.ModelVersion {
		t.Errorf("%+v", id)
	}
}

// canned is a tap with fixed content.
type canned []olaf.Observation

func (c *canned) Drain(buf []olaf.Observation) []olaf.Observation {
	buf = append(buf, *c...)
	*c = nil
	return buf
}

func TestObservationRoundTrip(t *testing.T) {
	want := []olaf.Observation{
		{At: 1, Queued: -1, Update: olaf.Update{GenNS: 1<<48 - 1, Seq: 7, Reward: -5, Cluster: 65535, Worker: 3, Count: 2, Lanes: 48,
			Flags: olaf.Retransmission}},
		{At: 2, Contributors: []olaf.Contributor{{GenNS: 4, Seq: 5, Worker: 6}, {GenNS: 7}}},
		{At: 3, Contributors: []olaf.Contributor{}},
	}
	tap := canned(want)
	target, _ := serve(t, newTwin(t), &tap)
	d := dial(t, target, Options{})
	got := d.Drain(nil)
	if len(got) != len(want) || !d.HasTap() {
		t.Fatalf("%d observations", len(got))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if len(d.Drain(nil)) != 0 {
		t.Error("drained twice")
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	local := newTwin(t)
	target, _ := serve(t, local, nil)
	d := dial(t, target, Options{})
	if err := d.Sleep(context.Background(), 250*olaf.Millisecond); err != nil {
		t.Fatal(err)
	}
	got, err := fpga.Snapshot(d)
	if err != nil {
		t.Fatal(err)
	}
	if got.Queue.SnapshotCycle != 62_500_000 {
		t.Errorf("cycle %d after 250 ms", got.Queue.SnapshotCycle)
	}
	if err := d.Write32(regmap.CommonCommand, regmap.CommonCommandReset); err != nil {
		t.Fatal(err)
	}
	want, _ := local.Read32(regmap.QueueSnapshotCycle)
	if v, err := d.Read32(regmap.QueueSnapshotCycle); v != want || err != nil {
		t.Errorf("a stale counter after a reset: %d, want %d (%v)", v, want, err)
	}
}

func TestOneWriterManyReaders(t *testing.T) {
	target, _ := serve(t, newTwin(t), nil)
	writer := dial(t, target, Options{})
	if _, err := Dial(context.Background(), target, Options{}); !errors.Is(err, ErrInUse) ||
		!strings.Contains(err.Error(), caller.Name()+" (remote.test ") ||
		!strings.Contains(err.Error(), ") writes to it") {
		t.Errorf("a second writer: %v", err)
	}
	reader := dial(t, target, Options{ReadOnly: true})
	if !strings.HasPrefix(reader.Writer(), caller.Name()+" (remote.test ") {
		t.Errorf("a reader sees the writer %q", reader.Writer())
	}
	if v, err := reader.Read32(regmap.QueueDepth); v != 8 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	for name, err := range map[string]error{
		"write": reader.Write32(regmap.QueueDepth, 1), "burst": reader.WriteBurst(regmap.GeneratorMemData, []uint32{1}),
		"sleep": reader.Sleep(context.Background(), 1),
	} {
		if !errors.Is(err, fpga.ErrRefused) {
			t.Errorf("%s by a reader: %v", name, err)
		}
	}
	if _, err := reader.Read32(regmap.GeneratorMemData); !errors.Is(err, fpga.ErrRefused) {
		t.Errorf("a read with an effect by a reader: %v", err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	for range 50 { // the write lock is free when Close returns
		next, err := Dial(context.Background(), target, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAgentDies(t *testing.T) {
	target, stop := serve(t, newTwin(t), nil)
	d := dial(t, target, Options{})
	stop()
	for range 2 {
		if _, err := d.Read32(regmap.QueueDepth); !errors.Is(err, fpga.ErrGone) {
			t.Errorf("%v", err)
		}
		if err := d.WriteBurst(regmap.GeneratorMemData, nil); !errors.Is(err, fpga.ErrGone) {
			t.Errorf("%v", err)
		}
	}
	if _, err := Dial(context.Background(), target, Options{}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

// hung is a device whose Sleep returns only when its context is done.
type hung struct{ *twin.Twin }

func (h hung) Sleep(ctx context.Context, _ olaf.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestSilentAgentTimesOut(t *testing.T) {
	target, _ := serve(t, hung{newTwin(t)}, nil)
	d := dial(t, target, Options{})
	d.patience = 50 * time.Millisecond // set after dialing: too short for a greeting on a busy machine
	if err := d.Sleep(context.Background(), 1); !errors.Is(err, fpga.ErrGone) {
		t.Errorf("%v", err)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	target, _ := serve(t, newTwin(t), nil)
	d := dial(t, target, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Sleep(ctx, olaf.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := d.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandAbort); err != nil {
		t.Errorf("the session did not survive: %v", err)
	}
}

// TestOtherVersions checks that another version of the protocol is rejected in one line that names both versions, also
// by agents that spoke version 2.
func TestOtherVersions(t *testing.T) {
	for _, text := range []string{`{"version":2}`, `{"version":4}`, `{}`, `x`, ``} {
		if _, err := parseGreeting([]byte(text), "agent", "client"); !errors.Is(err, ErrProtocol) {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := parseGreeting([]byte(`{"version":2}`), "client", "agent")
	const advice = "use the same olafctl on both"
	for words, want := range map[string]string{
		strings.TrimPrefix(err.Error(), ErrProtocol.Error()+": "):                            "the client speaks version 2, the agent 3; " + advice,
		ErrProtocol.Error() + ": the other side speaks version 3, this program 2; " + advice: "the other side speaks version 3, this program 2; " + advice,
	} {
		err := dialError(t.Context(), "unix:a", "unix:a", status.Error(codes.FailedPrecondition, words))
		if want = "unix:a: not an olafctl device agent: it answers: " + want; !errors.Is(err, ErrProtocol) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzGreeting decodes arbitrary bytes as a greeting. It checks that a rejection is one plain line, and that an
// accepted greeting has our version, is printable, and is unchanged after encoding and decoding.
func FuzzGreeting(f *testing.F) {
	for _, seed := range []string{
		`{"version":3}`, `{"version":3,"read_only":true}`, `{"version":1}`, `{"version":3.5}`, `{}`, `x`, ``, `null`, `{"version":3}{}`,
		"{\"versi\non\":2}", `{"version":"2"}`,
		`{"version":3,"identity":{"address":"twin:","kind":"twin","map_version":"1.2.3","build":"b","clock_hz":250000000},"tap":true,"captures":true,"ports":true,"arrivals":true,"waits":true,"writer":"a\u0007"}`,
		`{"version":3,"identity":{"build":"\u001b[2J"}}`, `{"version":3,"identity":{"clock_hz":-1}}`, `{"version":3,"identity":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := parseGreeting(b, "agent", "client")
		if err != nil {
			if !errors.Is(err, ErrProtocol) || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q is no ErrProtocol in one plain line", err)
			}
			return
		}
		if id := g.Identity; g.Version != version || strings.ContainsFunc(g.Writer, unicode.IsControl) || id != nil && strings.ContainsFunc(fmt.Sprint(*id), unicode.IsControl) {
			t.Errorf("%+v", g)
		}
		written, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseGreeting(written, "agent", "client"); err != nil || !reflect.DeepEqual(again, g) {
			t.Errorf("%+v comes back as %+v, %v", g, again, err)
		}
	})
}

// FuzzAnswer sends arbitrary requests to a server. It checks that each gets an answer that the client can decode.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{"", "r", "r\x34\x10\x10\x00", "w\x34\x10\x10\x00\x04\x00\x00\x00",
		"w\x38\x00\x10\x00\x01\x00\x00\x00",
		"b\x88\x30\x10\x00\x01\x00\x00\x00", "s\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00", "d", "mx\x34\x10\x10\x00\x01\x00\x00\x00\x01\x00\x00\x00", "dd", "c", "p", "pp", "z"} {
		f.Add([]byte(seed))
	}
	d, err := twin.New(twin.Config{})
	if err != nil {
		f.Fatal(err)
	}
	local := &wired{Twin: d, canned: canned{{At: 1, Contributors: []olaf.Contributor{{}}}}}
	s := NewServer(local, local)
	f.Fuzz(func(t *testing.T, request []byte) {
		answers := new(sent)
		switch {
		case len(request) == 13 && request[0] == opSleep && request[7]|request[8] != 0:
			return // hours of simulated time
		case len(request) > 0 && request[0] == opSleep:
			if err := s.streamSlices(answers, request[1:], false); err != nil {
				t.Fatal(err)
			}
		default:
			answers.all = append(answers.all, s.answerRequest(nil, request, false))
		}
		for _, answer := range answers.all {
			r := reader{b: answer}
			var failed *remoteError
			if err := r.readStatus(); err != nil && !errors.As(err, &failed) {
				t.Errorf("%q: %v", request, err)
			}
		}
	})
}

// sent is a stream that records what is sent.
type sent struct {
	grpc.ServerStream
	all [][]byte
}

func (*sent) Context() context.Context { return context.Background() }

func (s *sent) SendMsg(m any) error {
	s.all = append(s.all, *m.(*[]byte))
	return nil
}

// FuzzUpdates decodes arbitrary bytes as a list of updates. It checks that a valid list is unchanged after encoding and
// decoding.
func FuzzUpdates(f *testing.F) {
	f.Add(appendUpdates(nil, []olaf.Observation{{At: 5, Update: olaf.Update{Count: 3, Lanes: 48}, Contributors: []olaf.Contributor{{Seq: 1}}}, {}}))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := reader{b: b}
		all, _ := r.readUpdates(nil, nil)
		if r.short {
			return
		}
		again := reader{b: appendUpdates(nil, all)}
		if same, _ := again.readUpdates(nil, nil); !reflect.DeepEqual(same, all) || again.checkComplete() != nil {
			t.Errorf("%+v comes back as %+v", all, same)
		}
	})
}

func BenchmarkRead32(b *testing.B) {
	target, _ := serve(b, newTwin(b), nil)
	d := dial(b, target, Options{})
	for b.Loop() {
		if _, err := d.Read32(regmap.QueueDepth); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBurst transfers the descriptors of the paper's micro-benchmark: 13,500 packets of 8 words.
func BenchmarkBurst(b *testing.B) {
	target, _ := serve(b, newTwin(b), nil)
	d := dial(b, target, Options{})
	words := make([]uint32, 13500*regmap.DescriptorWords)
	b.SetBytes(int64(4 * len(words)))
	for b.Loop() {
		if err := d.Write32(regmap.GeneratorMemAddress, 0); err != nil {
			b.Fatal(err)
		}
		if err := d.WriteBurst(regmap.GeneratorMemData, words); err != nil {
			b.Fatal(err)
		}
	}
}

// wired is a twin that claims network ports, with a tap that reports on its capture.
type wired struct {
	*twin.Twin
	canned
	failing bool
}

func (w *wired) Drain(buf []olaf.Observation) []olaf.Observation { return w.canned.Drain(buf) }

func (w *wired) PortCounts() ([]fpga.Port, error) {
	if w.failing {
		return nil, fmt.Errorf("port 1: %w", fpga.ErrGone)
	}
	return []fpga.Port{{Sent: 1 << 60}, {Received: 2, ForeignTicks: 3}}, nil
}

func (w *wired) Capture() (*fpga.Capture, error) {
	return &fpga.Capture{Interface: "enp1s0f0", DriftNS: -5, Faults: []string{"one"}}, nil
}

func TestPortsAndCaptureTravel(t *testing.T) {
	local := &wired{Twin: newTwin(t)}
	target, _ := serve(t, local, local)
	d := dial(t, target, Options{Local: true})
	if id := d.Identity(); id != local.Identity() {
		t.Errorf("an agent of this process is called %+v", id)
	}
	ports, err := d.PortCounts()
	want, _ := local.PortCounts()
	if err != nil || !slices.Equal(ports, want) {
		t.Errorf("%+v, %v", ports, err)
	}
	c, err := d.Capture()
	if err != nil || c.Interface != "enp1s0f0" || c.DriftNS != -5 || len(c.Faults) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	local.failing = true
	if _, err := d.PortCounts(); !errors.Is(err, fpga.ErrGone) || strings.Contains(err.Error(), target) {
		t.Errorf("a card that is gone: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := dial(t, target, Options{}).PortCounts(); !errors.Is(err, fpga.ErrGone) || !strings.Contains(err.Error(), target) {
		t.Errorf("a far card that is gone, without the name of its agent: %v", err)
	}
	reader := dial(t, target, Options{ReadOnly: true})
	if _, err := reader.PortCounts(); !errors.Is(err, fpga.ErrRefused) {
		t.Errorf("ticks of a session that only reads: %v", err)
	}
}

// hosting is a card whose programs serve only closed-loop hosts.
type hosting struct{ *twin.Twin }

func (hosting) AddsUpdates() bool { return false }

// TestAgentsSayWhoseTheirProgramsAre checks that a client knows, before it writes anything, whether updates bypass a
// device's programs.
func TestAgentsSayWhoseTheirProgramsAre(t *testing.T) {
	for _, d := range []fpga.Device{newTwin(t), hosting{newTwin(t)}} {
		target, _ := serve(t, d, nil)
		if there := fpga.AddsUpdates(dial(t, target, Options{})); there != fpga.AddsUpdates(d) {
			t.Errorf("of %T it is said %v", d, there)
		}
	}
}

// TestNothingIsAskedThatIsNotOffered checks that no requests are made for ports and capture of a device that has
// neither.
func TestNothingIsAskedThatIsNotOffered(t *testing.T) {
	target, _ := serve(t, newTwin(t), new(canned))
	d := dial(t, target, Options{})
	if ports, err := d.PortCounts(); ports != nil || err != nil {
		t.Errorf("%v, %v", ports, err)
	}
	if c, err := d.Capture(); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
}

// TestRefusalMentionsSilence checks that the refusal of a second writer states how long the first writer has been
// silent, since it may be behind a dead link.
func TestRefusalMentionsSilence(t *testing.T) {
	var passed atomic.Int64
	target, _ := serveBy(t, newTwin(t), nil, func() time.Time { return time.Unix(passed.Load(), 0) })
	dial(t, target, Options{})
	for try := 0; ; try++ { // messages from the first writer may still be arriving
		passed.Add(10)
		_, err := Dial(t.Context(), target, Options{})
		if err != nil && strings.Contains(err.Error(), "s ago, and drops it after 40s of silence") && errors.Is(err, ErrInUse) {
			return
		}
		if try == 9 {
			t.Fatalf("a writer beside a silent one: %v", err)
		}
	}
}
