package main

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

// bom is a CycloneDX 1.6 document with the known facts about a Go program. It contains neither times nor places, so
// that identical programs have identical descriptions.
type bom struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Licences   []licence  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

// licence is a licence as an SPDX expression.
type licence struct {
	Expression string `json:"expression"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// buildSettings lists the build settings that affect the resulting program.
var buildSettings = []string{"-tags", "-trimpath", "CGO_ENABLED", "GOARCH", "GOOS", "GOAMD64", "vcs.revision", "vcs.modified"}

// describe returns the CycloneDX document for a program. It returns an error if the licence of a module is unknown.
func describe(info *debug.BuildInfo, licences map[string]string) (*bom, error) {
	main := program(info)
	for _, s := range info.Settings {
		if slices.Contains(buildSettings, s.Key) {
			main.Properties = append(main.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	b := &bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{main}, Components: []component{}}
	all := dependency{Ref: main.Ref, DependsOn: []string{}}
	add := func(c component) {
		b.Components = append(b.Components, c)
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := part("library", m)
		name, listed := licences[m.Path]
		if !listed {
			return nil, fmt.Errorf("%s has no licence in %s; 'make licences' lists it", m.Path, licencesPage)
		}
		c.Licences = []licence{{name}}
		c.Properties = []property{{"go:sum", m.Sum}}
		add(c)
	}
	standard := part("library", &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
	standard.Licences = []licence{{"BSD-3-Clause"}}
	add(standard)
	b.Dependencies = []dependency{all}
	return b, nil
}

// program returns the CycloneDX component for the program. Its module may contain other programs.
func program(info *debug.BuildInfo) component {
	c := part("application", &info.Main)
	if folder, ok := strings.CutPrefix(info.Path, info.Main.Path+"/"); ok {
		c.Name, c.PURL = info.Path, c.PURL+"#"+folder
		c.Ref = c.PURL
	}
	return c
}

func part(kind string, m *debug.Module) component {
	url := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version)
	return component{Type: kind, Ref: url, Name: m.Path, Version: m.Version, PURL: url}
}
