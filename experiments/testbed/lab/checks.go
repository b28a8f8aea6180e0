package lab

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/olafctl/olaf/internal/yamlfile"
)

// Checks collects the mistakes in a testbed file.
type Checks struct {
	File *File
	Errs []error // each matches ErrFile
}

// Fail adds a mistake at a key of the object at. Mistakes after the first yamlfile.MaxErrors are dropped.
func (r *Checks) Fail(at yamlfile.Pos, key, format string, args ...any) {
	if len(r.Errs) < yamlfile.MaxErrors {
		r.Errs = append(r.Errs, &yamlfile.Error{Kind: ErrFile, File: r.File.Path, Line: at.LineOf(key), What: fmt.Sprintf(format, args...)})
	}
}

// CheckInterface rejects names that Linux does not accept for interfaces.
func (r *Checks) CheckInterface(at yamlfile.Pos, key, name string) {
	if len(name) > maxInterface || strings.ContainsAny(name, "/: \t\n") {
		r.Fail(at, key, "no interface is called %q; Linux takes names of at most %d letters, without spaces, / and :", name, maxInterface)
	}
}

// TestbedName returns the name of the testbed. The default is the file's name without its extension.
func (f *File) TestbedName() string {
	if f.Name != "" {
		return f.Name
	}
	base := filepath.Base(f.Path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// isName reports whether s can be used as a name in commands and for interfaces. most is the maximum length.
func isName(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// IsTestbedName reports whether s can be the name of a testbed.
func IsTestbedName(s string) bool { return isName(s, 64) }
