//go:build unix

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/olafctl/olaf/internal/test/fulldisk"
)

// keepOne stores a run of some files, and abandons it at the first file that cannot be written.
func keepOne(s *Store, started time.Time) (id string, err error) {
	w, err := s.Create("table1", started)
	if err != nil {
		return "", err
	}
	for k := range 8 { // digests are longer than the manifest, and data are longer than both
		if err == nil {
			err = w.Put(fmt.Sprintf("data%d", k), []byte(strings.Repeat("x", 100+k*300)))
		}
	}
	if err == nil {
		err = w.Finish(manifest())
	}
	if err != nil {
		return "", errors.Join(err, w.Abort())
	}
	return w.ID(), nil
}

// TestFullDisk fills the disk at every byte. It checks that a run is stored completely or not at all, that the latter
// is reported with what to do, and that earlier runs are unaffected.
func TestFullDisk(t *testing.T) {
	if fulldisk.RunInProcess(t) {
		return
	}
	s := open(t, t.TempDir())
	before := store(t, s, noon)
	refused := 0
	for room := int64(0); ; room += 13 {
		var id string
		var err error
		fulldisk.WithLimit(t, room, func() { id, err = keepOne(s, noon.Add(time.Hour)) })
		folders, failed := os.ReadDir(filepath.Join(s.Dir(), "runs"))
		if failed != nil {
			t.Fatal(failed)
		}
		if err == nil {
			f, err := s.Load(id)
			if err != nil || f.VerifyDigests() != nil || len(folders) != 2 {
				t.Errorf("with room for %d bytes: %v, %v", room, err, folders)
			}
			break
		}
		refused++
		if !strings.Contains(err.Error(), "the run can't be stored") || !strings.Contains(err.Error(), "olafctl runs prune") {
			t.Fatalf("with room for %d bytes: %v", room, err)
		}
		if entries := list(t, s); len(entries) != 1 || entries[0].ID != before || len(folders) != 1 {
			t.Fatalf("with room for %d bytes: %+v, %v", room, entries, folders)
		}
	}
	if refused < 50 { // writes of data, manifest and digests fail at some size each
		t.Errorf("only %d sizes were too small", refused)
	}
}

// TestNotesOnAFullDisk checks that notes on runs have either the old or the new text if the disk is full.
func TestNotesOnAFullDisk(t *testing.T) {
	if fulldisk.RunInProcess(t) {
		return
	}
	s := open(t, t.TempDir())
	id := store(t, s, noon)
	if err := errors.Join(s.Note(id, "old"), s.SetExport(id, Export{Kind: "old"})); err != nil {
		t.Fatal(err)
	}
	for _, room := range []int64{0, 1, 10} {
		fulldisk.WithLimit(t, room, func() {
			if err := s.Note(id, "a new note"); err == nil || !strings.Contains(err.Error(), "the note can't be written") {
				t.Errorf("with room for %d bytes: %v", room, err)
			}
			if err := s.SetExport(id, Export{Kind: "new"}); err == nil || !strings.Contains(err.Error(), "can't be written") {
				t.Errorf("with room for %d bytes: %v", room, err)
			}
		})
	}
	f, err := s.Load(id)
	if err != nil || f.Note != "old" {
		t.Errorf("%+v, %v", f, err)
	}
	if exports, err := s.Exports(id); err != nil || !slices.Equal(exports, []Export{{Kind: "old"}}) {
		t.Errorf("%+v, %v", exports, err)
	}
}

// TestSinglesOnAFullDisk checks that a single result is stored completely or not at all, and that nothing is left of
// one for which there was no room.
func TestSinglesOnAFullDisk(t *testing.T) {
	if fulldisk.RunInProcess(t) {
		return
	}
	r := &Singles{t.TempDir()}
	one := single("a", `{"x":1}`, "here")
	for room := int64(0); ; room += 13 {
		var err error
		fulldisk.WithLimit(t, room, func() { err = r.Put(one) })
		if err == nil {
			if have, ok, err := r.Get(one.Key); err != nil || !ok || string(have.Result) != string(one.Result) || room < 100 {
				t.Errorf("with room for %d bytes: %+v, %t, %v", room, have, ok, err)
			}
			return
		}
		files, failed := os.ReadDir(filepath.Dir(r.path(one.Key)))
		if failed != nil || len(files) > 0 || !strings.Contains(err.Error(), "a result can't be stored") ||
			!strings.Contains(err.Error(), "olafctl runs prune") {
			t.Fatalf("with room for %d bytes: %v, %v, %v", room, err, files, failed)
		}
	}
}

// TestStoresOnAFullDisk checks that a store on a full disk can be read, so that it can be cleared, and that a new store
// cannot be created there.
func TestStoresOnAFullDisk(t *testing.T) {
	if fulldisk.RunInProcess(t) {
		return
	}
	dir := t.TempDir()
	s := open(t, dir)
	id := store(t, s, noon)
	fulldisk.WithLimit(t, 0, func() {
		if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "the run store can't be written") {
			t.Errorf("a new one: %v", err)
		}
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if entries := list(t, s); s.CheckWritable() == nil || len(entries) != 1 || entries[0].ID != id {
			t.Errorf("%+v", entries)
		}
	})
}
