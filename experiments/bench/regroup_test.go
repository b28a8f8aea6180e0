package bench

import (
	"context"
	"net/netip"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/backends/backendstest"
	"github.com/olafctl/olaf/experiments/system"
	"github.com/olafctl/olaf/experiments/testbed"
	"github.com/olafctl/olaf/fpga"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/pktgen"
)

// TestRegroupingUnderLoad checks that every update is accounted for if workers move between clusters while the
// generator runs. The identities must hold, and each update counts for its worker's cluster at its generation.
func TestRegroupingUnderLoad(t *testing.T) {
	for _, device := range []string{"twin:", backendstest.ServeTwin(t, testbed.ServeOptions{})} {
		for config := range 4 { // Olaf and FIFO at 40 and 20 Gb/s
			regroupUnderLoad(t, device, config)
		}
	}
}

// move is one regrouping in a test.
type move struct {
	at     olaf.Time // in run time
	to     olaf.ClusterID
	worker olaf.WorkerID
}

func regroupUnderLoad(t *testing.T, device string, config int) {
	t.Helper()
	ctx := context.Background()
	spec := usualSpec()
	spec.Runs = 1
	plan, err := NewPlan(spec)
	must(t, err)
	bed, err := testbed.OpenTestbed(ctx, device, testbed.OpenOptions{Access: backendstest.TestAccess()})
	must(t, err)
	defer bed.Close()
	_, err = plan.Program(ctx, bed)
	must(t, err)

	dev := bed.Cards[0].Device
	generator := pktgen.NewGenerator(dev)
	schedule, err := pktgen.NewSchedule(spec.Workload, plan.Seeds[0])
	must(t, err)
	must(t, generator.Program(ctx, plan.generatorJob(schedule)))
	must(t, fpga.ConfigureQueue(ctx, dev, plan.queueConfig(&plan.Configs[config])))
	seen := bed.Cards[0].Tap.Drain(nil)[:0]
	must(t, fpga.ClearCounters(dev))
	must(t, generator.Arm())
	must(t, generator.Start())

	const step = 20 * olaf.Microsecond
	var moves []move
	for i := 1; ; i++ {
		must(t, dev.Sleep(ctx, step))
		seen = bed.Cards[0].Tap.Drain(seen)
		state, err := generator.State()
		must(t, err)
		if state == pktgen.Done {
			break
		}
		moves = append(moves, regroup(t, bed, move{olaf.Time(i) * olaf.Time(step), olaf.ClusterID(i % spec.Workload.Clusters),
			olaf.WorkerID(5 * i % spec.Workload.Workers)}))
	}
	must(t, fpga.DrainQueue(ctx, dev))
	seen = bed.Cards[0].Tap.Drain(seen)
	counters, err := fpga.Snapshot(dev)
	must(t, err)

	account, err := fpga.NewAccount(system.QueueDeclaration().Ledger)
	must(t, err)
	got := (&Rig{accounts: []*fpga.Account{account}, tables: make([]built, 1)}).Account(&counters, int64(len(seen)))
	if err := got.Check(); err != nil {
		t.Errorf("%s config %d: %v", device, config, err)
	}
	if got.Of("sent") != 13500 || got.Sum("bypassed", "lost_before_engine", "capture_lost", "queued") != 0 {
		t.Errorf("%s config %d: %+v", device, config, got)
	}
	if len(moves) < 10 || got.Of("misidentified") == 0 {
		t.Errorf("%s config %d: %d moves, %d updates under a new identity: no load was regrouped", device, config, len(moves),
			got.Of("misidentified"))
	}
	checkClusters(t, tablesOf(t, plan), moves, seen)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// regroup moves one worker as one batch.
func regroup(t *testing.T, bed *testbed.Testbed, m move) move {
	t.Helper()
	actual, err := bed.Tables.Read(context.Background())
	must(t, err)
	var address netip.Addr
	for _, w := range actual.Workers {
		if w.ID == m.worker {
			address = w.Address
		}
	}
	desired, err := actual.Move(m.to, address)
	must(t, err)
	plan := p4ctl.Diff(actual, desired)
	applied, err := bed.Tables.Apply(context.Background(), plan)
	must(t, err)
	if !plan.Empty() && !applied.Atomic {
		t.Error("the regrouping was not one batch")
	}
	return m
}

// checkClusters compares the cluster of every delivered update with its newest contributor's cluster at the generation.
func checkClusters(t *testing.T, before p4ctl.Tables, moves []move, seen []olaf.Observation) {
	t.Helper()
	home := map[olaf.WorkerID]olaf.ClusterID{}
	for _, w := range before.Workers {
		home[w.ID] = w.Cluster
	}
	wrong := 0
	for i := range seen {
		u := &seen[i].Update
		want := home[u.Worker]
		for _, m := range moves {
			if m.worker == u.Worker && uint64(m.at.NS()) <= u.GenNS {
				want = m.to
			}
		}
		if u.Cluster != want {
			wrong++
		}
	}
	if wrong > 0 || len(seen) == 0 {
		t.Errorf("%d of %d updates counted for a cluster that their worker was not in", wrong, len(seen))
	}
}
