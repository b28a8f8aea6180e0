package pcie_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/regmap"
)

// roleVariable contains the role of a child process of this test, folderVariable the folder of its card.
const roleVariable, folderVariable = "OLAF_TEST_GUARD", "OLAF_TEST_GUARD_FOLDER"

// fileBus returns a bus with a card whose BAR2 is a plain file in dir, so that several processes can use it.
func fileBus(dir string) pcie.Bus {
	return pcie.Bus{Sysfs: filepath.Join(dir, "devices"), Locks: dir, Guard: func(string) *exec.Cmd { return childOf(dir, "guard") }}
}

func childOf(dir, role string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", "-test.run=^TestGuardStopsGenerator$")
	c.Env = append(os.Environ(), roleVariable+"="+role, folderVariable+"="+dir)
	return c
}

// TestGuardStopsGenerator starts the generator of a card in a child process. It checks that the generator is stopped
// before the card can be opened again if the child is killed, and that it continues if the child closes the card.
func TestGuardStopsGenerator(t *testing.T) {
	switch dir := os.Getenv(folderVariable); os.Getenv(roleVariable) {
	case "owner":
		ownCard(t, dir)
		return
	case "guard":
		must(t, pcie.Guard(fileBus(dir), pcietest.BDF, os.Stdin))
		return
	}
	for name, c := range map[string]struct {
		kill bool
		want uint32
	}{
		"killed": {true, regmap.GeneratorCommandAbort},
		"closed": {false, regmap.GeneratorCommandStart},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, pcietest.WriteSysfs(filepath.Join(dir, "devices"), pcietest.OpenNIC()))
			registers, err := os.OpenFile(filepath.Join(dir, "devices", pcietest.BDF, "resource2"), os.O_RDWR, 0)
			must(t, err)
			defer registers.Close()
			for addr, value := range map[uint32]uint32{pcie.ShellBuildTime: 1, pcie.ShellCanary: 1, 0x8024: 0x301,
				regmap.CommonMagic: regmap.CommonMagicResetValue, regmap.CommonMapVersion: regmap.VersionMajor << 24, regmap.CommonClockHz: 250e6} {
				_, err := registers.WriteAt(binary.LittleEndian.AppendUint32(nil, value), int64(addr))
				must(t, err)
			}
			owner := childOf(dir, "owner")
			stdin, err := owner.StdinPipe()
			must(t, err)
			stdout, err := owner.StdoutPipe()
			must(t, err)
			owner.Stderr = os.Stderr
			must(t, owner.Start())
			if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "started\n" {
				t.Fatalf("the owner printed %q (%v)", line, err)
			}
			path := filepath.Join(dir, "olafctl-"+pcie.Slot(pcietest.BDF)+".lock")
			refuseGuards(t, dir, path)
			if c.kill {
				must(t, owner.Process.Kill())
			} else {
				must(t, stdin.Close())
			}
			_ = owner.Wait() // it may have been killed
			lock, err := os.Open(path)
			must(t, err)
			defer lock.Close()
			must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX)) // waits for the guard
			var word [4]byte
			_, err = registers.ReadAt(word[:], int64(regmap.GeneratorCommand))
			must(t, err)
			if got := binary.LittleEndian.Uint32(word[:]); got != c.want {
				t.Errorf("the generator's last command is %#x, want %#x", got, c.want)
			}
		})
	}
}

// refuseGuards checks that guards which the card's owner did not start are refused: without the lock's file, with
// another file, and with a file that they opened.
func refuseGuards(t *testing.T, dir, lockPath string) {
	t.Helper()
	for _, path := range []string{"", os.DevNull, lockPath} {
		guard := childOf(dir, "guard") // its standard input ends at once
		if path != "" {
			file, err := os.Open(path)
			must(t, err)
			defer file.Close()
			guard.ExtraFiles = []*os.File{file}
		}
		if out, err := guard.CombinedOutput(); err == nil || !strings.Contains(string(out), "this process has no lock on") {
			t.Errorf("a guard with the file %q ends with %v: %s", path, err, out)
		}
	}
}

// ownCard opens a card and starts its generator. It closes the card when standard input ends.
func ownCard(t *testing.T, dir string) {
	d, err := pcie.Open(fileBus(dir), pcietest.BDF, pcie.Options{})
	must(t, err)
	must(t, d.Write32(regmap.GeneratorCommand, regmap.GeneratorCommandStart))
	_, err = os.Stdout.WriteString("started\n")
	must(t, err)
	_, err = io.Copy(io.Discard, os.Stdin)
	must(t, err)
	must(t, d.Close())
}
