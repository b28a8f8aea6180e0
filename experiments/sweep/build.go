package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Build is what made a result, as far as it decides it.
type Build struct {
	Commit  string `json:"commit,omitempty"`
	Modules string `json:"modules"` // SHA-256 over the versions and sums of all modules
	Go      string `json:"go"`
	Arch    string `json:"arch"`
	// Executable is the SHA-256 of the program, where the commit does not tell all of it.
	Executable string `json:"executable,omitempty"`
}

// Hash is the SHA-256 over all of it.
func (b Build) Hash() string {
	return hashOf([]byte(strings.Join([]string{b.Commit, b.Modules, b.Go, b.Arch, b.Executable}, "\n")))
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// String names the build for people.
func (b Build) String() string {
	const short = 12
	name := b.Commit[:min(short, len(b.Commit))]
	if b.Executable != "" {
		name = strings.TrimSpace(name + " changed " + b.Executable[:min(short, len(b.Executable))])
	}
	return fmt.Sprintf("%s %s %s", name, b.Go, b.Arch)
}

// ThisBuild is that of this process, whose program is at the path. The program is read only where what the toolchain recorded
// does not tell all of it: without a commit, or with changes on top of it.
func ThisBuild(executable string) (Build, error) {
	b := Build{Go: runtime.Version(), Arch: runtime.GOARCH}
	modified := true
	modules := sha256.New()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			fmt.Fprintf(modules, "%s %s %s\n", m.Path, m.Version, m.Sum)
			if m.Replace != nil {
				fmt.Fprintf(modules, "=> %s %s %s\n", m.Replace.Path, m.Replace.Version, m.Replace.Sum)
			}
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				modified = s.Value != "false"
			}
		}
	}
	b.Modules = hex.EncodeToString(modules.Sum(nil))
	if b.Commit != "" && !modified {
		return b, nil
	}
	f, err := os.Open(executable)
	if err != nil {
		return b, fmt.Errorf("identify this program: %w", err)
	}
	defer f.Close() // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return b, fmt.Errorf("identify this program: %w", err)
	}
	b.Executable = hex.EncodeToString(h.Sum(nil))
	return b, nil
}
