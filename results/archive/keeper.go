package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/metric"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/result"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/text"
)

// DocumentKeeper stores an experiment with its document, its table and its printed text, but without single runs or
// frames. The folder is marked as incomplete until Finish.
type DocumentKeeper struct {
	writer     *store.Writer
	experiment string
}

// KeepDocument creates the folder of an experiment that starts now.
func KeepDocument(s *store.Store, experiment string, started time.Time) (*DocumentKeeper, error) {
	w, err := s.Create(paper.FileName(experiment), started)
	if err != nil {
		return nil, err
	}
	return &DocumentKeeper{w, experiment}, nil
}

// Planned is implemented by reports that can be reproduced from their plan.
type Planned interface {
	result.Report
	// ReplayPlan returns the plan, which is stored as JSON.
	ReplayPlan() any
}

// Abort removes the experiment's folder from the store.
func (k *DocumentKeeper) Abort() error { return k.writer.Abort() }

// Finish stores the experiment's report and returns the experiment's id. stopped is true if the experiment ended early.
func (k *DocumentKeeper) Finish(r result.Report, by results.Provenance, stopped bool) (id string, err error) {
	document, err := PutDocument(k.writer, r)
	if err != nil {
		return "", err
	}
	if a, ok := r.(result.Attaching); ok {
		if err := putAll(k.writer, a); err != nil {
			return "", err
		}
	}
	if p, ok := r.(Planned); ok {
		if err := putPlan(k.writer, p); err != nil {
			return "", fmt.Errorf("keep the plan of %s: %w", k.experiment, err)
		}
	}
	m, err := k.makeManifest(document)
	if err != nil {
		return "", err
	}
	m.Provenance, m.Partial, m.Valid = by, stopped, !stopped
	if err := r.Err(); err != nil {
		m.Valid, m.Reasons = false, append(m.Reasons, err.Error())
	}
	return k.writer.ID(), k.writer.Finish(m)
}

func putAll(w *store.Writer, a result.Attaching) error {
	files, err := a.Files()
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := w.Put(name, content); err != nil {
			return err
		}
	}
	return nil
}

func putPlan(w *store.Writer, p Planned) error {
	plan, err := json.MarshalIndent(p.ReplayPlan(), "", "  ")
	if err != nil {
		return err
	}
	return w.Put(PlanFile, append(plan, '\n'))
}

// PlanOf calls read with the plan of a stored document. It returns false if no plan was stored.
func PlanOf(f *store.Folder, read func(raw []byte) error) (bool, error) {
	err := f.Parse(PlanFile, read)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// SameDocument compares a new report with a stored document, without the provenance. It compares only the fields of the
// stored document, and returns the names of fields that were added since. Reasons for missing values are ignored, and
// for zeroed metrics 0 equals a missing value. If a field differs, the error matches ErrDiffers and names the field.
func SameDocument(f *store.Folder, readers result.Readers, again result.Report, metrics []*metric.Metric) (news []string,
	err error) {
	kept, err := f.ReadFile(DocumentFile)
	if err != nil {
		return nil, err
	}
	read, err := readers.Read(kept)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", store.ErrDamaged, f.ID(), err)
	}
	made, err := json.Marshal(again.Document())
	if err != nil {
		return nil, err
	}
	if read != nil && read.Schema != result.Schema { // marshal it in today's layout
		if kept, err = json.Marshal(read); err != nil {
			return nil, err
		}
	}
	was, err := treeOf(kept)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", store.ErrDamaged, f.ID(), err)
	}
	is, err := treeOf(made)
	if err != nil {
		return nil, err
	}
	if was["schema"] != is["schema"] { // other versions had other names and fewer metrics
		for _, words := range []string{"schema", "paper", "metrics", "found"} {
			delete(was, words)
			delete(is, words)
		}
	}
	s := sameness{zeroed: map[string]bool{}, news: map[string]bool{}}
	for _, m := range metrics {
		s.zeroed[m.Name] = m.Zeroed
	}
	if at, same := s.compareObjects("", was, is); !same {
		return nil, fmt.Errorf("%s: %w: its %s; was it kept by another version of olafctl?", f.ID(), ErrDiffers, at)
	}
	return slices.Sorted(maps.Keys(s.news)), nil
}

// treeOf returns the members of a JSON document without the provenance. Numbers keep all their digits.
func treeOf(document []byte) (members map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	err = d.Decode(&members)
	delete(members, "provenance")
	return members, err
}

// sameness compares two documents and collects the names of fields that only the new one has.
type sameness struct {
	zeroed, news map[string]bool
}

// compareValues compares two values of the named field. If they differ, it returns the name of the first field within
// them that differs.
func (s *sameness) compareValues(name string, was, is any) (at string, same bool) {
	if s.zeroed[name] && meanOf(was) == json.Number("0") && meanOf(is) == nil {
		return "", true
	}
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			return s.compareObjects(name, was, is)
		}
	case []any:
		if is, ok := is.([]any); ok && len(is) == len(was) {
			for i := range was {
				if at, same := s.compareValues(name, was[i], is[i]); !same {
					return at, false
				}
			}
			return "", true
		}
	default:
		return name, was == is
	}
	return name, false
}

func (s *sameness) compareObjects(name string, was, is map[string]any) (at string, same bool) {
	for _, member := range slices.Sorted(maps.Keys(was)) {
		now, there := is[member]
		if member == reasonField {
			continue
		}
		if !there {
			return member, false
		}
		if at, same := s.compareValues(member, was[member], now); !same {
			return strings.TrimPrefix(name+"."+at, "."), false
		}
	}
	for member := range is {
		if _, there := was[member]; !there && member != reasonField {
			s.news[member] = true
		}
	}
	return "", true
}

// reasonField is the name of the field that contains the reason for a missing number.
const reasonField = "reason"

// meanOf returns the mean if v is a statistic, and otherwise v itself.
func meanOf(v any) any {
	if o, ok := v.(map[string]any); ok {
		return o["mean"]
	}
	return v
}

// PutDocument stores a report as JSON, text and table, and returns the JSON document.
func PutDocument(w *store.Writer, r result.Report) (document []byte, err error) {
	if document, err = json.MarshalIndent(r.Document(), "", "  "); err != nil {
		return nil, fmt.Errorf("keep the document of an experiment: %w", err)
	}
	var printed, list bytes.Buffer
	if err := r.WriteText(&printed, text.View{}); err != nil {
		return nil, err
	}
	header, rows := r.Table()
	if err := csv.NewWriter(&list).WriteAll(append([][]string{header}, rows...)); err != nil {
		return nil, err
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{DocumentFile, append(document, '\n')}, {PrintedFile, printed.Bytes()},
		{TableFile, list.Bytes()}} {
		if err := w.Put(file.name, file.content); err != nil {
			return nil, err
		}
	}
	return document, nil
}

// makeManifest returns the manifest of the stored experiment. Its deterministic part is the document's config.
func (k *DocumentKeeper) makeManifest(document []byte) (store.Manifest, error) {
	var stated struct {
		Schema string          `json:"schema"`
		Config json.RawMessage `json:"config"`
		Quick  bool            `json:"quick"`
	}
	if err := json.Unmarshal(document, &stated); err != nil {
		return store.Manifest{}, fmt.Errorf("keep the document of %s: %w", k.experiment, err)
	}
	var config bytes.Buffer
	if err := json.Compact(&config, stated.Config); err != nil {
		return store.Manifest{}, fmt.Errorf("keep the configuration of %s: %w", k.experiment, err)
	}
	sum := sha256.Sum256(config.Bytes())
	hash := hex.EncodeToString(sum[:])
	fixed, err := json.Marshal(struct {
		Document string          `json:"document"`
		Config   json.RawMessage `json:"config"`
		Hash     string          `json:"config_sha256"`
		Quick    bool            `json:"quick,omitempty"`
	}{stated.Schema, config.Bytes(), hash, stated.Quick})
	if err != nil {
		return store.Manifest{}, fmt.Errorf("write the manifest: %w", err)
	}
	return store.Manifest{Experiment: k.experiment, Deterministic: fixed, SpecSHA256: hash}, nil
}
