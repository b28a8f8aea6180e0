package programtest

import (
	"errors"
	"testing"

	"github.com/olafctl/olaf/fpga/program"
)

// CheckRefusals checks that a program rejects invalid configurations with program.ErrConfig, and then invalid jobs
// besides those of a program with 8 slots. It returns this program.
func CheckRefusals(t *testing.T, d program.Description, configs []program.Config, present []program.Job, jobs map[string]program.Job) program.Program {
	t.Helper()
	for _, cfg := range configs {
		if _, err := d.New(cfg); !errors.Is(err, program.ErrConfig) {
			t.Errorf("%+v: %v, want %q", cfg, err, program.ErrConfig)
		}
	}
	s, err := d.New(program.Config{Slots: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range present {
		if err := s.Configure(j); err != nil {
			t.Fatal(err)
		}
	}
	for name, j := range jobs {
		if err := s.Configure(j); !errors.Is(err, program.ErrConfig) {
			t.Errorf("%s: %v, want %q", name, err, program.ErrConfig)
		}
	}
	return s
}
