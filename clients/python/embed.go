// Package python contains the Python package olaf, which programs that olafctl starts can import.
package python

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed olaf/*.py olaf/py.typed
var files embed.FS

// WritePackage writes the package into a new folder python below parent. path is the value to add to PYTHONPATH so that
// Python finds the package.
func WritePackage(parent string) (path string, err error) {
	path = filepath.Join(parent, "python")
	return path, fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		to := filepath.Join(path, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Mkdir(to, 0o700)
		}
		text, err := files.ReadFile(name)
		return errors.Join(err, os.WriteFile(to, text, 0o600))
	})
}
