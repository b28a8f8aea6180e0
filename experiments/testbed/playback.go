package testbed

import (
	"context"
	"fmt"
	"os"

	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/playback"
)

// PlaybackDevice returns the row of the device table for recorded sessions with a device.
func PlaybackDevice() Device {
	return Device{Prefix: "playback:", Name: "FILE", NotCard: "a recorded session has registers alone",
		Registers: openPlayback, Lend: lendPlayback}
}

func openPlayback(_ context.Context, path string, _ DeviceOptions) (fpga.Device, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", playback.ErrSession, err)
	}
	defer file.Close()
	p, err := playback.NewPlayer(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func lendPlayback(ctx context.Context, s *Service, name string, o ServeOptions) error {
	d, err := OpenDevice(ctx, "playback:"+name, o.Device)
	if err != nil {
		return err
	}
	s.close = append(s.close, d.Close)
	s.registerDevice(d, nil)
	return nil
}
