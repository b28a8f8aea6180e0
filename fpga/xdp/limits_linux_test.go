package xdp

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestDescriptorsAreNotAnOldKernel(t *testing.T) {
	if err := roomFor(30, 20, 50); err != nil {
		t.Errorf("just enough descriptors: %v", err)
	}
	if err := roomFor(31, 20, 50); !errors.Is(err, ErrKernel) || !strings.Contains(err.Error(), "too many open files") ||
		!strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("one descriptor too few: %v", err)
	}
	for number, want := range map[syscall.Errno]string{syscall.EMFILE: "ulimit -n", syscall.ENFILE: "fs.file-max",
		syscall.ENOMEM: "memory", syscall.EPERM: "right"} {
		if err := withRemedy(fmt.Errorf("map create: %w", number)); !errors.Is(err, number) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", number, err, want)
		}
	}
	if err := withRemedy(syscall.EINVAL); err.Error() != syscall.EINVAL.Error() {
		t.Errorf("an error without a remedy: %v", err)
	}
}
