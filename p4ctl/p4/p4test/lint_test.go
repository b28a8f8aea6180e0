package p4test

import (
	"bytes"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/olafctl/olaf/fpga/program/programs"
	"github.com/olafctl/olaf/p4ctl/p4"
)

func TestSourcesAndP4InfoAgree(t *testing.T) {
	for _, p := range []p4.Profile{p4.Lab(), p4.Twin()} {
		for _, fault := range Lint(p, p4.Source, p.Info()) {
			t.Errorf("profile %s: %s", p.Name, fault)
		}
	}
}

// TestProgramsKeepToTheirIDs checks that tables of switch programs have separate ids, with the prefixes of their kinds,
// and regular aliases.
func TestProgramsKeepToTheirIDs(t *testing.T) {
	for _, fault := range lintIDs(p4.Twin().Info(programs.AllPrograms()...)) {
		t.Error(fault)
	}
}

// TestLintFindsEveryFault breaks the source or the P4Info in one place and checks that there is exactly one complaint.
func TestLintFindsEveryFault(t *testing.T) {
	edit := func(file, old, new string) func(string) ([]byte, error) {
		return func(name string) ([]byte, error) {
			text, err := p4.Source(name)
			if name == file {
				if !bytes.Contains(text, []byte(old)) {
					t.Fatalf("%s does not contain %q", file, old)
				}
				text = bytes.Replace(text, []byte(old), []byte(new), 1)
			}
			return text, err
		}
	}
	for _, c := range []struct {
		name      string
		source    func(string) ([]byte, error)
		info      func(*configv1.P4Info)
		complaint string
	}{
		{"size", nil, func(i *configv1.P4Info) { i.Tables[1].Size = 7 },
			"table vnp4_1.workers size: the source says 1024, the P4Info 7"},
		{"parameter width", edit("vnp4_1.p4", "@id(2) bit<16> worker_id", "@id(2) bit<12> worker_id"), nil,
			"action vnp4_1.set_worker parameter worker_id: the source says id 2, 12 bits, the P4Info id 2, 16 bits"},
		{"key width through the types", edit("olaf.p4", "bit<32>    worker_address;", "bit<128>   worker_address;"), nil,
			"table vnp4_1.workers key address: the source says id 1, 128 bits, EXACT, the P4Info id 1, 32 bits, EXACT"},
		{"match kind", edit("vnp4_1.p4", "hdr.ipv4.src : exact", "hdr.ipv4.src : lpm"), nil,
			"table vnp4_1.servers: key address is LPM; the agent serves exact keys"},
		{"missing action", edit("vnp4_2.p4", "            set_group;\n", ""), nil,
			"table vnp4_2.cluster_groups action vnp4_2.set_group (offered) is in the P4Info only"},
		{"extra table", nil, func(i *configv1.P4Info) { i.Tables = i.Tables[1:] },
			"table vnp4_1.servers (id 0x02000001, \"Parameter servers by IPv4 source address.\") is in the source only"},
		{"default", edit("vnp4_1.p4", "const default_action = bypass", "default_action = bypass"), nil,
			"table vnp4_1.workers default: the source says vnp4_1.bypass, the P4Info const vnp4_1.bypass"},
		{"id", nil, func(i *configv1.P4Info) { i.Actions[0].Preamble.Id = 0x02000077 },
			"vnp4_1.set_worker: id 0x02000077 lacks prefix 0x01"},
		{"condition in action", edit("vnp4_1.p4", "        meta.from_server = 1;\n",
			"        if (true) { meta.from_server = 1; }\n"), nil,
			"action vnp4_1.set_server has a condition; VNP4 allows none inside actions"},
		{"two lookups", edit("vnp4_1.p4", "            servers.apply();\n",
			"            servers.apply();\n            servers.apply();\n"), nil,
			"table vnp4_1.servers is applied 2 times; VNP4 looks up once"},
		{"broken source", edit("vnp4_2.p4", "key = {", "key = "), nil, "vnp4_2.p4: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			source, info := p4.Source, p4.Lab().Info()
			if c.source != nil {
				source = c.source
			}
			if c.info != nil {
				c.info(info)
			}
			faults := Lint(p4.Lab(), source, info)
			for _, f := range faults {
				if strings.HasPrefix(f, c.complaint) {
					return
				}
			}
			t.Errorf("complaints %q, want %q", faults, c.complaint)
		})
	}
}

// TestReadTakesItsTime checks that parse time grows linearly for any input: names are bounded, and each apply is
// visited once.
func TestReadTakesItsTime(t *testing.T) {
	const declaration = "@id(1)table t{}"
	for name, text := range map[string]string{
		"tables and applies": "control c(){" + strings.Repeat(declaration, 2_000) + "apply{" +
			strings.Repeat("t.apply();", 2_000) + "}}",
		"blocks of applies": "control c(){" + strings.Repeat(declaration+"apply{}", 2_000) + "}",
		"a long control":    "control " + strings.Repeat("c", 30_000) + "(){" + strings.Repeat(declaration, 2_000) + "}",
		"a long table": "struct h{bit<8> y;} control c(in h x){@id(1)table " + strings.Repeat("t", 30_000) +
			"{key={" + strings.Repeat("x.y:b @id(1);", 2_000) + "}}}",
	} {
		work := testing.AllocsPerRun(1, func() {
			if p, err := parseSource(text, buildMacros(p4.Lab())); err == nil {
				p.facts()
				p.lint()
			}
		})
		if most := 12.0 * float64(len(text)); work > most {
			t.Errorf("%s: %.0f allocations for %d bytes", name, work, len(text))
		}
	}
	if _, err := parseSource("control "+strings.Repeat("c", longestName+1)+"(){}",
		buildMacros(p4.Lab())); err == nil || !strings.Contains(err.Error(), "a name of 256 bytes") {
		t.Errorf("%v", err)
	}
	if p, err := parseSource("control "+strings.Repeat("c", longestName)+
		"(){@id(1)table t{} @id(2)table u{} apply{t.apply(); u.apply(); if (x) {t.apply();}}}",
		buildMacros(p4.Lab())); err != nil || p.tables[0].applied != 2 || p.tables[1].applied != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// FuzzRead checks that no text causes a panic.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"olaf.p4", "vnp4_1.p4", "vnp4_2.p4"} {
		text, err := p4.Source(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("control c(inout h x) { @id(1) table t { key = { x.y : exact @id(1); } } }")
	f.Add("header h { bit<")
	f.Add("control(){@id(0)table 0{key={:0")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := parseSource(text, buildMacros(p4.Lab())); err == nil {
			p.facts()
			p.lint()
		}
	})
}
