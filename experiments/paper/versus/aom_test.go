package versus

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/result"
)

// TestAoM checks that the expectations from before the first run are met with few seeds as well, and that the same
// seeds give the same ages.
func TestAoM(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	report, err := runAoM(context.Background(), system.All(), experiments.Options{Runs: 2})
	if err != nil {
		t.Fatal(err)
	}
	table := report.(*result.Result)
	for _, s := range table.Statements[:2] {
		if !strings.HasSuffix(s, "too short") {
			t.Errorf("two runs judge no expectation, but the table says %q", s)
		}
	}
	for i := range table.Blocks {
		b := &table.Blocks[i]
		for _, line := range b.Rows {
			if len(line.Cells) != len(b.Columns) {
				t.Errorf("%s, %s: %d cells in %d columns", b.Name, line.Name, len(line.Cells), len(b.Columns))
			}
			for k := range line.Cells {
				if !line.Cells[k].Known() {
					t.Errorf("%s, %s, %s: %s", b.Name, line.Name, b.Columns[k], line.Cells[k].Reason)
				}
			}
		}
	}
	if memory := &table.Blocks[len(table.Blocks)-1]; memory.Rows[0].Cells[1].Mean != 2048 || memory.Rows[0].Cells[3].Mean != 4352 ||
		memory.Rows[1].Cells[3].Mean != 3002368 {
		t.Errorf("memory: %+v", memory)
	}
	fifoAt20 := func(name string) results.Float {
		i := slices.IndexFunc(table.Blocks, func(b result.Block) bool { return b.Name == name })
		return table.Blocks[i].Rows[2].Cells[0].Mean
	}
	if with8, with17 := fifoAt20("poisson P AoM, newest"), fifoAt20("poisson P, equal bytes, AoM, newest"); !(with17 > 1.4*with8) {
		t.Errorf("a queue of 17 slots ages FIFO's models from %v to %v", with8, with17)
	}
	again, err := runAoM(context.Background(), system.All(), experiments.Options{Runs: 2})
	if err != nil {
		t.Fatal(err)
	}
	_, first := table.Table()
	_, second := again.Table()
	if !slices.EqualFunc(first, second, slices.Equal) {
		t.Error("the same seeds gave other ages")
	}
}

// TestLoads checks that each load offers its rate, in order of time.
func TestLoads(t *testing.T) {
	for _, load := range Loads() {
		all, err := load.arrivals(1, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(all, func(a, b arrival) int { return int(min(1, max(-1, a.at-b.at))) }) {
			t.Errorf("%s is out of order", load.Name)
		}
		bits := float64(len(all)) * float64(size+overhead) * 8
		rate := bits / (float64(all[len(all)-1].at) / float64(olaf.Second))
		if load.Name == "poisson" && (rate < 0.9*float64(offered) || rate > 1.02*float64(offered)) {
			t.Errorf("%s offers %g bit/s", load.Name, rate)
		}
	}
}

// TestAccelerator checks that the accelerator is the published one, with room for as many frames as a queue has slots.
func TestAccelerator(t *testing.T) {
	isw, err := system.All().Find("iswitch")
	if err != nil {
		t.Fatal(err)
	}
	accelerator, none := Settings()[2], Settings()[0]
	unit := accelerator.newInlet(isw)
	for n := range slots + 1 {
		at, ok := unit.Pass(0, isw.Frame.Size(lanes))
		if want := olaf.Time(0).Add(olaf.Duration(n+1)*40*olaf.Nanosecond + 80*olaf.Nanosecond); !ok || at != want {
			t.Errorf("frame %d is through at %v, %t, want %v", n, at, ok, want)
		}
	}
	if _, ok := unit.Pass(0, isw.Frame.Size(lanes)); ok {
		t.Error("one more found room")
	}
	if none.newInlet(isw) != nil {
		t.Error("there is a unit where none is charged")
	}
}

// TestFrameSizes checks the bytes on the line for 48 lanes: 242 for iSwitch, 256 for OLAF.
func TestFrameSizes(t *testing.T) {
	own := Settings()[0]
	for name, want := range map[string]olaf.Size{"iswitch": 10, "olaf": 24, "fifo": 24} {
		s, err := system.All().Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if have := own.lineOverhead(s); have != want {
			t.Errorf("%s: %s beside the frame, want %s", name, have, want)
		}
	}
}
