package remote

import (
	"errors"
	"fmt"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga"
)

// TestErrorsKeepTheirKind holds that what a device failed of is a device's failure behind an agent too, with the same words.
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
