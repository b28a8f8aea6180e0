package testbed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/p4ctl/agent"
)

// TestCloseBeforeServing checks that a service closed before its goroutine starts to serve ends cleanly.
func TestCloseBeforeServing(t *testing.T) {
	dir := t.TempDir()
	for range 50 {
		s, err := ServeDevice(t.Context(), "twin:", ServeOptions{Listen: "unix:" + filepath.Join(dir, "s")})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestServePrivately checks that a privately lent device is reachable by its user only, and leaves nothing behind.
func TestServePrivately(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := ServePrivately(t.Context(), "twin:", ServeOptions{})
	want(t, err)
	socket := strings.TrimPrefix(s.Target, "unix:")
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(socket, os.TempDir()) {
		t.Errorf("%s: %v, %v", socket, info, err)
	}
	if info, err := os.Stat(filepath.Dir(socket)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	d, err := OpenDevice(t.Context(), s.Target, DeviceOptions{Access: Access{Devices: Devices{AgentDevice()}}})
	want(t, err)
	want(t, errors.Join(d.Close(), s.Close()))
	if _, err := ServePrivately(t.Context(), "none:", ServeOptions{}); !errors.Is(err, ErrBackend) {
		t.Errorf("a device that nobody knows: %v", err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestHardwareIsLentToItsUserOnly checks that hardware is lent to its user only, unless explicitly configured
// otherwise.
func TestHardwareIsLentToItsUserOnly(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	card := TwinDevice()
	card.Prefix, card.Name, card.Guarded = "pci:", "0000:3b:00.0", true
	access := Access{Devices: Devices{card, AgentDevice()}}
	lend := func(o ServeOptions) (*Service, error) {
		o.Device.Access = access
		return ServeDevice(t.Context(), card.Form(), o)
	}
	for range 2 { // the path is the same each time
		s, err := lend(ServeOptions{})
		want(t, err)
		socket := filepath.Join(os.TempDir(), strings.TrimPrefix(s.Target, "unix:"+os.TempDir()))
		if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 || !strings.HasSuffix(socket, "pci-0000-3b-00.0") {
			t.Errorf("%s: %v, %v", socket, info, err)
		}
		if info, err := os.Stat(filepath.Dir(socket)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info, err)
		}
		d, err := OpenDevice(t.Context(), s.Target, DeviceOptions{Access: access})
		want(t, err)
		_, err = d.Read32(regmap.QueueDepth)
		want(t, errors.Join(err, d.Close(), s.Close()))
	}
	if _, err := lend(ServeOptions{Listen: "127.0.0.1:0"}); !errors.Is(err, agent.ErrInsecure) ||
		!strings.Contains(err.Error(), "--insecure") {
		t.Errorf("every user of this host: %v", err)
	}
	for _, everybody := range []string{":0", "0.0.0.0:0"} { // rejected even with --insecure
		if _, err := lend(ServeOptions{Listen: everybody}); !errors.Is(err, agent.ErrInsecure) ||
			strings.Contains(err.Error(), "--insecure") || !strings.Contains(err.Error(), "--tls-cert") {
			t.Errorf("everybody at %s: %v", everybody, err)
		}
	}
	s, err := lend(ServeOptions{Listen: "127.0.0.1:0", Insecure: true})
	want(t, err)
	want(t, s.Close())
	if _, err := lend(ServeOptions{Listen: "0.0.0.0:0", Insecure: true}); !errors.Is(err, agent.ErrInsecure) {
		t.Errorf("everybody: %v", err)
	}
	want(t, os.Chmod(filepath.Join(os.TempDir(), filepath.Base(filepath.Dir(mustOwn(t)))), 0o755))
	if _, err := lend(ServeOptions{}); !errors.Is(err, agent.ErrListen) {
		t.Errorf("a folder that others may enter: %v", err)
	}
}

func mustOwn(t *testing.T) string {
	t.Helper()
	path, err := ownSocket("pci", "x")
	want(t, err)
	return strings.TrimPrefix(path, "unix:")
}

func want(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
