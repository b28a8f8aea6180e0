package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/results/archive"
	"github.com/olafctl/olaf/results/paper"
	"github.com/olafctl/olaf/results/store"
	"github.com/olafctl/olaf/results/text"
)

// DocumentKeeper keeps an experiment that publishes no events: its document, its table, and what was printed. Single runs and frames of it are not kept. Until Finish the folder is marked incomplete.
type DocumentKeeper struct {
	writer     *store.Writer
	experiment string
}

// KeepDocument begins to keep the experiment that starts now.
func KeepDocument(s *store.Store, experiment string, started time.Time) (*DocumentKeeper, error) {
	w, err := s.Create(paper.FileName(experiment), started)
	if err != nil {
		return nil, err
	}
	return &DocumentKeeper{w, experiment}, nil
}

// Abort gives the experiment up; nothing of it stays in the store.
func (k *DocumentKeeper) Abort() error { return k.writer.Abort() }

// Finish makes the experiment part of the store and returns its id; stopped says that it did not come to its end.
func (k *DocumentKeeper) Finish(r Report, by results.Provenance, stopped bool) (id string, err error) {
	document, err := PutDocument(k.writer, r)
	if err != nil {
		return "", err
	}
	if a, ok := r.(Attaching); ok {
		if err := putAll(k.writer, a); err != nil {
			return "", err
		}
	}
	m, err := k.manifest(document)
	if err != nil {
		return "", err
	}
	m.Provenance, m.Partial, m.Valid = by, stopped, !stopped
	if err := r.Err(); err != nil {
		m.Valid, m.Reasons = false, append(m.Reasons, err.Error())
	}
	return k.writer.ID(), k.writer.Finish(m)
}

func putAll(w *store.Writer, a Attaching) error {
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

// PutDocument writes what a report is in every form that it prints, and returns the first.
func PutDocument(w *store.Writer, r Report) (document []byte, err error) {
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
	}{{archive.DocumentFile, append(document, '\n')}, {archive.PrintedFile, printed.Bytes()}, {archive.TableFile, list.Bytes()}} {
		if err := w.Put(file.name, file.content); err != nil {
			return nil, err
		}
	}
	return document, nil
}

// manifest takes what decides the result from the document, which states it under config.
func (k *DocumentKeeper) manifest(document []byte) (store.Manifest, error) {
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
