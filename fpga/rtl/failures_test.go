package rtl

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
)

// TestMissingTools checks that the error on a machine without Verilator reports this and names alternatives.
func TestMissingTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Open(t.Context(), Config{Cache: t.TempDir()})
	kind, _ := olaf.KindOf(err)
	if !errors.Is(err, ErrTools) || kind != olaf.Device || !strings.Contains(err.Error(), "install verilator") {
		t.Errorf("%v", err)
	}
}

// TestSizes checks that sizes that cannot be built are rejected before anything is built.
func TestSizes(t *testing.T) {
	for _, text := range []string{"ports=3", "ports", "slots=0", "slots=4097", "clusters=65537", "frame=63", "size=3",
		"ports=1,ports=x"} {
		if _, err := ParseBuild(text); !errors.Is(err, ErrSize) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if b, err := ParseBuild("ports=1,slots=8"); err != nil || b.Ports != 1 || b.Slots != 8 || b.addressName() != "slots=8,ports=1" {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestLostChild checks that a child that was killed or is silent is reported as a card that is gone, at once and from
// then on.
func TestLostChild(t *testing.T) {
	needTools(t)
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		dead   bool // dead before the first request
		says   string
	}{
		{"killed", syscall.SIGKILL, false, "signal: killed"},
		{"dead", syscall.SIGKILL, true, "signal: killed"},
		{"hung", syscall.SIGSTOP, false, "kept silent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			card, err := Open(t.Context(), Config{Patience: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if err := card.child.cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			if c.dead {
				_ = card.child.from.SetReadDeadline(time.Time{})
				_, _ = io.Copy(io.Discard, card.child.from) // until the other end is closed
			}
			err = card.Sleep(t.Context(), olaf.Microsecond)
			if !errors.Is(err, fpga.ErrGone) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if _, err := card.Read32(0x100000); !errors.Is(err, fpga.ErrGone) {
				t.Errorf("afterwards: %v", err)
			}
			if err := card.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDamagedCache checks that a cached program that does not run is built again. A script takes Verilator's place.
func TestDamagedCache(t *testing.T) {
	needTools(t)
	sound, err := (&Config{Build: usual()}).findProgram(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tools, cache := t.TempDir(), t.TempDir()
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	script := "#!/bin/sh\ncase $1 in --version) echo mine;; *) mkdir -p build && printf '" + programName + ":\\n\\tcp " + sound +
		" $@\\n' >build/" + makefile + ";; esac\n"
	write(t, filepath.Join(tools, "verilator"), script)
	damaged, err := (&Config{Build: usual(), Cache: cache}).findProgram(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{"#!/bin/sh\nexit 7\n", "no program"} {
		write(t, damaged, damage)
		built := 0
		card, err := Open(t.Context(), Config{Cache: cache, Building: func() { built++ }})
		if err != nil || built != 1 {
			t.Fatalf("%q: built %d times, %v", damage, built, err)
		}
		_ = card.Close()
	}
	write(t, filepath.Join(tools, "verilator"), "#!/bin/sh\necho '%Error: no such thing' >&2\nexit 1\n")
	if _, err := Open(t.Context(), Config{Cache: t.TempDir()}); !errors.Is(err, ErrBuild) ||
		!strings.Contains(err.Error(), "no such thing") {
		t.Errorf("a broken tool: %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// usual returns the build for an address without sizes.
func usual() Build {
	b, _ := ParseBuild("")
	return b
}
