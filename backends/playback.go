package backends

import (
	"context"
	"fmt"
	"os"

	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/playback"
)

// PlaybackDevice returns the row of the device table for recorded sessions with a device.
func PlaybackDevice() testbed.Device {
	return testbed.SharedDevice(testbed.Device{Prefix: "playback:", Name: "FILE", NotCard: "a recorded session has " +
		"only registers"},
		openPlayback, nil)
}

func openPlayback(_ context.Context, path string, _ testbed.ShareOptions) (*testbed.Shared, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", playback.ErrSession, err)
	}
	defer file.Close()
	p, err := playback.NewPlayer(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &testbed.Shared{Device: p}, nil
}
