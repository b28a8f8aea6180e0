package saturate

import (
	"errors"

	"github.com/olafctl/olaf/experiments/testbed"
)

// recording is a capture of one run.
type recording struct {
	at *testbed.Capture
	to Recorder
}

// startRecording starts a capture at the ends of the workers and the server, in the order of EndNames.
func (f *Feeder) startRecording(to Recorder) (*recording, error) {
	names := EndNames(f.lab.Plan)
	var at []testbed.End
	for i, w := range f.lab.Workers() {
		at = append(at, testbed.End{Name: names[i], At: f.lab.Cables[f.lab.Plan.Nodes[w].Up].A})
	}
	server := f.lab.Server()
	at = append(at, testbed.End{Name: names[len(at)], At: f.lab.Cables[f.lab.Plan.Nodes[server].Down[0]].B})
	c, err := testbed.OpenCapture(at...)
	if err != nil {
		return nil, err
	}
	return &recording{c, to}, nil
}

// passCaptured passes the frames captured so far to the recorder. It does nothing if r is nil.
func (r *recording) passCaptured() error {
	if r == nil {
		return nil
	}
	return r.at.Drain(r.to.Frame)
}

// endRecording passes the remaining frames and the number of lost frames to the recorder, and closes the capture.
func (r *recording) endRecording() error {
	err := r.passCaptured()
	lost, why := r.at.Lost()
	if err = errors.Join(err, why); err == nil {
		err = r.to.Lost(lost)
	}
	return errors.Join(err, r.at.Close())
}
