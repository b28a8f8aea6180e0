package xdp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/olafctl/olaf"
)

// ErrFeature is the error for a kernel without a feature that the programs need.
var ErrFeature = olaf.NewError(olaf.Device, "the kernel lacks")

// Kernel probes a kernel for features. Each method returns nil if the feature is supported, an error that matches
// ebpf.ErrNotSupported if it is missing, and another error if this cannot be determined.
type Kernel interface {
	ProgramType(ebpf.ProgramType) error
	MapType(ebpf.MapType) error
	Helper(ebpf.ProgramType, asm.BuiltinFunc) error
	BTF() error
}

// RunningKernel returns the kernel on which this process runs. Probing it requires the rights to load programs.
func RunningKernel() Kernel { return running{} }

type running struct{}

func (running) ProgramType(t ebpf.ProgramType) error { return features.HaveProgramType(t) }

func (running) MapType(t ebpf.MapType) error { return features.HaveMapType(t) }

func (running) Helper(t ebpf.ProgramType, f asm.BuiltinFunc) error {
	return features.HaveProgramHelper(t, f)
}

func (running) BTF() error {
	b, err := btf.NewBuilder([]btf.Type{&btf.Int{Name: "u32", Size: 4}}, nil)
	if err != nil {
		return err
	}
	h, err := btf.NewHandle(b)
	if err != nil {
		return err
	}
	return h.Close()
}

// Feature is a kernel feature that the programs need and that not every kernel has.
type Feature struct {
	Name, Use string
	Since     string // first Linux version
}

// Remedy returns advice for users whose kernel lacks the feature.
func (f *Feature) Remedy() string {
	return fmt.Sprintf("run Linux %s or newer with CONFIG_BPF_SYSCALL", f.Since)
}

// Features that the programs need, by their numbers in the kernel.
var (
	typesOfMaps = Feature{"BTF", "to find locks in maps", "4.18"}
	xdpPrograms = Feature{"XDP programs", "to process frames before the network stack", "4.8"}

	mapFeatures = map[ebpf.MapType]Feature{
		ebpf.Array:       {"array maps", "to store slots", "3.19"},
		ebpf.PerCPUArray: {"arrays for each processor", "to count", "4.6"},
		ebpf.ArrayOfMaps: {"maps of maps", "to replace the table of senders atomically", "4.12"},
		ebpf.DevMap:      {"maps of interfaces", "to send frames on", "4.14"},
		ebpf.Queue:       {"queues", "to announce groups to check", "4.20"},
		ebpf.RingBuf:     {"ring buffers", "to log decisions", "5.8"},
	}

	helperFeatures = map[asm.BuiltinFunc]Feature{
		asm.FnMapLookupElem: {"bpf_map_lookup_elem", "to read maps", "3.18"},
		asm.FnKtimeGetNs:    {"bpf_ktime_get_ns", "to time decisions", "4.1"},
		asm.FnRedirectMap:   {"bpf_redirect_map", "to send frames on", "4.14"},
		asm.FnMapPushElem:   {"bpf_map_push_elem", "to announce groups to check", "4.20"},
		asm.FnSpinLock:      {"bpf_spin_lock", "to decide about one frame at a time", "5.1"},
		asm.FnSpinUnlock:    {"bpf_spin_unlock", "to decide about one frame at a time", "5.1"},
		asm.FnRingbufOutput: {"bpf_ringbuf_output", "to log decisions", "5.8"},
		asm.FnLoop:          {"bpf_loop", "to wait at places that a test selects", "5.17"},
		asm.FnXdpGetBuffLen: {"bpf_xdp_get_buff_len", "to recognise frames in several pieces", "5.18"},
	}
)

// FindMissingFeatures returns the features that any of our programs needs and that the kernel lacks. The list is empty
// if the kernel cannot be probed.
func FindMissingFeatures(k Kernel) (missing []Feature, err error) {
	all := ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{}, Programs: map[string]*ebpf.ProgramSpec{}}
	for _, load := range []func() (*ebpf.CollectionSpec, error){loadFifo, loadOlaf, loadXagg} {
		spec, err := load()
		if err != nil {
			return nil, fmt.Errorf("xdp: %w", err)
		}
		for name, m := range spec.Maps {
			all.Maps[fmt.Sprint(len(all.Maps), name)] = m
		}
		for name, p := range spec.Programs {
			all.Programs[fmt.Sprint(len(all.Programs), name)] = p
		}
	}
	return listMissing(k, &all), nil
}

// checkFeatures returns an error for each feature that spec needs and the kernel lacks. The errors match ErrFeature.
func checkFeatures(k Kernel, spec *ebpf.CollectionSpec) error {
	var errs []error
	for _, f := range listMissing(k, spec) {
		errs = append(errs, fmt.Errorf("%w %s, needed %s; %s", ErrFeature, f.Name, f.Use, f.Remedy()))
	}
	return olaf.ListErrors(errs)
}

func listMissing(k Kernel, spec *ebpf.CollectionSpec) (missing []Feature) {
	ask := func(f Feature, err error) {
		if errors.Is(err, ebpf.ErrNotSupported) {
			missing = append(missing, f)
		}
	}
	ask(typesOfMaps, k.BTF())
	ask(xdpPrograms, k.ProgramType(ebpf.XDP))
	kinds, helpers := listUses(spec)
	for _, t := range kinds {
		ask(mapFeatures[t], k.MapType(t))
	}
	for _, f := range helpers {
		ask(helperFeatures[f], k.Helper(ebpf.XDP, f))
	}
	return missing
}

// listUses returns the map types and helper functions that an object uses, each of them once.
func listUses(spec *ebpf.CollectionSpec) ([]ebpf.MapType, []asm.BuiltinFunc) {
	kinds, helpers := map[ebpf.MapType]bool{}, map[asm.BuiltinFunc]bool{}
	for _, m := range spec.Maps {
		kinds[m.Type] = true
	}
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			if call := &p.Instructions[i]; call.IsBuiltinCall() {
				helpers[asm.BuiltinFunc(call.Constant)] = true
			}
		}
	}
	return sortedKeys(kinds), sortedKeys(helpers)
}

func sortedKeys[K cmp.Ordered](set map[K]bool) []K { return slices.Sorted(maps.Keys(set)) }
