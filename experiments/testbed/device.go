package testbed

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/pcie"
	"github.com/olafctl/olaf/fpga/playback"
	"github.com/olafctl/olaf/fpga/twin"
)

// Access is what reaching a device takes of the world around. The zero value is this host, and agents without TLS.
type Access struct {
	TLS   *tls.Config // towards an agent; nil for a unix socket, loopback, or a network that somebody else secures
	Bus   *pcie.Bus   // where cards are found; nil is this host
	Clock pcie.Clock  // of cards; nil is this host's
	Card  CardAccess
}

// DeviceOptions say how a device is opened for its registers alone.
type DeviceOptions struct {
	Access
	ReadOnly bool      // nothing will be written; a card can then be shared and may run another image
	DryRun   io.Writer // print every access and write nothing; nil does what it says
	Force    bool      // see pcie.Options
}

// deviceOpeners is the table of what has registers, by the scheme of an address.
var deviceOpeners = map[string]func(context.Context, string, DeviceOptions) (fpga.Device, error){
	"twin":     openTwinDevice,
	"pci":      openCard,
	"playback": openPlayback,
	"grpc":     openAgentDevice,
}

// DeviceAddresses is the form that OpenDevice takes, for help texts.
const DeviceAddresses = Addresses + ", playback:FILE"

// OpenDevice opens a device for its registers alone, without tables and capture.
func OpenDevice(ctx context.Context, address string, o DeviceOptions) (fpga.Device, error) {
	if address == "" {
		address = "twin:"
	}
	scheme, rest, _ := strings.Cut(address, ":")
	open, ok := deviceOpeners[scheme]
	if !ok {
		return nil, fmt.Errorf("%w for %q; this build opens %s", ErrBackend, address, DeviceAddresses)
	}
	d, err := open(ctx, rest, o)
	if err != nil {
		return nil, err
	}
	if o.DryRun != nil && scheme != "pci" { // a card's own dry run shows its checks too
		d = fpga.DryRun(d, o.DryRun)
	}
	return d, nil
}

func openTwinDevice(_ context.Context, name string, _ DeviceOptions) (fpga.Device, error) {
	if err := unnamed(name); err != nil {
		return nil, err
	}
	return twin.New(twin.Config{})
}

// unnamed refuses a name after twin: so that a typing error is not taken for the twin.
func unnamed(name string) error {
	if name == "" {
		return nil
	}
	return fmt.Errorf("%w for %q; the twin has no name, so write just its scheme", ErrBackend, "twin:"+name)
}

func openCard(_ context.Context, bdf string, o DeviceOptions) (fpga.Device, error) {
	return pcie.Open(o.bus(), bdf, o.card())
}

func (o *DeviceOptions) bus() pcie.Bus {
	if o.Bus != nil {
		return *o.Bus
	}
	return pcie.System()
}

func (o *DeviceOptions) card() pcie.Options {
	return pcie.Options{ReadOnly: o.ReadOnly, DryRun: o.DryRun, Force: o.Force, Clock: o.Clock}
}

func openPlayback(_ context.Context, path string, _ DeviceOptions) (fpga.Device, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", playback.ErrSession, err)
	}
	defer file.Close()
	p, err := playback.Play(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}
