package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/job"
	"github.com/olafctl/olaf/experiments/paper/iswitch"
	"github.com/olafctl/olaf/experiments/paper/xagg"
	"github.com/olafctl/olaf/experiments/system"
)

// jobPreset is a preset network of closed-loop workers.
type jobPreset struct {
	name   string
	about  string
	system string            // default system
	model  string            // default model; empty if the preset has its own
	refuse map[string]string // flags that do not apply to this preset, with the reason
	takes  []string          // flags that apply only to this preset
	// headline lists a sweep's default metrics; empty for the command's defaults.
	headline []string
	// prepare sets defaults of flags that are not given.
	prepare func(cmd *cobra.Command, f *jobFlags) error
	// build builds a system's network and job, apart from the parts that all presets share.
	build func(f *jobFlags, spec *job.Spec) error
	// title and basis head the report; states returns an additional statement about a system.
	title  func(f *jobFlags) string
	basis  func(f *jobFlags) string
	states func(f *jobFlags, s *system.System) string
	// printed returns the numbers that a paper printed about job number at, or nil if there are none.
	printed func(f *jobFlags, spec *job.Spec, at int) []job.Printed
}

// freeHosts is the reason why --wire-only does not apply to a preset.
const freeHosts = "its hosts cost no time"

// jobPresets returns all presets in which jobs can run.
func jobPresets() []jobPreset {
	return []jobPreset{{
		name: "isw-lab", about: "iSwitch's laboratory: a training's workers wait for gradients that a switch adds up",
		system: "iswitch", model: "dqn", prepare: checkLab, build: (*jobFlags).buildLab,
		title: (*jobFlags).labTitle, basis: (*jobFlags).labBasis, states: (*jobFlags).labStates,
		printed: (*jobFlags).labPrinted,
	}, {
		name: "xagg-fig1", about: "XAgg's Fig. 1: four workers, one behind a slow link, one ready late", system: "xagg",
		prepare: onceByDefault, build: (*jobFlags).buildFig1,
		refuse: map[string]string{"workers": "the figure has four", "model": "the figure's vectors take 1 s at 10 Gbps",
			"wire-only": freeHosts},
		title: func(*jobFlags) string {
			return "4 workers, 10 Gbps, W2 5 Gbps, W3 ready 2 s after the others, vectors of 1 s at 10 Gbps (XAgg, " +
				"Fig. 1)"
		},
		basis: func(*jobFlags) string {
			return "Basis: predicted: wires and what is in the frames; nothing is fitted. The figure is about \"Sum " +
				"at the root\"."
		},
	}, {
		name: "xagg-testbed", about: "XAgg's testbed of Fig. 12: seven workers at 40 and 100 Gbps", system: "xagg",
		model: "resnet50", prepare: onceByDefault, build: (*jobFlags).buildTestbed,
		refuse: map[string]string{"workers": "the testbed has seven", "wire-only": freeHosts},
		title: func(f *jobFlags) string {
			return fmt.Sprintf("%s gradients, 7 workers of 40 and 100 Gbps (XAgg, Fig. 12)", f.model)
		},
		basis: func(*jobFlags) string {
			return "Basis: predicted: wires alone. Hosts, servers and computing cost nothing, as what they take is " +
				"not published."
		},
	}}
}

func JobPresetNames() []string {
	return olaf.Map(jobPresets(), func(p jobPreset) string { return p.name })
}

// findJobPreset returns the named preset, or nil if there is none.
func findJobPreset(name string) *jobPreset {
	all := jobPresets()
	if i := slices.IndexFunc(all, func(p jobPreset) bool { return p.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// onceByDefault sets the default number of updates to one, because the vectors in these presets take seconds.
func onceByDefault(cmd *cobra.Command, f *jobFlags) error {
	if !cmd.Flags().Changed("updates") {
		f.updates = 1
	}
	f.workers, f.wireOnly = 0, true
	if f.model != "" {
		_, err := xagg.FindModel(f.model)
		return err
	}
	return nil
}

func checkLab(_ *cobra.Command, f *jobFlags) error {
	_, err := iswitch.FindModel(f.model)
	return err
}

func (f *jobFlags) buildLab(spec *job.Spec) error {
	model, err := iswitch.FindModel(f.model)
	if err != nil {
		return err
	}
	spec.Network, spec.Job = iswitch.Lab(spec.System, spec.Mode, model, f.workers, f.wireOnly, &spec.Options)
	return nil
}

func (f *jobFlags) labTitle() string {
	where := "on one switch"
	if f.workers > iswitch.LabWorkers {
		where = fmt.Sprintf("in racks of %d", iswitch.LabRack)
	}
	return fmt.Sprintf("%s gradients, %d workers %s, 10 Gbps", strings.ToUpper(f.model), f.workers, where)
}

func (f *jobFlags) labBasis() string {
	model, err := iswitch.FindModel(f.model)
	if err != nil {
		return ""
	}
	return model.Basis(f.wireOnly)
}

func (f *jobFlags) labPrinted(spec *job.Spec, at int) []job.Printed {
	model, err := iswitch.FindModel(f.model)
	if err != nil {
		return nil
	}
	return iswitch.Printed(model, spec, at)
}

func (f *jobFlags) labStates(s *system.System) string {
	if f.wireOnly || iswitch.IsFitted(s.Name) {
		return ""
	}
	return s.Title + "'s hosts are taken to pay what iSwitch's pay for a message: no paper has it on this cluster"
}

func (f *jobFlags) buildFig1(spec *job.Spec) error {
	parts, err := largestPackets(spec)
	if err == nil {
		spec.Network, spec.Job = xagg.Fig1(spec.System, &parts, 1)
	}
	return err
}

func (f *jobFlags) buildTestbed(spec *job.Spec) error {
	model, err := xagg.FindModel(f.model)
	if err != nil {
		return err
	}
	if _, err = largestPackets(spec); err == nil {
		spec.Network, spec.Job = xagg.BuildTestbed(spec.System, model)
	}
	return err
}

// largestPackets sets the packet size to 1,024 bytes of values, as in XAgg, for systems whose packet size can be
// chosen, unless --packet is given.
func largestPackets(spec *job.Spec) (system.Parts, error) {
	if slices.Contains(spec.Mode.Takes, system.OptionPacket) && spec.Options.Packet == 0 {
		spec.Options.Packet = olaf.Size(xagg.PacketBytes)
	}
	return spec.Mode.Parts(&spec.Options)
}
