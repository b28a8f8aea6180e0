package runs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/experiments/bench"
	"github.com/olafctl/olaf/experiments/sweep"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/text"
)

// listedRun is a stored run in a list, with the properties that distinguish it from other runs.
type listedRun struct {
	store.Entry
	Differs string `json:"differs"` // from the command's defaults
	Found   string `json:"found"`   // its headline numbers
}

func listRuns(env *cli.Env, s *store.Store, out cli.Format) error {
	entries, err := s.List()
	if err != nil {
		return err
	}
	runs := make([]listedRun, len(entries))
	for i, e := range entries {
		runs[i] = listedRun{Entry: e}
		if e.State == store.Complete {
			runs[i].Differs, runs[i].Found = lookInto(env, s, &e)
		}
	}
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, struct {
			cli.Head
			Runs []listedRun `json:"runs"`
		}{cli.List("runs"), runs})
	}
	if len(entries) == 0 {
		fmt.Fprintf(env.Stderr, "no runs in %s yet; olafctl bench makes one\n", s.Dir())
	}
	if err := remarkAbandoned(env, s); err != nil {
		return err
	}
	return runsGrid(env, runs, out).Write(env, out)
}

func runsGrid(env *cli.Env, runs []listedRun, out cli.Format) *cli.Grid {
	list := &cli.Grid{Header: []string{"ID", "AGE", "DIFFERS IN", "FOUND"}, Uncut: 2}
	if out == cli.CSV {
		list.Header = []string{"ID", "EXPERIMENT", "DEVICE", "STARTED", "STATE", "VALID", "DIFFERS", "FOUND", "NOTE"}
	}
	if out != cli.CSV {
		runs = rankOptions(runs)
	}
	for i := range runs {
		r := &runs[i]
		if out == cli.CSV {
			list.Add(r.ID, r.Experiment, r.Device, cli.ToSecond(r.Started), string(r.State), validity(&r.Entry),
				r.Differs, r.Found, r.Note)
			continue
		}
		list.Add(r.ID, ageOf(r.Started, env.Now()), r.description(), r.outcome())
	}
	return list
}

// rankOptions returns the runs with their options sorted. Options that are rare within the experiment come first,
// because a narrow page cuts off the end.
func rankOptions(runs []listedRun) []listedRun {
	having := map[[2]string]int{}
	for i := range runs {
		for _, option := range splitOptions(runs[i].Differs) {
			having[[2]string{runs[i].Experiment, option}]++
		}
	}
	ranked := slices.Clone(runs)
	for i := range ranked {
		r := &ranked[i]
		options := splitOptions(r.Differs)
		slices.SortStableFunc(options, func(a, b string) int {
			return cmp.Compare(having[[2]string{r.Experiment, a}], having[[2]string{r.Experiment, b}])
		})
		r.Differs = strings.Join(options, " ")
	}
	return ranked
}

// splitOptions splits a list of options at the spaces. A flag includes all words up to the next flag.
func splitOptions(differs string) (options []string) {
	for _, word := range strings.Fields(differs) {
		if last := len(options) - 1; last >= 0 && strings.HasPrefix(options[last], "-") && !strings.HasPrefix(word, "-") {
			options[last] += " " + word
			continue
		}
		options = append(options, word)
	}
	return options
}

// description returns the text by which the user recognises the run: the note, which a narrow page cuts off last, and
// the options that differ from the defaults.
func (r *listedRun) description() string {
	switch {
	case r.Note == "":
		return cmp.Or(r.Differs, text.Missing)
	case r.Differs == "":
		return r.Note
	}
	return r.Note + " · " + r.Differs
}

// outcome returns the run's findings, with a warning in front if the run is not valid and complete.
func (r *listedRun) outcome() string {
	warning := map[string]string{"no": "INVALID", "partial": "partial",
		text.Missing: string(r.State)}[validity(&r.Entry)]
	if warning == "" || r.Found == "" {
		return cmp.Or(warning, r.Found, text.Missing)
	}
	return warning + ": " + r.Found
}

func validity(e *store.Entry) string {
	switch {
	case e.Partial:
		return "partial"
	case e.State != store.Complete:
		return text.Missing
	}
	return map[bool]string{true: "yes", false: "no"}[e.Valid]
}

// ageOf returns the time since started in the largest unit whose value is above one, but at least in minutes.
func ageOf(started string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, started)
	if err != nil {
		return text.Missing
	}
	age := now.Sub(t)
	if age < -2*time.Minute { // another host's clock, or a folder with an edited date
		return "in future"
	}
	for _, u := range []struct {
		worth time.Duration
		name  string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if age >= 2*u.worth {
			return fmt.Sprintf("%d %s", age/u.worth, u.name)
		}
	}
	return "now"
}

// lookInto returns the options in which a run differs from its command's defaults, and the run's findings. It returns
// "" for parts that cannot be read, so that the list does not fail.
func lookInto(env *cli.Env, s *store.Store, e *store.Entry) (differs, found string) {
	f, err := s.Load(e.ID)
	if err != nil {
		return "", ""
	}
	differs = strings.Join(trimCommand(f.Manifest.Provenance.Command), " ")
	if e, ok := sweep.EssenceOf(f); ok {
		if e.Found != "" {
			return differs, fmt.Sprintf("%s, %s", olaf.Plural(e.Cells, "cell"), e.Found)
		}
		return differs, fmt.Sprintf("%s, digest %.12s…", olaf.Plural(e.Cells, "cell"), e.Digest)
	}
	var b results.Bench
	if f.ReadJSON(archive.BenchFile, &b) != nil {
		return differs, summariseDocument(env, f)
	}
	if d, ok := specDiffers(env, &b); ok {
		differs = d
	}
	return differs, text.Brief(&b)
}

// summariseDocument returns the summary of a run that is stored as a document, or "" if there is no summary for this
// kind of document.
func summariseDocument(env *cli.Env, f *store.Folder) string {
	var raw json.RawMessage
	if f.ReadJSON(archive.DocumentFile, &raw) != nil {
		return ""
	}
	r, err := env.Readers.Read(raw)
	if err != nil || r == nil {
		return ""
	}
	return r.Brief()
}

// outputs lists the flags that do not affect a result. The map's value is true if the flag has a value.
var outputs = map[string]bool{"-o": true, "--output": true, "--store": true, "--xlsx": true, "--report": true,
	"--pcap": true, "--plots": true,
	"-q": false, "--quiet": false, "--keep": false, "--force": false, "--tui": false, "--explain": false}

// trimCommand returns a command line without the program's name, the command's name, and the flags that do not affect
// the result.
func trimCommand(command []string) (words []string) {
	for i := 1; i < len(command); i++ {
		name, _, joined := strings.Cut(command[i], "=")
		value, output := outputs[name]
		switch {
		case output && value && !joined:
			i++
		case output || i == 1 || i == 2 && command[1] == "experiment":
		default:
			words = append(words, command[i])
		}
	}
	return words
}

// specDiffers returns the fields in which a bench's specification differs from the default of its experiment, as
// key=value. ok is false if the experiment is not a bench.
func specDiffers(env *cli.Env, b *results.Bench) (differs string, ok bool) {
	var config struct {
		Spec json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(b.Config, &config) != nil || config.Spec == nil {
		return "", false
	}
	spec, err := env.Published.Spec(b.Experiment)
	if err != nil {
		spec = bench.DefaultSpec(env.Systems)
	}
	usual, err := json.Marshal(spec)
	if err != nil {
		return "", false
	}
	was, is := joinLists(results.ListLeaves(usual)), joinLists(results.ListLeaves(config.Spec))
	var parts []string
	for _, kv := range slices.Concat(is, was) {
		key := kv[0][strings.LastIndex(kv[0], ".")+1:] + "="
		if named := slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(p, key) }); named ||
			kv[0] == "experiment" {
			continue
		}
		if now := findLeaf(is, kv[0]); now != findLeaf(was, kv[0]) {
			parts = append(parts, key+now)
		}
	}
	return strings.Join(parts, " "), true
}

// findLeaf returns the value at a path, or "none" if there is no value.
func findLeaf(leaves [][2]string, path string) string {
	for _, kv := range leaves {
		if kv[0] == path && kv[1] != "" {
			return kv[1]
		}
	}
	return "none"
}

// joinLists joins the values of each list with commas.
func joinLists(leaves [][2]string) (out [][2]string) {
	for _, kv := range leaves {
		key, _, _ := strings.Cut(kv[0], "[")
		if at := slices.IndexFunc(out, func(have [2]string) bool { return have[0] == key }); at >= 0 {
			out[at][1] += "," + kv[1]
			continue
		}
		out = append(out, [2]string{key, kv[1]})
	}
	return out
}

// remarkAbandoned prints a remark that lists the runs left in s by killed processes.
func remarkAbandoned(env *cli.Env, s *store.Store) error {
	left, err := s.ListAbandoned()
	if len(left) > 0 {
		fmt.Fprintf(env.Stderr, "unfinished because olafctl was killed: remove with olafctl runs rm %s\n",
			strings.Join(left, " "))
	}
	return err
}
