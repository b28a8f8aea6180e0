package vector

import (
	"errors"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/fpga/program"
)

// mirror sends back every packet. It is the smallest possible program.
type mirror struct{ seen uint64 }

func (m *mirror) Receive(_ olaf.Time, from program.Port, p *program.Packet, lanes []uint32, out program.Out) program.Class {
	m.seen++
	if p.Kind == program.Control {
		out.Emit(program.Others, p, nil)
		return 0
	}
	out.Emit(program.Dest(from), p, lanes)
	return 0
}
func (*mirror) Configure(program.Job) error { return nil }
func (*mirror) Remove(olaf.ClusterID)       {}
func (*mirror) Slots() int                  { return 1 }
func (*mirror) Slot(int) program.Slot       { return program.Slot{} }
func (*mirror) CountOccupied() int          { return 0 }
func (*mirror) Memory() olaf.Size           { return 0 }
func (m *mirror) Counts() []uint64          { return []uint64{m.seen, 0} }
func (m *mirror) Reset()                    { m.seen = 0 }

var described = []program.Description{{
	Name: "mirror", Arithmetic: program.Saturating, Classes: 2, Actions: map[string]uint8{"shout": 7},
	Ledger: &olaf.Ledger{Counters: []olaf.Counter{{Name: "answered"}, {Name: "dropped"}}},
	New:    func(program.Config) (program.Program, error) { return &mirror{}, nil },
}}

func play(text string) error {
	v, err := ParseVector(strings.NewReader(text))
	if err != nil {
		return err
	}
	s, err := v.Build(described)
	if err != nil {
		return err
	}
	return PlayVector(v, s)
}

func TestPlay(t *testing.T) {
	for _, c := range []struct {
		name, text, want string // want: part of the error; empty if there is none
	}{
		{"as written", "program mirror\nin 0 port=1 seg=5 data=1,-2 => answered\nout 0 to=port:1 seg=5 lanes=2 data=1,-2\nstat answered 1\nend\n", ""},
		{"outs need not be listed", "program mirror\nin 0 port=1 data=1 => answered\nend\n", ""},
		{"multicast as one line", "program mirror workers=3\ncontrol 0 port=1 action=shout\nout 0 to=others action=7\nend\n", ""},
		{"multicast by port", "program mirror workers=3\ncontrol 0 port=1 action=shout\nout 0 to=port:0\nout 0 to=port:2 action=shout\nend\n", ""},
		{"class", "program mirror\nin 0 port=0 => dropped\nend\n", "line 2: class: expected dropped, got answered"},
		{"data", "program mirror\nin 0 port=0 data=1\nout 0 to=port:0 data=2\nend\n", "line 3: data: expected 2, got 1"},
		{"length", "program mirror\nin 0 port=0 data=1\nout 0 to=port:0 data=1,1\nend\n", "line 3: data: expected 1,1, got 1"},
		{"field", "program mirror\nin 0 port=0 seg=3\nout 0 to=port:0 seg=4\nend\n", "line 3: seg: expected 4, got 3"},
		{"destination", "program mirror\nin 0 port=0\nout 0 to=up\nend\n", "line 3: to: expected up, got port:0"},
		{"too few leave", "program mirror\nin 0 port=0\nout 0 to=port:0\nout 0 to=port:0\nend\n",
			"line 4: what leaves: expected to=port:0, got nothing more"},
		{"too many leave", "program mirror\nin 0 port=0\nin 1 port=1\nout 1 to=port:1\nend\n",
			"line 2: what leaves: expected nothing more, got to=port:0"},
		{"half a multicast", "program mirror workers=3\ncontrol 0 port=1 action=shout\nout 0 to=port:0\nend\n", "got to=port:2"},
		{"stat", "program mirror\nin 0 port=0\nstat answered 2\nend\n", "line 3: answered: expected 2, got 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := play(c.text)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if kind, _ := olaf.KindOf(err); kind != olaf.Missed {
				t.Errorf("kind %v", kind)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "no line names the program",
		"in 0 port=0\nend\n":                 `line 1: "in" before the program line`,
		"program mirror\n":                   `the text stops before "end"`,
		"program mirror\nend\nin 0 port=0\n": `line 3: "in" after "end"`,
		"program nobody\nend\n":              `unknown program "nobody"; there are mirror`,
		"program mirror hue=3\nend\n":        `unknown option "hue"`,
		"program mirror workers=0\nend\n":    "workers=0 is not a number from 1",
		"program mirror\nin 5 port=0\nin 4 port=0\nend\n": "line 3: cycle 4 comes after cycle 5",
		"program mirror\nin x port=0\nend\n":              `cycle "x" is not a number`,
		"program mirror\nin 0 port=0 port=1\nend\n":       "port stands twice",
		"program mirror\nin 0 seg\nend\n":                 `"seg" is not name=value`,
		"program mirror\nin 0 seg=-1\nend\n":              "seg=-1 is not a number of 64 bits",
		"program mirror\nin 0 data=1 lanes=2\nend\n":      "1 words of data for 2 lanes",
		"program mirror\nin 0 data=9999999999\nend\n":     `lane "9999999999" is not an int32`,
		"program mirror\nin 0 flags=blue\nend\n":          `unknown flag "blue"`,
		"program mirror\nout 0 to=up\nend\n":              "nothing came in that could leave",
		"program mirror\nin 0 port=0\nout 0 seg=1\nend\n": "an out line says where to",
		"program mirror\ncontrol 0 action=sing\nend\n":    `mirror has no action "sing"`,
		"program mirror\nslot 4 count=1\nend\n":           "slot 4 of 1",
		"program mirror\nslot 0 hue=1\nend\n":             "hue=1 says nothing of a slot",
		"program mirror\nstat lost 1\nend\n":              `mirror counts no "lost"`,
		"program mirror\nfly\nend\n":                      `unknown word "fly"`,
		"program mirror\nin 0 port=0 => eaten\nend\n":     `line 2: of mirror no packet becomes "eaten", but answered, dropped`,
	} {
		if err := play(text); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("program mirror workers=3\n# about\nin 0 port=1 seg=5 flags=resend+ecn data=0x1p+1 => answered\nout 0 to=port:1 data=1\ncontrol 1 action=shout\nslot 0 held=0\nstat answered 1\nend\n")
	f.Fuzz(func(t *testing.T, text string) {
		if err := play(text); err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, ErrDiffers) {
			t.Fatal(err)
		}
	})
}
