package job

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/experiments/netsim/closedloop"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/program"
	"github.com/olafctl/olaf/pktgen/endpoint"
)

// jobOf returns a small job of a system.
func jobOf(t *testing.T, name string, o system.Options, perRack int, loss float64) *Spec {
	t.Helper()
	s, err := system.All().Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return &Spec{
		System: s, Mode: &s.Modes[0], Options: o,
		Network: closedloop.Network{Workers: 4, PerRack: perRack,
			Link: closedloop.Link{Rate: 10 * olaf.Gbps, Overhead: 24, Loss: loss}},
		Job: closedloop.Job{Layout: endpoint.Layout{Values: 3000}, Updates: 6, Compute: olaf.Millisecond},
	}
}

// TestCapturesHaveEveryFrame checks that every arriving frame is in its node's file, once, and can be read.
func TestCapturesHaveEveryFrame(t *testing.T) {
	for name, c := range map[string]struct {
		system  string
		options system.Options
		perRack int
		loss    float64
		format  *frame.Format
	}{
		"iSwitch":             {"iswitch", system.Options{}, 0, 0, frame.ISwitch},
		"iSwitch under loss":  {"iswitch", system.Options{Recovery: "help"}, 0, 0.05, frame.ISwitch},
		"isw-x in racks":      {"iswitch", system.Options{Profile: "isw-x"}, 2, 0.05, frame.ISwitchExact},
		"a parameter server":  {"ps", system.Options{}, 0, 0, frame.Baseline},
		"a ring in racks":     {"ring", system.Options{}, 2, 0, frame.Baseline},
		"SwitchML":            {"switchml", system.Options{Packet: 1024}, 0, 0, frame.SwitchML},
		"ATP":                 {"atp", system.Options{}, 0, 0, frame.ATPReleased},
		"ATP under loss":      {"atp", system.Options{}, 0, 0.02, frame.ATPReleased},
		"ATP in racks":        {"atp", system.Options{Profile: "paper"}, 2, 0.02, frame.ATPPaper},
		"XAgg":                {"xagg", system.Options{}, 0, 0, frame.XAgg},
		"XAgg under loss":     {"xagg", system.Options{}, 0, 0.05, frame.XAgg},
		"SwitchML under loss": {"switchml", system.Options{}, 2, 0.02, frame.SwitchML},
		"P4INC":               {"p4inc", system.Options{}, 0, 0, frame.P4INC},
		"P4INC with marks":    {"p4inc", system.Options{Slots: 8, Window: 64}, 0, 0, frame.P4INC},
		"P4INC under loss":    {"p4inc", system.Options{}, 0, 0.02, frame.P4INC},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "captures")
			s := jobOf(t, c.system, c.options, c.perRack, c.loss)
			captures, err := Capture(s, folder, false)
			if err != nil {
				t.Fatal(err)
			}
			o, err := Run(context.Background(), s, []uint64{1}, nil)
			if err := errors.Join(err, captures.Commit(), captures.Abandon()); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(folder, "*.pcapng"))
			if err != nil || len(files) != len(captures.nodes) {
				t.Fatalf("%v, %v", files, err)
			}
			frames, bytes := uint64(0), uint64(0)
			for _, f := range files {
				n, b := readBack(t, f, c.format)
				frames, bytes = frames+n, bytes+b
			}
			r := o.Runs[0]
			if frames != r.Frames-r.Lost || captures.Frames() != frames {
				t.Errorf("%d frames are in the files and %d were written; %d were sent, of which %d were lost", frames,
					captures.Frames(), r.Frames, r.Lost)
			}
			if c.loss == 0 && bytes != r.Bytes {
				t.Errorf("frames of %d bytes, the wires had %d", bytes, r.Bytes)
			}
		})
	}
}

// readBack reads every frame of a file, in order of time.
func readBack(t *testing.T, file string, format *frame.Format) (frames, bytes uint64) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	for {
		data, info, err := r.ReadPacketData()
		if err != nil {
			return frames, bytes
		}
		v, err := format.DecodeTruncated(data, info.Length)
		if err != nil {
			t.Fatalf("%s: frame %d: %v", filepath.Base(file), frames+1, err)
		}
		var p program.Packet
		v.Packet(&p)
		if p.Kind == program.Other || info.Timestamp.UnixNano() < last {
			t.Fatalf("%s: frame %d is %+v at %v", filepath.Base(file), frames+1, p, info.Timestamp)
		}
		last = info.Timestamp.UnixNano()
		frames++
		bytes += uint64(info.Length)
	}
}

func TestCaptureRefusals(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "captures")
	bare := jobOf(t, "ps", system.Options{}, 0, 0)
	bare.Mode = &system.Mode{Parts: func(*system.Options) (system.Parts, error) {
		return system.Parts{Header: 50, PerPacket: 366},
			nil
	}}
	if _, err := Capture(bare, folder, false); !errors.Is(err, ErrFrames) {
		t.Errorf("packets without frames: %v", err)
	}
	long := jobOf(t, "atp", system.Options{}, 0, 0)
	long.Job.Updates = 1338 // each update has 49 packets
	if _, err := Capture(long, folder, false); !errors.Is(err, system.ErrOptions) ||
		!strings.Contains(err.Error(), "use --updates 1337") {
		t.Errorf("more than frames number: %v", err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder is there: %v", err)
	}
	s := jobOf(t, "iswitch", system.Options{}, 0, 0)
	for _, again := range []bool{false, true} {
		c, err := Capture(s, folder, false)
		if again {
			if !errors.Is(err, capture.ErrExists) {
				t.Errorf("over files: %v", err)
			}
			continue
		}
		if err := errors.Join(err, c.Commit(), c.Abandon()); err != nil {
			t.Fatal(err)
		}
	}
}
