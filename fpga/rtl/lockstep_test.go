package rtl

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/lockstep"
	"github.com/olafctl/olaf/fpga/twin"
)

// workerTable contains the entries that both cards match.
type workerTable map[netip.Addr]lockstep.Worker

func (t workerTable) Worker(source netip.Addr) (olaf.ClusterID, olaf.WorkerID, bool) {
	w, known := t[source]
	return w.Cluster, w.ID, known
}
func (t workerTable) Server(netip.Addr) bool                       { return false }
func (t workerTable) Group(olaf.ClusterID) ([]olaf.WorkerID, bool) { return nil, false }
func (t workerTable) Version() uint64                              { return 1 }

func workers() workerTable {
	t := workerTable{}
	for _, w := range lockstep.TableWorkers() {
		t[w.Address] = w
	}
	return t
}

// TestLockstep compares the twin and the logic on the same streams, with one read port and with two. LOCKSTEP_SEEDS
// sets the number of streams; 'olafctl device conformance' runs the same comparison.
func TestLockstep(t *testing.T) {
	seeds := 13 // one of each kind
	if testing.Short() {
		seeds = 3
	}
	if n, err := strconv.Atoi(os.Getenv("LOCKSTEP_SEEDS")); err == nil {
		seeds = n
	}
	for ports := 1; ports <= 2; ports++ {
		t.Run(fmt.Sprintf("%d ports", ports), func(t *testing.T) {
			needTools(t)
			logic, err := Open(context.Background(), Config{Build: Build{Ports: ports}, Tables: workers()})
			if err != nil {
				t.Fatal(err)
			}
			defer logic.Close()
			model, err := twin.New(twin.Config{ReadPorts: ports, Tables: workers(), Wire: true, Slots: 64, Clusters: 1024,
				Descriptors: 32768})
			if err != nil {
				t.Fatal(err)
			}
			list := []uint64{20, 84} // these seeds once produced a reset after a shot
			for seed := range uint64(seeds) {
				list = append(list, seed)
			}
			for _, seed := range list {
				d, _, err := lockstep.CompareCards(t.Context(), lockstep.Side{Device: model, Tap: model},
					lockstep.Side{Device: logic, Tap: logic}, seed)
				if err != nil {
					t.Fatal(err)
				}
				if d != nil {
					t.Fatalf("%v", d)
				}
			}
		})
	}
}
