package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends/backendstest"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/remote"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/pktgen"
)

// victim names the agent whose device the test binary measures on, until it is killed.
const victim = "BENCH_TEST_AGENT"

// TestMain makes the test binary act as another olafctl.
func TestMain(m *testing.M) {
	address := os.Getenv(victim)
	if address == "" {
		os.Exit(m.Run())
	}
	if err := startAndHang(address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startAndHang runs a bench up to the middle of its first run.
func startAndHang(address string) error {
	plan, err := NewPlan(cardSpec())
	if err != nil {
		return err
	}
	ctx := context.Background()
	bed, err := testbed.OpenTestbed(ctx, address, testbed.OpenOptions{Access: backendstest.TestAccess()})
	if err != nil {
		return err
	}
	defer bed.Close()
	if _, err := plan.Program(ctx, bed); err != nil {
		return err
	}
	rig, err := plan.Rig(bed.Cards[0])
	if err != nil {
		return err
	}
	if _, err := rig.Load(ctx, 0); err != nil {
		return err
	}
	steps := []func() error{
		func() error { return rig.Prepare(ctx, 0) }, rig.Generator.Arm, rig.Generator.Start,
		func() error { return rig.Device.Sleep(ctx, olaf.Microsecond) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	state, err := rig.Generator.State()
	fmt.Println(state)
	if err == nil {
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	return err
}

// kill starts a bench in another process and kills it while its generator runs.
func kill(t *testing.T, address string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), victim+"="+address), os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var state string
	_, err = fmt.Fscan(out, &state)
	must(t, errors.Join(err, cmd.Process.Kill()))
	_ = cmd.Wait() // it was killed
	if state != pktgen.Running.String() {
		t.Fatalf("it was killed while its generator was %s", state)
	}
}

// openLent opens the device for writing as soon as the agent has noticed that the last writer is gone.
func openLent(t *testing.T, address string) fpga.Device {
	t.Helper()
	for {
		dev, err := testbed.OpenDevice(t.Context(), address, testbed.DeviceOptions{Access: backendstest.TestAccess()})
		if err == nil {
			return dev
		}
		if !errors.Is(err, remote.ErrInUse) {
			t.Fatal(err)
		}
	}
}

// awaitUnheld waits until the agent has also noticed, on a separate stream, that the tables' last controller is gone.
func awaitUnheld(t *testing.T, target string) {
	t.Helper()
	for {
		session, err := p4ctl.Dial(t.Context(), target, p4ctl.Options{})
		if err == nil {
			must(t, session.Close())
			return
		}
		if !errors.Is(err, p4ctl.ErrElectionInUse) {
			t.Fatal(err)
		}
	}
}

// TestKilledBenchLeavesTheGeneratorStopped checks that a device survives its borrower.
func TestKilledBenchLeavesTheGeneratorStopped(t *testing.T) {
	for _, device := range []string{"twin:", backendstest.CardAddress} {
		t.Run(device, func(t *testing.T) {
			lab := backendstest.NewLab(t)
			s, err := testbed.ServeDevice(t.Context(), device,
				testbed.ServeOptions{Listen: "unix:" + filepath.Join(t.TempDir(), "s"),
					Device: testbed.DeviceOptions{Access: lab.Access}})
			must(t, err)
			address := "grpc:" + s.Target
			kill(t, address)
			dev := openLent(t, address)
			if state, err := pktgen.NewGenerator(dev).State(); state != pktgen.Idle || err != nil {
				t.Errorf("the generator is %v, %v", state, err)
			}
			must(t, dev.Close())
			awaitUnheld(t, s.Target)
			report := mustBench(t, cardSpec(), Options{Device: address, Access: backendstest.TestAccess(), AgeErrorPct: 200})
			must(t, report.Err())
			must(t, s.Close())
		})
	}
}

// TestBenchStopsWhatItFindsRunning checks that a bench stops a running generator on a card without an agent, which the
// card's next owner has exclusively.
func TestBenchStopsWhatItFindsRunning(t *testing.T) {
	lab := backendstest.NewLab(t)
	dev, err := testbed.OpenDevice(t.Context(), backendstest.CardAddress, testbed.DeviceOptions{Access: lab.Access})
	must(t, err)
	plan, err := NewPlan(cardSpec())
	must(t, err)
	rig, err := plan.Rig(testbed.Card{Device: dev})
	must(t, err)
	_, err = rig.Load(t.Context(), 0)
	must(t, errors.Join(err, rig.Generator.Arm(), rig.Generator.Start(), dev.Sleep(t.Context(), olaf.Microsecond), dev.Close(),
		lab.Wire.Poll()))
	lab.Wire.Frames = nil // not captured yet
	report := mustBench(t, cardSpec(), Options{Device: backendstest.CardAddress, Access: lab.Access, AgeErrorPct: 200})
	must(t, report.Err())
}
