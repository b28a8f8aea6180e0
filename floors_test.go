package olaf_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/olafctl/olaf"

// rooms lists every package folder with its floor, most specific folder first. Imports go down only, and folders on one
// floor do not import each other (docs/reference/architecture.md, Floors).
var rooms = []struct {
	folder string
	floor  int
}{
	{"internal/yamlfile", 1}, {"internal", 0}, {"fpga/adder", 0}, {"clients", 0},
	{"fpga/regmap/gen", 2}, {"fpga/regmap", 1}, {"fpga/engine", 1}, {"fpga/program", 1}, {"results", 1},
	{"fpga", 2}, {"p4ctl", 2}, {"pktgen", 2}, {"capture", 2},
	{"experiments/system", 3}, {"experiments/netsim/tc", 3},
	{"experiments/sweep/grid", 3},
	{"experiments/bench/job", 6}, {"experiments/sched/play", 6},
	{"experiments/bench/slowmotion", 7}, {"experiments/rl/onwire", 8}, {"experiments/sweep/cells", 9}, // before the folders that contain them
	{"experiments/netsim", 4}, {"experiments/rl", 4}, {"experiments/aomcheck", 4}, {"experiments/sched", 4}, {"experiments/testbed", 4},
	{"backends", 5},
	{"experiments/bench", 6}, {"experiments/sweep", 7}, {"experiments", 7},
	{"experiments/paper", 8},
	{"tui", 9},
	{"cmd", 10}, {"docs", 10},
	{"", 0},
}

// unlisted contains the folders of which only some subfolders have a floor, so that new subfolders must be listed.
var unlisted = map[string]bool{"": true, "experiments": true}

// roomOf returns the room of a folder; listed is false below a room whose subfolders must all be listed. Every paper is
// a separate room.
func roomOf(folder string) (name string, floor int, listed bool) {
	if system, ok := strings.CutPrefix(folder, "experiments/paper/"); ok {
		system, _, _ = strings.Cut(system, "/")
		return "experiments/paper/" + system, roomFloor("experiments/paper"), true
	}
	for _, r := range rooms {
		if folder == r.folder || r.folder == "" || strings.HasPrefix(folder, r.folder+"/") {
			return r.folder, r.floor, folder == r.folder || !unlisted[r.folder]
		}
	}
	return "", 0, false
}

func roomFloor(folder string) int {
	for _, r := range rooms {
		if r.folder == folder {
			return r.floor
		}
	}
	return -1
}

// TestImportsGoDown checks every Go file's imports, including tests.
func TestImportsGoDown(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") {
			return err
		}
		files++
		folder := filepath.ToSlash(filepath.Dir(p))
		if folder == "." {
			folder = ""
		}
		checkFile(t, p, folder)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 5 {
		t.Fatalf("only %d Go files found: the walk is broken", files)
	}
}

func checkFile(t *testing.T, file, folder string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	name, floor, listed := roomOf(folder)
	if !listed {
		t.Errorf("%s is in no room: list %s with its floor", file, folder)
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || (imported != module && !strings.HasPrefix(imported, module+"/")) {
			continue
		}
		target := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
		toName, toFloor, _ := roomOf(target)
		switch {
		case toFloor > floor:
			t.Errorf("%s: %s imports %s, which is a floor above", file, path.Join(folder), imported)
		case toFloor == floor && toName != name:
			t.Errorf("%s: %s and %s are rooms on one floor and must not know each other", file, name, toName)
		}
	}
}
