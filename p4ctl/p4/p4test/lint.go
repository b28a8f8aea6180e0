// Package p4test parses the declarations in the sources of package p4 and checks them against the handwritten P4Info.
package p4test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/olafctl/olaf/p4ctl/p4"
)

// Lint checks the sources of a profile against its P4Info. Tables, keys, widths, actions, parameters, IDs and sizes
// must agree. IDs must be unique and have the prefix for their kind. The sources must use only features that VNP4
// supports: no conditions inside actions, and one lookup per table. Lint returns one line per fault, in a fixed order.
func Lint(p p4.Profile, text func(name string) ([]byte, error), info *configv1.P4Info) []string {
	said := make(map[string]string)
	var faults []string
	for _, block := range p4.Blocks() {
		shared, err := text("olaf.p4")
		if err != nil {
			return []string{err.Error()}
		}
		own, err := text(block + ".p4")
		if err != nil {
			return []string{err.Error()}
		}
		source, err := parseSource(string(shared)+string(own), buildMacros(p))
		if err != nil {
			return []string{block + ".p4: " + err.Error()}
		}
		faults = append(faults, source.lint()...)
		maps.Copy(said, source.facts())
	}
	faults = append(faults, lintIDs(info)...)
	return append(faults, compareFacts(said, listFacts(info))...)
}

// buildMacros returns the macros that a build of the profile defines.
func buildMacros(p p4.Profile) map[string]string {
	return map[string]string{"WORKERS": strconv.Itoa(p.Workers), "SERVERS": strconv.Itoa(p.Servers),
		"CLUSTERS": strconv.Itoa(p.Clusters)}
}

// lint checks rules that concern only the source and not the P4Info.
func (p *program) lint() (faults []string) {
	for _, t := range p.tables {
		if t.applied != 1 {
			faults = append(faults, fmt.Sprintf("table %s is applied %d times; VNP4 looks up once", t.name, t.applied))
		}
		for _, k := range t.keys {
			if k.match != "EXACT" {
				faults = append(faults, fmt.Sprintf("table %s: key %s is %s; the agent serves exact keys", t.name, k.name, k.match))
			}
		}
		for _, a := range t.actions {
			if p.actions[a.name] == nil {
				faults = append(faults, fmt.Sprintf("table %s offers %s, which is not declared", t.name, a.name))
			}
		}
	}
	for _, name := range p.order {
		if p.actions[name].conditional {
			faults = append(faults, fmt.Sprintf("action %s has a condition; VNP4 allows none inside actions", name))
		}
	}
	return faults
}

// facts returns the declarations in the source, in the same form as listFacts.
func (p *program) facts() map[string]string {
	f := make(map[string]string)
	for _, t := range p.tables {
		at := "table " + t.name
		f[at] = fmt.Sprintf("id 0x%08x, %q", t.id, t.brief)
		f[at+" size"] = strconv.FormatInt(t.size, 10)
		f[at+" default"] = t.defaultName
		if t.constant {
			f[at+" default"] = "const " + t.defaultName
		}
		for _, k := range t.keys {
			f[at+" key "+k.name] = keyFact(k.id, k.bits, k.match)
		}
		for _, a := range t.actions {
			f[at+" action "+a.name] = scopeFact(a.defaultOnly)
		}
	}
	for name, a := range p.actions {
		at := "action " + name
		f[at] = fmt.Sprintf("id 0x%08x, %q", a.id, a.brief)
		for _, q := range a.params {
			f[at+" parameter "+q.name] = paramFact(q.id, q.bits, q.annotations)
		}
	}
	return f
}

// listFacts returns the declarations in the P4Info, by place.
func listFacts(info *configv1.P4Info) map[string]string {
	f := make(map[string]string)
	names := make(map[uint32]string)
	for _, a := range info.GetActions() {
		names[a.GetPreamble().GetId()] = a.GetPreamble().GetName()
		at := "action " + a.GetPreamble().GetName()
		f[at] = fmt.Sprintf("id 0x%08x, %q", a.GetPreamble().GetId(), a.GetPreamble().GetDoc().GetBrief())
		for _, q := range a.GetParams() {
			f[at+" parameter "+q.GetName()] = paramFact(q.GetId(), q.GetBitwidth(), q.GetAnnotations())
		}
	}
	for _, t := range info.GetTables() {
		at := "table " + t.GetPreamble().GetName()
		f[at] = fmt.Sprintf("id 0x%08x, %q", t.GetPreamble().GetId(), t.GetPreamble().GetDoc().GetBrief())
		f[at+" size"] = strconv.FormatInt(t.GetSize(), 10)
		f[at+" default"] = names[t.GetInitialDefaultAction().GetActionId()]
		if t.GetConstDefaultActionId() != 0 {
			f[at+" default"] = "const " + names[t.GetConstDefaultActionId()]
		}
		for _, k := range t.GetMatchFields() {
			f[at+" key "+k.GetName()] = keyFact(k.GetId(), k.GetBitwidth(), k.GetMatchType().String())
		}
		for _, a := range t.GetActionRefs() {
			f[at+" action "+names[a.GetId()]] = scopeFact(a.GetScope() == configv1.ActionRef_DEFAULT_ONLY)
		}
	}
	return f
}

func keyFact(id uint32, bits int32, match string) string {
	return fmt.Sprintf("id %d, %d bits, %s", id, bits, match)
}

func paramFact(id uint32, bits int32, annotations []string) string {
	return strings.TrimSpace(fmt.Sprintf("id %d, %d bits %s", id, bits, strings.Join(annotations, " ")))
}

func scopeFact(defaultOnly bool) string {
	if defaultOnly {
		return "default only"
	}
	return "offered"
}

func compareFacts(source, info map[string]string) (faults []string) {
	all := maps.Clone(source)
	maps.Copy(all, info)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		s, inSource := source[what]
		i, inInfo := info[what]
		switch {
		case !inSource:
			faults = append(faults, fmt.Sprintf("%s (%s) is in the P4Info only", what, i))
		case !inInfo:
			faults = append(faults, fmt.Sprintf("%s (%s) is in the source only", what, s))
		case s != i:
			faults = append(faults, fmt.Sprintf("%s: the source says %s, the P4Info %s", what, s, i))
		}
	}
	return faults
}

// lintIDs checks that IDs are unique and have the right prefix, and that each alias is the last part of its name.
func lintIDs(info *configv1.P4Info) (faults []string) {
	seen := make(map[uint32]string)
	check := func(p *configv1.Preamble, prefix configv1.P4Ids_Prefix) {
		if got := p.GetId() >> 24; got != uint32(prefix) {
			faults = append(faults, fmt.Sprintf("%s: id 0x%08x lacks prefix 0x%02x", p.GetName(), p.GetId(), int32(prefix)))
		}
		if other, twice := seen[p.GetId()]; twice {
			faults = append(faults, fmt.Sprintf("%s and %s have the same id 0x%08x", other, p.GetName(), p.GetId()))
		}
		seen[p.GetId()] = p.GetName()
		if last := p.GetName()[strings.LastIndexByte(p.GetName(), '.')+1:]; p.GetAlias() != last {
			faults = append(faults, fmt.Sprintf("%s has alias %q, want %q", p.GetName(), p.GetAlias(), last))
		}
	}
	for _, t := range info.GetTables() {
		check(t.GetPreamble(), configv1.P4Ids_TABLE)
	}
	for _, a := range info.GetActions() {
		check(a.GetPreamble(), configv1.P4Ids_ACTION)
	}
	return faults
}
