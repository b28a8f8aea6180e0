//go:build vnp4 && linux

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/pcie/pcietest"
	"github.com/olafctl/olaf/fpga/twin"
)

// TestCardWithStandInDriver serves a fake card whose tables a stand-in driver writes in a child process.
func TestCardWithStandInDriver(t *testing.T) {
	dir := t.TempDir()
	build := func(name string, args ...string) {
		if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
	}
	program := filepath.Join(dir, "olafctl")
	build("go", "build", "-tags", "vnp4", "-o", program, ".")
	serve := []string{"serve", "--listen", "unix:" + filepath.Join(dir, "s"), "-d", "pci:" + pcietest.BDF}
	for _, n := range []string{"1", "2"} { // one shared object has one set of tables
		library := filepath.Join(dir, "driver"+n+".so")
		build("gcc", "-shared", "-fPIC", "-o", library, "../../p4ctl/vnp4/testdata/standin.c")
		serve = append(serve, "--vnp4-"+n, library+":XilVitisNetP4TargetConfig_standin")
	}
	card, err := pcietest.New(twin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range []uint32{pcie.TablesBase, pcie.TablesBase + pcie.TablesBytes/2} {
		card.Shell[base+0x10] = 0x1AF // what the stand-in knows its card by
	}
	stderr := &signalWriter{text: "P4Runtime", seen: make(chan struct{})}
	env := testEnvironment(&bytes.Buffer{}, stderr)
	env.executable = func() (string, error) { return program, nil }
	env.cardClock = card
	if env.bus, err = card.Bus(dir, pcietest.OpenNIC()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	code := make(chan int, 1)
	go func() { code <- run(ctx, env, serve) }()
	select {
	case <-stderr.seen:
	case c := <-code:
		t.Fatalf("serve ended with %d: %s", c, stderr.all.String())
	}
	replace := strings.NewReplacer("TARGET", "--target unix:"+filepath.Join(dir, "s"), "FILE", writeFile(t, "t.yaml", storyTables))
	for _, s := range []step{
		{"tables apply FILE TARGET", 0, "", "8 added"},
		{"cluster move --to 1 10.1.0.1 TARGET", 0, "10.1.0.1", ""},
		{"tables clear TARGET", 0, "", "8 deleted"},
	} {
		s.run(t, replace)
	}
	cancel()
	if c := <-code; c != exitDone {
		t.Errorf("serve ended with %d: %s", c, stderr.all.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "s")); err == nil {
		t.Error("the socket is still there")
	}
	if card.Shell[pcie.TablesBase+8] == 0 {
		t.Error("nothing reached the card")
	}
}
