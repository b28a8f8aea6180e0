// Command sbom lists the components of a built program as a CycloneDX document, which it creates from the build
// information in the program. It also lists the licences of all modules in go.mod.
//
//	sbom -binary bin/olafctl -o dist/olafctl.cdx.json
//	sbom -licences docs/reference/licences.md
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/google/renameio/v2"
)

func main() {
	binary := flag.String("binary", "", "the program to describe")
	out := flag.String("o", "", "the file for its description")
	page := flag.String("licences", "", "write the list of licences to this page instead")
	flag.Parse()
	if err := run(*binary, *out, *page); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// licencesPage is the path of the page that lists the licences.
const licencesPage = "docs/reference/licences.md"

func run(binary, out, page string) error {
	if page != "" {
		modules, err := listRequired()
		if err != nil {
			return err
		}
		text, err := licences(modules)
		if err != nil {
			return err
		}
		return renameio.WriteFile(page, text, 0o644)
	}
	if binary == "" || out == "" {
		return fmt.Errorf("-binary and -o, or -licences")
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(licencesPage)
	if err != nil {
		return err
	}
	document, err := describe(info, readLicences(string(text)))
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(out, append(raw, '\n'), 0o644)
}
