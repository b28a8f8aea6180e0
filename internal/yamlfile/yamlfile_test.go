package yamlfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/olafctl/olaf"
)

type menu struct {
	Pos    `yaml:"-"`
	Name   string         `yaml:"name"`
	Fresh  bool           `yaml:"fresh,omitempty"`
	Seed   uint64         `yaml:"seed"`
	Rate   olaf.Rate      `yaml:"rate"`
	Stock  map[string]int `yaml:"stock"`
	Tags   []string       `yaml:"tags"`
	Dishes []dish         `yaml:"dishes"`
}

type dish struct {
	Pos  `yaml:"-"`
	Name string `yaml:"name"`
}

var menus = Format{Name: "menu", Hint: "write one", Fail: func(line int, what string) error { return fmt.Errorf("%d: %s", line, what) }}

func TestDecode(t *testing.T) {
	text := "name: lunch\nfresh: true\nseed: 18446744073709551615\nrate: 40G\nstock:\n  rice: 3\n  beans: 0\ntags: hot\ndishes:\n  - name: soup\n  - {name: pie}\n"
	var got menu
	if err := menus.Decode([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if got.LineOf("rate") != 4 || got.LineOf("absent") != 1 || got.Dishes[1].LineOf("name") != 11 {
		t.Errorf("lines: rate %d, absent %d, second dish %d", got.LineOf("rate"), got.LineOf("absent"), got.Dishes[1].LineOf("name"))
	}
	if !got.Has("rate") || got.Has("absent") {
		t.Error("what was given is not what Has says")
	}
	got.Pos, got.Dishes[0].Pos, got.Dishes[1].Pos = Pos{}, Pos{}, Pos{}
	want := menu{Name: "lunch", Fresh: true, Seed: 1<<64 - 1, Rate: 40 * olaf.Gbps, Stock: map[string]int{"rice": 3, "beans": 0},
		Tags: []string{"hot"}, Dishes: []dish{{Name: "soup"}, {Name: "pie"}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(menu{}, dish{}, Pos{})); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":          {"", "1: the file is empty; write one"},
		"no YAML":        {"a: [", "2: not YAML: "},
		"no text":        {"name: a\nfresh: \x10\n", "2: not YAML: control characters are not allowed"},
		"two documents":  {"name: a\n---\nname: b\n", "2: a second document begins here; a file has one menu"},
		"strange name":   {"stock: {\"a\\n\\x1bb\": many}\n", `1: menu.stock.a\n\x1bb: "many" is not a whole number`},
		"unknown field":  {"name: a\nsede: 1\n", `2: menu has no field "sede"; did you mean "seed"?`},
		"field twice":    {"stock:\n  a: 1\n  a: 2\n", `3: menu.stock has the field "a" twice`},
		"wrong type":     {"seed: -1\n", `1: menu.seed: "-1" is not a whole number`},
		"wrong item":     {"stock: {a: many}\n", `1: menu.stock.a: "many" is not a whole number`},
		"no unit":        {"rate: 60\n", "did you mean 60G?"},
		"unit in a list": {"rate: [1]\n", "1: menu.rate must be a single value"},
		"no mapping":     {"dishes: [soup]\n", "1: menu.dishes[0] must be a mapping of fields"},
		"no list":        {"dishes: soup\n", "1: menu.dishes must be a list"},
		"alias":          {"tags: &t [a]\ndishes: *t\n", "2: menu.dishes: aliases are not supported"},
	} {
		var m menu
		if err := menus.Decode([]byte(c.text), &m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

func TestDecodeListsMistakesTogether(t *testing.T) {
	var m menu
	err := menus.Decode([]byte("nmae: a\nseed: x\n"+strings.Repeat("dishes: 1\n", 20)), &m)
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != MaxErrors {
		t.Errorf("%v; want %d mistakes", err, MaxErrors)
	}
}

func TestSuggest(t *testing.T) {
	for _, c := range []struct {
		got, want string
		names     []string
	}{
		{"leef2", `; did you mean "leaf2"?`, []string{"core", "leaf1", "leaf2"}},
		{"zzzz", "; there are core, leaf", []string{"core", "leaf"}},
		{"zzzz", "", nil},
	} {
		if s := Suggest(c.got, c.names); s != c.want {
			t.Errorf("Suggest(%q) = %q, want %q", c.got, s, c.want)
		}
	}
}
