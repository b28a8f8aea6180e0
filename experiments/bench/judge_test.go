package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/fpga/regmap"
	"github.com/olafctl/olaf/results"
)

// TestLateOutputWithholdsAges checks when ages are withheld although the output met its own limits. With 101 frames in
// 100 ms and an age of 1 ms in the mean and 2 ms at the peak, the mean may be 38.5 µs too high, 4 % of the rest.
func TestLateOutputWithholdsAges(t *testing.T) {
	for _, c := range []struct {
		name string
		p    fpga.Pacing
		says string // empty if there are ages
	}{
		{"in time", fpga.Pacing{Frames: 101, DueNS: 50e6}, ""},
		{"a little later", fpga.Pacing{Frames: 101, DueNS: 50e6 - 38e3}, ""},
		{"stamped too late", fpga.Pacing{Frames: 101, DueNS: 50e6 - 39e3}, "stamped 39µs after"},
		{"stamped too early", fpga.Pacing{Frames: 101, DueNS: 50e6 + 51e3}, "may be 51µs too high"},
		{"short stalls", fpga.Pacing{Frames: 101, DueNS: 50e6, Stalls: 20, StallNS: 1e6, StallAreaNS2: 20 * 50e3 * 50e3 / 2}, ""},
		{"the same in one", fpga.Pacing{Frames: 101, DueNS: 50e6, Stalls: 1, StallNS: 1e6, StallAreaNS2: 1e12 / 2}, ""},
		{"one of 2 ms", fpga.Pacing{Frames: 101, DueNS: 50e6, Stalls: 1, StallNS: 2e6, StallAreaNS2: 4e12 / 2},
			"stalls of 2ms in all account for 60µs"},
		{"of either a little", fpga.Pacing{Frames: 101, DueNS: 50e6 - 30e3, Stalls: 1, StallNS: 1e6, StallAreaNS2: 1e12 / 2},
			"may be 55µs too high"},
		{"of a run that lost frames", fpga.Pacing{Frames: 102}, ""},
	} {
		collector := results.NewCollector(results.Config{})
		for i := range 101 {
			collector.Observe(&olaf.Observation{At: olaf.Time(i) * olaf.Time(olaf.Millisecond)})
		}
		if got := lateReason(&c.p, collector, 1e6, 2e6); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// TestUnknownUpdatesInvalidateRun checks that updates that the tables assigned to other workers, or did not know, are
// named.
func TestUnknownUpdatesInvalidateRun(t *testing.T) {
	if why := fpga.ListStrangers(&regmap.QueueCounters{}, nil); why != nil {
		t.Errorf("a run with nothing amiss has %q", why)
	}
	got := strings.Join(fpga.ListStrangers(&regmap.QueueCounters{Bypassed: 2, Misidentified: 1}, nil), "; ")
	if want := "2 frames bypassed the queue: not updates, or from workers that are not in the tables; " +
		"1 update reached the queue with another identity than their worker's: the tables were changed during the run"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOtherFramesAreNotUpdates checks that a queue that distinguishes updates from other frames counts losses on its
// cable exactly, and that other frames appear in no count and in no reason for doubt, but in a statement.
func TestOtherFramesAreNotUpdates(t *testing.T) {
	for _, c := range []struct {
		name                        string
		left, arrived, in, stranger int64 // of 100 updates: frames at both interfaces, updates, and those of unknown workers
		others                      uint64
		lost                        int64
		says                        string // empty for a run without doubts
	}{
		{"nothing lost", 100, 100, 100, 0, 0, 0, ""},
		{"three lost", 100, 97, 97, 0, 0, 3, ""},
		{"others from both ends, and three lost", 104, 109, 97, 0, 12, 3, ""},
		{"updates of another sender", 100, 101, 100, 1, 0, 0, "101 updates reached the queue and the generator sent 100"},
		{"lost inside the generator's host", 98, 98, 98, 0, 0, 2, "but 98 frames left its interface: the others were lost inside its host"},
		{"lost inside the queue's host", 100, 100, 97, 0, 0, 0, "100 frames reached the queue's interface, but its program met 98"},
		{"one more of others, after the counters were latched", 100, 101, 100, 0, 0, 0, ""},
		{"all lost", 100, 0, 0, 0, 0, 100, "no update reached the queue: check the cable"},
	} {
		n := olaf.NewCounts(system.QueueDeclaration().Ledger)
		n.Add("sent", 100)
		n.Add("in", c.in)
		n.Add("bypassed", c.stranger+int64(c.others))
		ports := []fpga.Port{{Received: uint64(c.arrived)}, {}, {Sent: uint64(c.left), Feeds: true}}
		why := strings.Join(fpga.BookCable(n, ports, &c.others, c.others+1), "; ")
		if n.Of("lost_on_cable") != c.lost || n.Of("lost_before_engine") != c.lost || n.Of("bypassed") != c.stranger {
			t.Errorf("%s: %d lost on the cable, %d before the queue, %d bypassed; want %d, as many, and %d", c.name,
				n.Of("lost_on_cable"), n.Of("lost_before_engine"), n.Of("bypassed"), c.lost, c.stranger)
		}
		if (why == "") != (c.says == "") || !strings.Contains(why, c.says) {
			t.Errorf("%s: %q, want %q", c.name, why, c.says)
		}
	}
	others := uint64(3)
	if why := fpga.ListStrangers(&regmap.QueueCounters{Bypassed: 3}, &others); why != nil {
		t.Errorf("frames that are not OLAF's are a reason for doubt: %q", why)
	}
	var all captured
	for range 2 {
		all.addCapture(&fpga.Capture{Others: &others}, false)
	}
	if said := strings.Join(all.listStatements(), "\n"); !strings.Contains(said, "at the queue's input that were not updates (LLDP, ARP, IPv6 …): 6;") {
		t.Errorf("the statements are %q", said)
	}
}

// TestOtherFramesOnTheCable checks that losses on the cable to a card's queue are counted by its ports, which count
// every frame, and that a run is in doubt if the ports counted frames of other programs, even if these hide a loss.
func TestOtherFramesOnTheCable(t *testing.T) {
	for _, c := range []struct {
		name                     string
		left, arrived, in, other int64 // of 100 updates: frames at both ports, and updates and other frames at the queue
		lost                     int64
		says                     string // empty for a run without doubts
	}{
		{"nothing lost", 100, 100, 100, 0, 0, ""},
		{"three lost", 100, 97, 97, 0, 3, ""},
		{"another sender at the generator", 101, 101, 100, 1, 0, "the generator sent 100 updates, but 101 left its port"},
		{"all lost", 100, 0, 0, 0, 100, "no update reached the queue: check the cable"},
		{"lost inside the generator", 98, 98, 98, 0, 0, "the generator sent 100 updates, but 98 left its port"},
		{"another sender at the queue", 100, 102, 100, 2, 0, "102 frames reached the queue's port and 100 left the generator's"},
		{"the same, and three lost", 100, 99, 97, 2, 1, "lost_on_cable may be up to 2 too low"},
		{"the same, and as many lost", 100, 100, 98, 2, 0, "lost_on_cable may be up to 2 too low"},
	} {
		n := olaf.NewCounts(system.QueueDeclaration().Ledger)
		n.Add("sent", 100)
		n.Add("in", c.in)
		n.Add("bypassed", c.other)
		why := strings.Join(fpga.BookCable(n, []fpga.Port{{Received: uint64(c.arrived)}, {}, {Sent: uint64(c.left), Feeds: true}}, nil, 0), "; ")
		if n.Of("lost_on_cable") != c.lost || n.Of("lost_before_engine") != c.lost {
			t.Errorf("%s: %d lost on the cable and %d before the queue, want %d", c.name, n.Of("lost_on_cable"), n.Of("lost_before_engine"), c.lost)
		}
		if (why == "") != (c.says == "") || !strings.Contains(why, c.says) || why != "" && c.arrived > 0 && !strings.HasSuffix(why, fpga.QuietCable) {
			t.Errorf("%s: %q, want %q and what to do", c.name, why, c.says)
		}
	}
}

// TestAgesAbovePath checks that ages above the fastest path are renamed if their error is small and withheld if it is
// not, and that the statement contains the method and the bound.
func TestAgesAbovePath(t *testing.T) {
	for name, c := range map[string]struct {
		uncertainty int64
		above       results.Float
		withheld    string
	}{
		"exact":  {20, 500, "see aom_cluster_above_path_ns"},
		"coarse": {60, results.Missing(), "ages may be off by 61ns, which is more than 10 % of their mean of 500ns"},
	} {
		d := system.QueueDeclaration()
		collector := results.NewCollector(results.Config{Declared: d, Clusters: 1, Workers: 1})
		for i := range int64(3) {
			at := olaf.Time(1000+i*100) * olaf.Time(olaf.Nanosecond)
			collector.Observe(&olaf.Observation{At: at, Update: olaf.Update{GenNS: uint64(at.NS() - 450), Count: 1}})
		}
		r := collector.Finish(olaf.NewCounts(d.Ledger))
		seen := &fpga.Capture{AbovePath: true, Updates: 3, UncertaintyNS: c.uncertainty, DriftNS: -1}
		var all captured
		all.addCapture(seen, withholdAges(&r, seen, 10))
		above := r.Metrics.Of("aom_cluster_above_path_ns")
		if above.Known() != c.above.Known() || above.Known() && above != c.above || r.Metrics.Of("aom_cluster_ns").Known() || !strings.Contains(r.Withheld, c.withheld) {
			t.Errorf("%s: the age above the path is %v, want %v; the ordinary age is withheld for %q", name, above, c.above, r.Withheld)
		}
		said := strings.Join(all.listStatements(), "\n")
		if want := "(clock.by probe): up to " + time.Duration(c.uncertainty+1).String(); !strings.Contains(said, want) || strings.Contains(said, "youngest") {
			t.Errorf("%s: the statements are %q; they must contain %q, and no limit on the path", name, said, want)
		}
	}
}
