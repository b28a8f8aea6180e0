package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/capture/ages"
	"github.com/olafctl/olaf/capture/live"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// Report describes what a live capture received and lost.
type Report struct {
	cli.Head
	Interface   string         `json:"interface"`
	File        string         `json:"file"` // empty if none was written
	All         bool           `json:"all"`
	Clock       live.Stamps    `json:"clock"`
	BufferBytes int            `json:"buffer_bytes"`
	SnapBytes   int            `json:"snap_bytes"`
	ElapsedNS   int64          `json:"elapsed_ns"`
	FirstUnixNS int64          `json:"first_unix_ns"` // 0 without packets
	LastUnixNS  int64          `json:"last_unix_ns"`
	Capture     capture.Losses `json:"capture"`
	Faults      []captureFault `json:"faults"`
	Drops       live.Drops     `json:"drops"`
	Dropped     int64          `json:"dropped"`
	Stamped     live.Stamped   `json:"stamped"`
	Ages        *ages.Ages     `json:"ages"`
	Notes       []string       `json:"notes"`
	Valid       bool           `json:"valid"`
	Reason      string         `json:"reason"`
	Partial     bool           `json:"partial,omitempty"`
}

// captureFault is a reason why frames were bypassed or malformed, with the number of such frames.
type captureFault struct {
	Fault  string `json:"fault"`
	Frames int64  `json:"frames"`
}

// newReport summarises the capture. ended is the error that ended it early, or nil.
func (s *session) newReport(ended error) *Report {
	info := s.socket.Info()
	r := &Report{
		Head: cli.Info("capture"), Interface: info.Interface, All: s.flags.all, Clock: info.Stamps,
		BufferBytes: info.BufferBytes, SnapBytes: info.SnapBytes, ElapsedNS: s.env.Now().Sub(s.started).Nanoseconds(),
		FirstUnixNS: s.FirstNS, LastUnixNS: s.LastNS, Capture: s.Account.Losses(), Faults: []captureFault{},
		Drops: s.drops, Dropped: s.drops.Total(), Stamped: s.socket.StampCounts(), Ages: s.Ages.Report(),
		Notes:   append([]string{}, info.Notes...),
		Partial: ended != nil,
	}
	if s.File != nil {
		r.File = s.flags.to
	}
	r.Capture.CaptureDropped = r.Dropped
	for _, f := range s.Account.Faults() {
		r.Faults = append(r.Faults, captureFault{f.Fault.Error(), f.Count})
	}
	r.Reason = s.invalidReason(ended)
	r.Valid = r.Reason == ""
	return r
}

// invalidReason returns the reason why results must not be computed from the capture, or "" if the capture is valid.
func (s *session) invalidReason(ended error) string {
	stamped := s.socket.StampCounts()
	switch {
	case ended != nil && !errors.Is(ended, context.Canceled):
		return ended.Error()
	case s.drops.Total() > 0:
		return fmt.Sprintf("the capture lost %s: the socket %d, the interface %d; docs/guide/capture.md describes "+
			"what to do", olaf.Plural(s.drops.Total(), "packet"), s.drops.Socket, s.drops.Interface())
	case s.blind != nil:
		return "the number of lost packets is unknown: " + s.blind.Error()
	case stamped.Err() != nil:
		return stamped.Err().Error()
	}
	return ""
}

// captureCounters lists the counters in the report, one per line.
var captureCounters = []struct {
	name    string
	of      func(*Report) int64
	meaning string
}{
	{"packets", func(r *Report) int64 { return r.Capture.Packets }, "captured"},
	{"updates", func(r *Report) int64 { return r.Capture.Updates }, "alone or merged"},
	{"acks", func(r *Report) int64 { return r.Capture.Acks }, "answers to updates"},
	{"bypassed", func(r *Report) int64 { return r.Capture.Bypassed }, "not OLAF"},
	{"malformed", func(r *Report) int64 { return r.Capture.Malformed }, "broken OLAF frames"},
	{"truncated", func(r *Report) int64 { return r.Capture.Truncated },
		"kept only in part; also in one of the classes above"},
	{"missing", func(r *Report) int64 { return r.Capture.Missing },
		"sequence numbers that never arrived; no loss behind a queue that merges"},
	{"misordered", func(r *Report) int64 { return r.Capture.Misordered },
		"arrived after a newer one of the same worker"},
	{"duplicates", func(r *Report) int64 { return r.Capture.Duplicates }, "arrived twice"},
	{"stamped_hardware", func(r *Report) int64 { return r.Stamped.Hardware }, "by the network card"},
	{"stamped_kernel", func(r *Report) int64 { return r.Stamped.Kernel }, "by the kernel"},
	{"stamped_late", func(r *Report) int64 { return r.Stamped.Late },
		"stamped when read, because there was no other stamp"},
	{"stamped_backwards", func(r *Report) int64 { return r.Stamped.Backwards },
		"stamped before their predecessor; sorted"},
	{"dropped", func(r *Report) int64 { return r.Dropped }, "lost, the sum of the following"},
	{"socket", func(r *Report) int64 { return r.Drops.Socket }, "the socket's buffer was full"},
	{"rx_dropped", func(r *Report) int64 { return r.Drops.RXDropped }, "the host had no room"},
	{"rx_missed_errors", func(r *Report) int64 { return r.Drops.RXMissed }, "the card's ring was full"},
	{"rx_fifo_errors", func(r *Report) int64 { return r.Drops.RXFIFO }, "the card's memory was full"},
	{"rx_over_errors", func(r *Report) int64 { return r.Drops.RXOver }, "the same, with some drivers"},
	{"rx_crc_errors", func(r *Report) int64 { return r.Drops.RXCRC }, "damaged on the wire"},
	{"rx_frame_errors", func(r *Report) int64 { return r.Drops.RXFrame }, "damaged on the wire"},
	{"rx_length_errors", func(r *Report) int64 { return r.Drops.RXLength }, "too long or too short"},
}

// print prints the report in the requested format.
func (r *Report) print(env *cli.Env, out cli.Format) error {
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, r)
	}
	if out == cli.Table {
		fmt.Fprintf(env.Stdout, "%s for %v, %s, buffer %s\n\n", r.Interface,
			time.Duration(r.ElapsedNS).Round(time.Millisecond), clockName(r.Clock), formatMebibytes(r.BufferBytes))
	}
	list := cli.Grid{Header: []string{"COUNTER", "VALUE", "MEANING"}}
	for _, c := range captureCounters {
		list.Add(c.name, fmt.Sprint(c.of(r)), c.meaning)
	}
	if out == cli.CSV {
		addAges(&list, "", r.Ages)
	}
	if err := list.Write(env, out); err != nil {
		return err
	}
	if out == cli.Table {
		if err := printAges(env, "of the model that the server held", r.Ages); err != nil {
			return err
		}
		for _, f := range r.Faults {
			fmt.Fprintf(env.Stdout, "%d × %s\n", f.Frames, f.Fault)
		}
	}
	return nil
}

func formatMebibytes(n int) string { return fmt.Sprintf("%.4gMiB", float64(n)/(1<<20)) }
