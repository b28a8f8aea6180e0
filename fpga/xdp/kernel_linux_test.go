package xdp

import (
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/olafctl/olaf/fpga/dataplane"
	"github.com/olafctl/olaf/fpga/netlab"
)

// older is a kernel that lacks some features. If unsure is set, it is not known whether it has them.
type older struct {
	lacks  map[any]bool
	unsure bool
}

func (k older) of(what any) error {
	switch {
	case k.unsure:
		return errors.New("nobody knows")
	case k.lacks[what]:
		return ebpf.ErrNotSupported
	}
	return nil
}

func (k older) ProgramType(t ebpf.ProgramType) error               { return k.of(t) }
func (k older) MapType(t ebpf.MapType) error                       { return k.of(t) }
func (k older) Helper(_ ebpf.ProgramType, f asm.BuiltinFunc) error { return k.of(f) }
func (k older) BTF() error                                         { return k.of("BTF") }

// loaders load each object for a kernel, with a log.
var loaders = map[string]struct {
	spec func() (*ebpf.CollectionSpec, error)
	load func(Kernel) error
}{
	"fifo": {loadFifo, func(k Kernel) error { return probeQueue("fifo", k) }},
	"olaf": {loadOlaf, func(k Kernel) error { return probeQueue("olaf", k) }},
	"xagg": {loadXagg, func(k Kernel) error {
		a, err := LoadAggregator(AggregatorBuild{Fragments: 1, Lanes: 8, Senders: 2, LogBytes: 1 << 16, Kernel: k})
		if err == nil {
			err = a.Close()
		}
		return err
	}},
}

func probeQueue(discipline string, k Kernel) error {
	q, err := loadQueue(k, discipline, dataplane.Build{Slots: 2, Clusters: 2, Lanes: 8, FrameLanes: 8, Senders: 2, LogBytes: 1 << 16})
	if err == nil {
		err = q.Close()
	}
	return err
}

// TestFeatures simulates kernels without each feature that an object needs, and one without all of them. It checks that
// nothing is loaded, and that one line per feature reports what is missing, why it is needed, and advice. If nothing is
// known, the running kernel decides.
func TestFeatures(t *testing.T) {
	if err := netlab.CheckRights(LoadRights...); err != nil {
		t.Skip(err)
	}
	for name, object := range loaders {
		t.Run(name, func(t *testing.T) {
			spec, err := object.spec()
			if err != nil {
				t.Fatal(err)
			}
			needs := map[any]Feature{"BTF": typesOfMaps, ebpf.XDP: xdpPrograms}
			maps, helpers := listUses(spec)
			for _, m := range maps {
				needs[m] = mapFeatures[m]
			}
			for _, f := range helpers {
				needs[f] = helperFeatures[f]
			}
			all := map[any]bool{}
			for what, f := range needs {
				if f.Name == "" {
					t.Errorf("no use is given for %v", what)
					continue
				}
				all[what] = true
				err := object.load(older{lacks: map[any]bool{what: true}})
				want := "the kernel lacks " + f.Name + ", needed " + f.Use + "; run Linux " + f.Since + " or newer"
				if !errors.Is(err, ErrFeature) || errors.Is(err, ErrKernel) || !strings.HasPrefix(err.Error(), want) ||
					strings.Contains(err.Error(), "\n") {
					t.Errorf("without %v: %v; want %q", what, err, want)
				}
			}
			if err := object.load(older{lacks: all}); err == nil || strings.Count(err.Error(), "\n") != len(all)-1 {
				t.Errorf("%d things are missing:\n%v", len(all), err)
			}
			for _, k := range []Kernel{older{unsure: true}, older{}, RunningKernel(), nil} {
				if err := object.load(k); err != nil {
					t.Errorf("%+v: %v", k, err)
				}
			}
		})
	}
}

// TestFeaturesAreProbedOnce checks that each feature that any of the programs needs is probed once.
func TestFeaturesAreProbedOnce(t *testing.T) {
	if got, err := FindMissingFeatures(older{}); len(got) > 0 || err != nil {
		t.Error(got, err)
	}
	got, err := FindMissingFeatures(older{lacks: map[any]bool{ebpf.RingBuf: true, ebpf.Queue: true, asm.FnLoop: true}})
	if err != nil || len(got) != 3 || got[0] != mapFeatures[ebpf.Queue] || got[1] != mapFeatures[ebpf.RingBuf] ||
		got[2] != helperFeatures[asm.FnLoop] {
		t.Error(got, err)
	}
}
