package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/fpga/netlab"
	"github.com/olafctl/olaf/internal/test/peer"
	"github.com/olafctl/olaf/results"
)

// TestRealPackets measures both queues with real packets and compares them with the twin. It checks what must be true
// under any load: identities, decisions, the twin's results for the plan and for the logged arrivals; ages may be
// withheld.
func TestRealPackets(t *testing.T) {
	spec := usualSpec()
	w := &spec.Workload
	w.MeanRate, w.LineRate, w.BurstPackets, w.UpdatesPerWorker = 4*olaf.Mbps, 4*olaf.Mbps, 1, 20
	spec.OutRates, spec.Runs = []olaf.Rate{2 * olaf.Mbps}, 1
	for _, device := range []testbed.Device{backends.KernelDevice(), backends.HostDevice()} {
		t.Run(device.Prefix, func(t *testing.T) {
			m, err := MeasureSpec(t.Context(), spec,
				Options{Device: device.Prefix, Access: testbed.Access{Devices: testbed.Devices{device}}, Twin: true})
			if errors.Is(err, netlab.ErrRights) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Err(); err != nil {
				t.Fatal(err)
			}
			for i := range m.Bench.Rows {
				holdsReal(t, &m.Bench.Rows[i])
			}
		})
	}
}

func holdsReal(t *testing.T, r *results.Row) {
	t.Helper()
	d := r.Decisions
	if d == nil || d.Void != "" || d.Equal != d.Checked || d.Checked < 540 {
		t.Errorf("%s: decisions %+v", r.Queue, d)
	}
	b := r.Stats.Of("aom_cluster_ns").TwinComparison
	switch {
	case b == nil || !b.Plan.Known() || !b.Twin.Known() || b.Measured.Known() == (r.Withheld != nil):
		t.Errorf("%s: %+v, withheld %+v", r.Queue, b, r.Withheld)
	case r.LatenessNS == nil || r.LatenessNS.Max == 0:
		t.Errorf("%s: lateness %+v", r.Queue, r.LatenessNS)
	}
}

// TestCaptureAtBothEnds checks with tshark, for a run captured at both ends of real packets, that every frame is ours,
// that the counts at workers and server agree, and that the updates in them are those sent minus those lost.
func TestCaptureAtBothEnds(t *testing.T) {
	tshark := peer.NeedProgram(t, "tshark")
	lua := filepath.Join(t.TempDir(), "inagg.lua")
	must(t, os.WriteFile(lua, []byte(frame.DissectorScript()), 0o644))
	for _, device := range []testbed.Device{backends.KernelDevice(), backends.HostDevice()} {
		for _, queue := range []string{"olaf", "fifo"} {
			t.Run(device.Prefix+queue, func(t *testing.T) {
				spec := usualSpec()
				w := &spec.Workload
				w.MeanRate, w.LineRate, w.BurstPackets, w.UpdatesPerWorker = 4*olaf.Mbps, 4*olaf.Mbps, 1, 20
				spec.Queue, spec.Versus, spec.OutRates, spec.Runs = queue, "", []olaf.Rate{2 * olaf.Mbps}, 2
				path := filepath.Join(t.TempDir(), "ends.pcapng")
				r, err := RecordEnds(path, false, testbed.EndNames...)
				must(t, err)
				defer r.Abandon()
				m, err := MeasureSpec(t.Context(), spec,
					Options{Device: device.Prefix, Access: testbed.Access{Devices: testbed.Devices{device}}, Stream: NewStream(r)})
				if errors.Is(err, netlab.ErrRights) {
					t.Skip(err)
				}
				must(t, err)
				must(t, m.Err())
				must(t, r.Commit())
				frames, updates := readEnds(t, tshark, lua, path)
				c := m.Outcome.Runs[0][0].Counters
				if frames[0] != c.Of("sent") || updates[0] != c.Of("sent") || frames[0] != int64(w.Workers*w.UpdatesPerWorker) {
					t.Errorf("%d frames with %d updates left the workers, %d were counted", frames[0], updates[0], c.Of("sent"))
				}
				if frames[1] != c.Of("received") || updates[1] != c.Of("sent")-c.SumLost() {
					t.Errorf("%d frames with %d updates reached the server; %d frames were counted, and %d of %d updates lost",
						frames[1], updates[1], c.Of("received"), c.SumLost(), c.Of("sent"))
				}
				if said, want := r.About(), fmt.Sprintf("%d frames, %d at workers, %d at server", frames[0]+frames[1], frames[0],
					frames[1]); said != want {
					t.Errorf("%q, want %q", said, want)
				}
			})
		}
	}
}

// readEnds counts frames, and the updates in them, at each end of a capture.
func readEnds(t *testing.T, tshark, lua, path string) (frames, updates [2]int64) {
	t.Helper()
	out, err := exec.Command(tshark, "-n", "-X", "lua_script:"+lua, "-r", path, "-T", "fields", "-E", "separator=|",
		"-e", "frame.interface_name", "-e", "olaf.message", "-e", "olaf.count", "-e", "_ws.malformed").Output()
	must(t, err)
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) != 4 || fields[1] != "update" || fields[3] != "" {
			t.Fatalf("tshark says %q", line)
		}
		end := slices.Index(testbed.EndNames, fields[0])
		count, err := strconv.Atoi(fields[2])
		if end < 0 || err != nil {
			t.Fatalf("tshark says %q: %v", line, err)
		}
		frames[end]++
		updates[end] += int64(count)
	}
	return frames, updates
}

// TestEndsNeedAFormatOfSeveral checks that a file format with one interface is rejected.
func TestEndsNeedAFormatOfSeveral(t *testing.T) {
	if _, err := RecordEnds(filepath.Join(t.TempDir(), "ends.pcap"), false, testbed.EndNames...); !errors.Is(err, ErrSpec) {
		t.Error(err)
	}
}

// TestRealBenchStoppedAtAnyEventVerifies checks that the stored data of benches with real packets, with queues, sums in
// the kernel and loops on wires, verifies if they end at the events of their stream.
func TestRealBenchStoppedAtAnyEventVerifies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	queues := usualSpec()
	w := &queues.Workload
	w.MeanRate, w.LineRate, w.BurstPackets, w.UpdatesPerWorker = 40*olaf.Mbps, 40*olaf.Mbps, 1, 4
	queues.OutRates, queues.Runs = []olaf.Rate{20 * olaf.Mbps}, 2
	loop := wiringSpec("iswitch")
	loop.Runs = 2
	for name, c := range map[string]struct {
		device testbed.Device
		spec   Spec
	}{
		"queues in the kernel": {backends.KernelDevice(), queues},
		"queues on wires":      {backends.HostDevice(), queues},
		"loops on wires":       {backends.HostDevice(system.All().Programs()...), loop},
	} {
		t.Run(name, func(t *testing.T) {
			endEverywhere(t, 2, true, func(ctx context.Context, to *Stream) (*Measurement, error) {
				m, err := MeasureSpec(ctx, c.spec, Options{Device: c.device.Prefix,
					Access: testbed.Access{Devices: testbed.Devices{c.device}}, Stream: to})
				if errors.Is(err, netlab.ErrRights) {
					t.Skip(err)
				}
				return m, err
			})
		})
	}
}
