package main

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fate is the outcome of testing a mutant.
type fate string

const (
	noticed    fate = "noticed"
	endless    fate = "endless" // noticed because it does not end or uses up the memory
	survived   fate = "survived"
	uncompiled fate = "uncompiled"
)

// offset returns a position as a byte offset in its file.
func (s *source) offset(at token.Pos) int { return s.fset.File(at).Offset(at) }

// built contains test programs into which mutants were compiled.
type built struct {
	folder string
	judges []judge
	number map[*mutant]int
	limits limits
}

type judge struct{ pkg, program string }

// limits contains the time limits that stop endless mutants. The main limit is on processor time, because the machine
// may be busy.
type limits struct {
	processor uint64 // CPU time in seconds
	wall      time.Duration
}

// generous contains the limits for runs whose normal duration is not yet known.
var generous = limits{processor: 60, wall: 10 * time.Minute}

// memory is the memory limit. It is more than any test needs and protects the machine from mutants that append
// endlessly.
const memory = 3 << 30

func (b *built) allow(l limits)          { b.limits = l }
func (b *built) remove()                 { _ = os.RemoveAll(b.folder) }
func (b *built) chosen(m *mutant) string { return environment + "=" + strconv.Itoa(b.number[m]) }

// measureBaseline runs the tests without a mutant, checks that they pass, and measures their duration.
func (b *built) measureBaseline() error {
	b.allow(generous)
	most, longest := time.Duration(0), time.Duration(0)
	for _, j := range b.judges {
		began := time.Now()
		used, err := b.test(j, environment+"=0")
		if err != nil {
			return fmt.Errorf("the tests of %s fail without a mutant: %w", j.pkg, err)
		}
		most, longest = max(most, used), max(longest, time.Since(began))
	}
	b.allow(limits{processor: uint64(4*most/time.Second) + 2, wall: 15*time.Second + 10*longest})
	return nil
}

// run runs one mutant with one judge after another until a judge notices it.
func (b *built) run(m *mutant) (fate, string, error) {
	for _, j := range b.judges {
		_, err := b.test(j, b.chosen(m))
		if errors.Is(err, errLate) {
			err = b.tryAgain(j, b.chosen(m))
		}
		exit := (*exec.ExitError)(nil)
		switch {
		case errors.Is(err, errEndless):
			return endless, j.pkg, nil
		case errors.As(err, &exit):
			return noticed, j.pkg, nil
		case err != nil:
			return "", "", err
		}
	}
	return survived, "", nil
}

// tryAgain runs a judge again after it exceeded its wall time limit, because the machine may have been busy. The new
// limit is ten times the duration of the judge's tests without a mutant. There is no second try if the judge exceeded
// its processor time.
func (b *built) tryAgain(j judge, chosen string) error {
	before := b.limits
	defer b.allow(before)
	b.allow(generous)
	began := time.Now()
	if _, err := b.test(j, environment+"=0"); err != nil {
		return fmt.Errorf("the tests of %s fail without a mutant: %s", j.pkg, err)
	}
	b.allow(limits{processor: before.processor, wall: max(before.wall, 15*time.Second+10*time.Since(began))})
	_, err := b.test(j, chosen)
	return err
}

// memoryFolder returns a folder in memory for the files of tests, because tests that sync files would wait for the
// disk. It returns "" if there is no such folder or if TMPDIR is set.
func memoryFolder() string {
	const shared = "/dev/shm"
	if info, err := os.Stat(shared); err != nil || !info.IsDir() || os.Getenv("TMPDIR") != "" {
		return ""
	}
	return shared
}

var (
	errEndless = errors.New("did not end")
	errLate    = fmt.Errorf("%w by the clock", errEndless)
)

// test runs a test program in the folder of its package. It returns errLate if the wall time limit was exceeded, and
// errEndless if the limit on processor time or memory was exceeded.
func (b *built) test(j judge, chosen string) (processor time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), b.limits.wall)
	defer cancel()
	temp, err := os.MkdirTemp(memoryFolder(), "m") // a short path, since tests create sockets below it
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp)
	cmd := exec.CommandContext(ctx, j.program, "-test.short", "-test.failfast", "-test.timeout=0")
	cmd.Dir = filepath.FromSlash(j.pkg)
	cmd.Env = append(os.Environ(), chosen, "TMPDIR="+temp, "RAPID_SEED=1", "RAPID_NOFAILFILE=true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); ctx.Err() != nil && err != nil {
		return 0, errLate
	} else if err != nil {
		return 0, err
	}
	for resource, most := range map[int]uint64{unix.RLIMIT_CPU: b.limits.processor, unix.RLIMIT_DATA: memory} {
		limit := unix.Rlimit{Cur: most, Max: most}
		if err := unix.Prlimit(cmd.Process.Pid, resource, &limit, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			return 0, err
		}
	}
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // remaining child processes
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err != nil && ctx.Err() != nil {
		return used, errLate
	}
	if err != nil && (status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGXCPU)) {
		return used, errEndless
	}
	return used, err
}
