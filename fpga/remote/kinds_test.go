package remote

import (
	"errors"
	"fmt"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
)

// TestErrorsKeepTheirKind checks that errors of a device keep their kind and text behind an agent.
func TestErrorsKeepTheirKind(t *testing.T) {
	for _, kind := range []error{fpga.ErrGone, fpga.ErrAddress, fpga.ErrRefused, fpga.ErrDoubtful, errors.New("something else")} {
		r := reader{b: appendStatus(nil, fmt.Errorf("queue.depth: %w", kind))}
		err := r.readStatus()
		if k, declared := olaf.KindOf(err); k != olaf.Device || !declared || err.Error() != "queue.depth: "+kind.Error() {
			t.Errorf("%v became %v, kind %v", kind, err, k)
		}
		if kind != fpga.ErrGone && errors.Is(err, fpga.ErrGone) || kind == fpga.ErrDoubtful && !errors.Is(err, kind) {
			t.Errorf("%v became %v", kind, err)
		}
	}
}
