package saturate

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/capture"
	"github.com/olafctl/olaf/fpga/frame"
	"github.com/olafctl/olaf/internal/test/peer"
	"github.com/olafctl/olaf/pktgen/process"
)

// captured writes a capture for tshark.
type captured struct {
	file *capture.File
	lost int64
}

func (c *captured) Frame(p *capture.Packet) error { return c.file.WritePacket(p) }
func (c *captured) Lost(frames int64) error       { c.lost = frames; return nil }

// fullDisk is a recorder without room for any frame.
type fullDisk struct{}

var errFull = errors.New("no room")

func (fullDisk) Frame(*capture.Packet) error { return errFull }
func (fullDisk) Lost(int64) error            { return nil }

// TestRecordOnAFullDisk checks that a run whose capture cannot be written ends early, with that error once.
func TestRecordOnAFullDisk(t *testing.T) {
	f := feeder(t, "tree: {workers: 2}\njob: {lanes: 8, fragments: 50}")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	r, err := f.Record(ctx, Config{Vectors: MaxVectors, Line: olaf.Mbps}, fullDisk{}, nil)
	if r != nil || !errors.Is(err, errFull) || ctx.Err() != nil || strings.Count(err.Error(), "no room") != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCaptureAtAllEnds checks with tshark a run captured at all of its ends, with one server and in a tree. Every frame
// must be XAgg's, the workers' frames must match their counts, each sum must have reached the server and every worker,
// and the workers must have received what the server sent.
func TestCaptureAtAllEnds(t *testing.T) {
	tshark := peer.NeedProgram(t, "tshark")
	lua := filepath.Join(t.TempDir(), "inagg.lua")
	if err := os.WriteFile(lua, []byte(frame.DissectorScript()), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"star": "tree: {workers: 3}\njob: {lanes: 48, fragments: 70}",
		"tree": "tree: {workers: 5, children: 3}\njob: {lanes: 16, fragments: 40}",
	} {
		t.Run(name, func(t *testing.T) {
			f := feeder(t, text)
			f.mishaps = process.Mishaps{Twice: 9}
			ends := EndNames(f.lab.Plan)
			if len(ends) != len(f.workers)+1 {
				t.Fatalf("%v", ends)
			}
			var at []capture.Interface
			for _, end := range ends {
				at = append(at, capture.Interface{Name: end, SnapBytes: int(olaf.MaxFrame)})
			}
			path := filepath.Join(t.TempDir(), "ends.pcapng")
			file, err := capture.CreateFrom(path, false, at...)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Abandon()
			c := &captured{file: file}
			const vectors = 3
			r, err := f.Record(t.Context(), Config{Vectors: vectors, Line: 50 * olaf.Mbps, Seed: 1}, c, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := file.Commit(); err != nil {
				t.Fatal(err)
			}
			if !r.Valid() || c.lost > 0 {
				t.Fatalf("%+v, %d frames lost", r, c.lost)
			}
			addresses := []string{f.above(f.topAggregator()).Addr().String()}
			for i := range f.lab.Workers() {
				addresses = slices.Insert(addresses, i, f.below(f.lab.Workers()[i]).Addr().String())
			}
			read := dissectEnds(t, tshark, lua, path, ends, addresses, f.below(f.topAggregator()).Addr().String())
			server, sums := read[len(ends)-1], uint64(vectors*f.lab.Fragments)
			sent, told := uint64(0), uint64(0)
			for i, worker := range read[:len(ends)-1] {
				sent += worker.sent
				told += worker.got
				if worker.got < sums || worker.fragments != f.lab.Fragments {
					t.Errorf("%s got %d sums of %d fragments, not %d of %d at least", ends[i], worker.got, worker.fragments, sums,
						f.lab.Fragments)
				}
			}
			if sent != r.Sent {
				t.Errorf("%d packets left the workers, who say %d", sent, r.Sent)
			}
			if server.got != r.Sums+r.Repeated || r.Sums != sums {
				t.Errorf("%d sums reached the server, which counted %d, and %d again", server.got, r.Sums, r.Repeated)
			}
			if all := server.sent + server.again*uint64(len(f.workers)); all != told {
				t.Errorf("%d sums left the server for workers and %d for all of them, %d reached them", server.sent, server.again, told)
			}
		})
	}
}

// end contains the counts that tshark read at one end.
type end struct {
	sent, got uint64 // data packets
	again     uint64 // repeated sums sent to the agent, which passes them on to all workers
	fragments int    // received
}

// dissectEnds returns what tshark reads at every end, to and from its address, and that of the agent next to the server.
func dissectEnds(t *testing.T, tshark, lua, path string, ends, addresses []string, agent string) []end {
	t.Helper()
	out, err := exec.Command(tshark, "-n", "-X", "lua_script:"+lua, "-r", path, "-Y", "udp", "-T", "fields", "-E", "separator=|", "-e",
		"frame.interface_name",
		"-e", "xagg.message", "-e", "ip.src", "-e", "xagg.fragment", "-e", "xagg.count", "-e", "_ws.malformed", "-e", "ip.dst").Output()
	if err != nil {
		t.Fatal(err)
	}
	all, came := make([]end, len(ends)), make([]map[string]bool, len(ends))
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		at := slices.Index(ends, fields[0])
		if len(fields) != 7 || at < 0 || fields[1] == "" || fields[5] != "" {
			t.Fatalf("tshark says %q", line)
		}
		if !strings.HasPrefix(fields[1], "data") && fields[1] != "result" {
			continue // a control packet
		}
		count, err := strconv.Atoi(fields[4])
		if ours := fields[2] == addresses[at]; err != nil || (count == 1) != (ours && at < len(ends)-1) {
			t.Fatalf("tshark says %q: %v", line, err)
		} else if ours {
			if at == len(ends)-1 && fields[6] == agent {
				all[at].again++
			} else {
				all[at].sent++
			}
			continue
		}
		all[at].got++
		if came[at] == nil {
			came[at] = map[string]bool{}
		}
		came[at][fields[3]] = true
	}
	for i := range all {
		all[i].fragments = len(came[i])
	}
	return all
}
