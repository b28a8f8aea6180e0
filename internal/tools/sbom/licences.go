package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is a module that go.mod requires.
type module struct{ Path, Version string }

// listRequired returns the modules required by go.mod.
func listRequired() ([]module, error) {
	raw, err := exec.Command("go", "mod", "edit", "-json").Output()
	if err != nil {
		return nil, fmt.Errorf("read go.mod: %w", err)
	}
	var file struct{ Require []module }
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, err
	}
	slices.SortFunc(file.Require, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return file.Require, nil
}

// licences returns the text of the licence page, which lists every module with the licence found in its files, as an
// SPDX expression.
func licences(modules []module) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(`# Licences

Generated from go.mod and the modules' own files by ` + "`make licences`" + `; do not edit. Not every module is in every program:
` + "`make sbom`" + ` writes what a binary contains as CycloneDX.

| module | licence |
|---|---|
`)
	for _, m := range modules {
		name := silent[m.Path]
		if name == "" {
			folder, err := download(m)
			if err != nil {
				return nil, err
			}
			if name, err = licenceIn(folder); err != nil {
				return nil, fmt.Errorf("%s: %w", m.Path, err)
			}
		}
		fmt.Fprintf(&out, "| %s | %s |\n", m.Path, name)
	}
	return out.Bytes(), nil
}

// download downloads a module, if necessary, and returns its folder.
func download(m module) (folder string, err error) {
	raw, err := exec.Command("go", "mod", "download", "-json", m.Path+"@"+m.Version).Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w", m.Path, err)
	}
	var at struct{ Dir string }
	return at.Dir, json.Unmarshal(raw, &at)
}

// silent maps modules that have no licence file in the used version to the licence that they state elsewhere.
var silent = map[string]string{
	"github.com/mattn/go-localereader": "MIT", // stated in its README
}

// licenceIn reads the usual licence files of a module. If there are several, all of them apply.
func licenceIn(folder string) (string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(upper, "LICENSE") && !strings.HasPrefix(upper, "LICENCE") &&
			!strings.HasPrefix(upper, "COPYING") || strings.Contains(upper, "LOGO") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return "", err
		}
		name := licenceOf(string(text))
		if name == "" {
			return "", fmt.Errorf("%s is no licence that is known", e.Name())
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", fmt.Errorf("no file with a licence in %s", folder)
	}
	slices.Sort(names)
	return strings.Join(names, " AND "), nil
}

// marks lists words by which licences are recognised. A licence whose text contains the words of another licence comes
// first.
var marks = []struct{ name, words string }{
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"Apache-2.0", "Apache License Version 2.0"},
	{"Apache-2.0", "Licensed under the Apache License, Version 2.0"},
	{"OFL-1.1", "SIL OPEN FONT LICENSE Version 1.1"},
	{"FTL OR GPL-2.0-or-later", "your choice of exactly one of the following two licenses: * The FreeType License"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-3-Clause", "may be used to endorse or promote products"},
	{"BSD-2-Clause", "Redistribution and use in source and binary forms"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"Unlicense", "This is free and unencumbered software released into the public domain"},
	{"CC0-1.0", "CC0 1.0 Universal"},
	{"CC-BY-4.0", "Creative Commons Attribution 4.0"},
	{"CC-BY-3.0", "Creative Commons Attribution 3.0"},
	{"Zlib", "This software is provided 'as-is', without any express or implied warranty"},
}

func licenceOf(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, m := range marks {
		if strings.Contains(text, strings.ToLower(m.words)) {
			return m.name
		}
	}
	return ""
}

// readLicences reads the licence page and returns the licence of each module.
func readLicences(page string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) == 4 && cells[0] == "" && !strings.HasPrefix(cells[1], "-") {
			found[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[2])
		}
	}
	delete(found, "module")
	return found
}
