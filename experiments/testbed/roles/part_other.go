//go:build !linux

package roles

import (
	"context"
	"fmt"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/experiments/testbed/lab"
)

// holdHere returns an error, because testbeds need Linux.
func holdHere(_ context.Context, part *HostPart, _ *testbed.Access) error {
	return fmt.Errorf("%w: %s; testbeds need Linux", lab.ErrAbsent, part.Testbed)
}
