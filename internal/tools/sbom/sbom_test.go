package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

func page(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, licencesPage))
	if err != nil {
		t.Fatal(err)
	}
	return readLicences(string(text))
}

// TestEveryModuleHasALicence compares docs/reference/licences.md with go.mod, in both directions.
func TestEveryModuleHasALicence(t *testing.T) {
	listed := page(t)
	t.Chdir(root)
	modules, err := listRequired()
	if err != nil || len(modules) < 50 {
		t.Fatal(len(modules), err)
	}
	for _, m := range modules {
		if listed[m.Path] == "" {
			t.Errorf("%s has no licence in %s; 'make licences' lists it", m.Path, licencesPage)
		}
		delete(listed, m.Path)
	}
	for path := range listed {
		t.Errorf("%s is in %s, but not in go.mod", path, licencesPage)
	}
}

func TestLicencesAreRecognised(t *testing.T) {
	for text, want := range map[string]string{
		"The MIT License\n\nPermission is hereby granted, free of charge,\nto any person obtaining a copy":      "MIT",
		"Redistribution and use in source and binary forms ...\nNeither the name of Google nor":                 "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with or without":                                    "BSD-2-Clause",
		"                                 Apache License\n                           Version 2.0, January 2004": "Apache-2.0",
		"Mozilla Public License Version 2.0\n====":                                                              "MPL-2.0",
		"All rights reserved, ask us": "",
	} {
		if got := licenceOf(text); got != want {
			t.Errorf("%.30q is %q, want %q", text, got, want)
		}
	}
}

// TestDescribe checks the document of a small program.
func TestDescribe(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Path: "example.org/tool/cmd/tool", Main: debug.Module{Path: "example.org/tool", Version: "v1.0.0"},
		Deps:     []*debug.Module{{Path: "example.org/a", Version: "v0.1.0", Sum: "h1:x"}, {Path: "example.org/old", Replace: &debug.Module{Path: "example.org/new", Version: "v2.0.0", Sum: "h1:y"}}},
		Settings: []debug.BuildSetting{{Key: "CGO_ENABLED", Value: "0"}, {Key: "-ldflags", Value: "-s"}, {Key: "GOOS", Value: "linux"}},
	}
	got, err := describe(info, map[string]string{"example.org/a": "MIT", "example.org/new": "ISC"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/small.cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(raw)+"\n"); d != "" {
		t.Error(d)
	}
	if _, err := describe(info, map[string]string{"example.org/a": "MIT"}); err == nil || !strings.Contains(err.Error(), "example.org/new has no licence") {
		t.Errorf("a module without a licence: %v", err)
	}
}

// TestOwnModulesHaveLicences checks that every module in this test's program has a licence.
func TestOwnModulesHaveLicences(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := describe(info, page(t)); err != nil {
		t.Error(err)
	}
}

// TestBuildsAreReproducible builds copies of the sources in two folders and checks that the programs are equal byte by
// byte and list their components.
func TestBuildsAreReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("builds olafctl twice")
	}
	files, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("without git: %v", err)
	}
	consistsOf := map[string]string{"olafctl": "google.golang.org/grpc", "olafctl-queue": "github.com/nats-io/nats-server/v2"}
	programs := map[string][][]byte{}
	for _, name := range []string{"one", "another place"} {
		folder := filepath.Join(t.TempDir(), name)
		copyFiles(t, folder, strings.Split(strings.TrimRight(string(files), "\x00"), "\x00"))
		build := exec.Command("make", "-s", "-C", folder, "build")
		build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "MAKEFLAGS=")
		if said, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		for program := range consistsOf {
			text, err := os.ReadFile(filepath.Join(folder, "bin", program))
			if err != nil {
				t.Fatal(err)
			}
			programs[program] = append(programs[program], text)
		}
	}
	for program, module := range consistsOf {
		built := programs[program]
		if a, b := sha256.Sum256(built[0]), sha256.Sum256(built[1]); a != b {
			t.Errorf("%s: %x and %x", program, a, b)
		}
		info, err := buildinfo.Read(bytes.NewReader(built[0]))
		if err != nil {
			t.Fatal(err)
		}
		got, err := describe(info, page(t))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(got.Components, func(c component) bool {
			return c.Name == module && c.Licences[0].Expression == "Apache-2.0"
		}) {
			t.Errorf("%s: of %d components none is %s", program, len(got.Components), module)
		}
	}
}

func copyFiles(t *testing.T, folder string, names []string) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, but not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
