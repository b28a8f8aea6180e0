package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func single(key, result, host string) Single {
	return Single{Key: strings.Repeat(key, 64), Result: json.RawMessage(result), By: Maker{Host: host, Build: "b",
		Finished: "2026-01-01T00:00:00Z"}}
}

func TestSingles(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := s.Singles()
	a := single("a", `{"x":1}`, "here")
	if _, ok, err := r.Get(a.Key); ok || err != nil {
		t.Fatal(ok, err)
	}
	if keys, others, err := r.List(); len(keys)+len(others) > 0 || err != nil {
		t.Fatal(keys, others, err)
	}
	for range 2 { // storing the same again is not an error
		if err := r.Put(a); err != nil {
			t.Fatal(err)
		}
	}
	got, ok, err := r.Get(a.Key)
	if !ok || err != nil || string(got.Result) != `{"x":1}` || got.By != a.By {
		t.Error(got, ok, err)
	}
	err = r.Put(single("a", `{"x":2}`, "there"))
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "of here") || !strings.Contains(err.Error(),
		"of there") {
		t.Error(err)
	}
	if got, _, _ := r.Get(a.Key); string(got.Result) != `{"x":1}` {
		t.Errorf("the first result was replaced by %s", got.Result)
	}
	keys, others, err := r.List()
	if len(keys) != 1 || len(others) != 1 || !strings.Contains(others[0], ".differs-") || err != nil {
		t.Error(keys, others, err)
	}
}

// TestSingleWithInvalidMakerIsNotStored checks that a result whose maker cannot be encoded is not stored.
func TestSingleWithInvalidMakerIsNotStored(t *testing.T) {
	r := &Singles{t.TempDir()}
	a := single("a", `{"x":1}`, "here")
	a.By.Seconds = math.NaN()
	if err := r.Put(a); err == nil {
		t.Error("it was put")
	}
	if keys, others, err := r.List(); len(keys)+len(others) > 0 || err != nil {
		t.Error(keys, others, err)
	}
}

// TestInvalidSinglesAreReplaced checks that results that are incomplete or have another name are ignored and replaced.
func TestInvalidSinglesAreReplaced(t *testing.T) {
	r := &Singles{t.TempDir()}
	a := single("a", `{"x":1}`, "here")
	if err := r.Put(a); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(r.path(a.Key))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"empty": "", "cut": string(whole[:len(whole)/2]), "changed": strings.Replace(string(whole), "1", "3", 1),
		"another's": strings.ReplaceAll(string(whole), a.Key, strings.Repeat("b", 64)), "foreign": "hello\nworld\n",
	} {
		if err := os.WriteFile(r.path(a.Key), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := r.Get(a.Key); ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
		if err := r.Put(a); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, ok, err := r.Get(a.Key); !ok || string(got.Result) != `{"x":1}` || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	if _, _, err := r.Get("../../passwd"); !errors.Is(err, ErrName) {
		t.Error(err)
	}
	if err := r.Put(Single{Key: "x"}); !errors.Is(err, ErrName) {
		t.Error(err)
	}
}

// TestSinglesAtOnce checks that many writers can store the same result at once.
func TestSinglesAtOnce(t *testing.T) {
	r := &Singles{t.TempDir()}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 16 {
				if err := r.Put(single(fmt.Sprintf("%x", k), fmt.Sprintf(`{"x":%d}`, k), fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	keys, others, err := r.List()
	if len(keys) != 16 || len(others) != 0 || err != nil {
		t.Error(len(keys), others, err)
	}
	left, _ := filepath.Glob(filepath.Join(r.dir, "*", ".new-*"))
	if len(left) > 0 {
		t.Error(left)
	}
}

func BenchmarkSinglesList10k(b *testing.B) {
	r := &Singles{b.TempDir()}
	for k := range 10_000 {
		one := single("a", `{"x":1}`, "here")
		one.Key = sumOf([]byte(fmt.Sprint(k)))
		if err := r.Put(one); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if keys, _, err := r.List(); len(keys) != 10_000 || err != nil {
			b.Fatal(len(keys), err)
		}
	}
}

// List returns the keys of all results in ascending order. others lists all other files, which are files of other
// programs and second results that differ from the first.
func (s *Singles) List() (keys, others []string, err error) {
	folders, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the results can't be read: %w", err)
	}
	for _, folder := range folders {
		entries, err := os.ReadDir(filepath.Join(s.dir, folder.Name()))
		if err != nil {
			others = append(others, folder.Name())
		}
		for _, e := range entries {
			switch name := e.Name(); {
			case singleKey.MatchString(name) && name[:2] == folder.Name():
				keys = append(keys, name)
			case !strings.HasPrefix(name, ".new-"):
				others = append(others, folder.Name()+"/"+name)
			}
		}
	}
	return keys, others, nil
}
