package playback_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/fpgatest"
	"github.com/olafctl/olaf/fpga/playback"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/fpga/twin"
)

// record calls use with a twin that is recorded and returns the session.
func record(t testing.TB, use func(fpga.Device)) []byte {
	t.Helper()
	d, err := twin.New(twin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var session bytes.Buffer
	r, err := playback.NewRecorder(d, &session)
	if err != nil {
		t.Fatal(err)
	}
	use(r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return session.Bytes()
}

// TestConformance runs the conformance suite on a twin while it is recorded, and again on the recording.
func TestConformance(t *testing.T) {
	session := record(t, func(d fpga.Device) {
		fpgatest.CheckDevice(d, func(r fpgatest.Result) {
			if len(r.Fails) > 0 {
				t.Errorf("%s: %v", r.Name, r.Fails)
			}
		})
	})
	player, err := playback.NewPlayer(bytes.NewReader(session))
	if err != nil {
		t.Fatal(err)
	}
	fpgatest.Run(t, func(*testing.T) fpga.Device { return player })
	if player.Left() != 0 {
		t.Errorf("%d accesses were not repeated", player.Left())
	}
	if player.Identity().Kind != "playback" {
		t.Errorf("%+v", player.Identity())
	}
}

func use(d fpga.Device) error {
	if err := d.Write32(regmap.QueueDepth, 4); err != nil {
		return err
	}
	if err := d.WriteBurst(regmap.GeneratorMemData, make([]uint32, 40)); err != nil {
		return err
	}
	if err := d.Sleep(context.Background(), olaf.Millisecond); err != nil {
		return err
	}
	_, err := d.Read32(regmap.QueueDepth)
	return err
}

func TestDivergence(t *testing.T) {
	session := record(t, func(d fpga.Device) {
		if err := use(d); err != nil {
			t.Fatal(err)
		}
	})
	cases := []struct {
		name string
		does func(fpga.Device) error
		says string
	}{
		{"another value", func(d fpga.Device) error { return d.Write32(regmap.QueueDepth, 5) }, "line 3"},
		{"another register", func(d fpga.Device) error { return d.Write32(regmap.QueueMode, 4) }, "line 3"},
		{"read for write", func(d fpga.Device) error { _, err := d.Read32(regmap.QueueDepth); return err }, "read 0x101034"},
		{"too early to sleep", func(d fpga.Device) error { return d.Sleep(context.Background(), 1) }, "sleep 1 ps"},
		{"a shorter burst", func(d fpga.Device) error {
			return errors.Join(d.Write32(regmap.QueueDepth, 4), d.WriteBurst(regmap.GeneratorMemData, make([]uint32, 39)))
		}, "line 4 has: burst of 40 words"},
		{"one more", func(d fpga.Device) error { return errors.Join(use(d), d.Write32(regmap.QueueDepth, 1)) },
			"it ends before: write 0x1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := playback.NewPlayer(bytes.NewReader(session))
			if err != nil {
				t.Fatal(err)
			}
			err = c.does(p)
			if !errors.Is(err, playback.ErrDiverged) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v; want %q", err, c.says)
			}
			if err := use(p); !errors.Is(err, playback.ErrDiverged) {
				t.Errorf("it went on after it diverged: %v", err)
			}
		})
	}
}

func TestErrorsKeepTheirKind(t *testing.T) {
	session := record(t, func(d fpga.Device) {
		_ = d.Write32(regmap.QueueDepth, 0)
		_, _ = d.Read32(0x10)
		_ = d.Close()
		_, _ = d.Read32(regmap.QueueDepth)
	})
	p, err := playback.NewPlayer(bytes.NewReader(session))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Write32(regmap.QueueDepth, 0); !errors.Is(err, fpga.ErrRefused) || !strings.Contains(err.Error(), "queue.depth") {
		t.Error(err)
	}
	if _, err := p.Read32(0x10); !errors.Is(err, fpga.ErrAddress) {
		t.Error(err)
	}
}

func TestBadSessions(t *testing.T) {
	const head = playback.Schema + "\nidentity {\"kind\":\"twin\"}\n"
	for _, c := range []struct{ text, says string }{
		{"", "before the identity"},
		{"olafctl.register-session/v2\n", "line 1"},
		{playback.Schema + "\n", "before the identity"},
		{playback.Schema + "\nr 0 0\n", "line 2"},
		{head + "x 1 2\n", "line 3"},
		{head + "r 1\n", "line 3"},
		{head + "r 1 2 3\n", "line 3"},
		{head + "r zz 2\n", "line 3"},
		{head + "w 100000000 2\n", "line 3"},
		{head + "s -1\n", "line 3"},
		{head + "# fine\n+ 1\n", "line 4"},
		{head + "w 4 1\n+ 1\n", "line 4"},
		{head + "w 4 1 !bad \"x\"\n", "line 3"},
		{head + "w 4 1 !gone x\n", "line 3"},
		{head + strings.Repeat("r", 2<<20), "too long"},
	} {
		_, err := playback.NewPlayer(strings.NewReader(c.text))
		if !errors.Is(err, playback.ErrSession) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.40q: %v; want %q", c.text, err, c.says)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestRecordingThatCannotBeWritten(t *testing.T) {
	d, err := twin.New(twin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := playback.NewRecorder(d, full{})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		_, err = r.Read32(regmap.QueueDepth)
	}
	if err == nil || r.Close() == nil {
		t.Error("a session with holes was not reported")
	}
}

// FuzzPlay parses arbitrary sessions. It plays each valid session to its end with the accesses that the session lists.
func FuzzPlay(f *testing.F) {
	f.Add(record(f, func(d fpga.Device) { _ = use(d); _ = d.Write32(regmap.QueueDepth, 0) }))
	f.Add([]byte(playback.Schema + "\nidentity {\"kind\":\"x\"}\nb 4\n+ 1 2 !gone \"a\\n\"\ns 1\n\n# end\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := playback.NewPlayer(bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, playback.ErrSession) {
				t.Errorf("%v", err)
			}
			return
		}
		_, err = p.Read32(0xFFFFFFFC)
		_ = err
		_ = use(p)
		_ = p.Close()
	})
}

// portedTwin is a device with a network port.
type portedTwin struct{ fpga.Device }

func (portedTwin) PortCounts() ([]fpga.Port, error) { return []fpga.Port{{Sent: 7}}, nil }

// TestRecordingShowsPorts checks that a device that is recorded has the same methods as the device itself, including
// its ports.
func TestRecordingShowsPorts(t *testing.T) {
	d, err := twin.New(twin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := playback.NewRecorder(portedTwin{d}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if ports, err := fpga.PortCounts(r); err != nil || len(ports) != 1 || ports[0].Sent != 7 {
		t.Errorf("ports %+v, %v", ports, err)
	}
}
