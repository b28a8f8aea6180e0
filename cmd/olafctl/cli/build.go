package cli

import (
	"runtime"
	"runtime/debug"
	"time"
)

// Build is the build information that the Go toolchain recorded in this binary.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Dirty    bool   `json:"dirty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Date is the commit's date, or 1970 if none was recorded.
	Date time.Time `json:"-"`
}

// ThisBuild returns this binary's build information. The version is (devel) if none was recorded.
func ThisBuild() Build {
	b := Build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Date: time.Unix(0, 0).UTC()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			if date, err := time.Parse(time.RFC3339, s.Value); err == nil {
				b.Date = date
			}
		case "vcs.modified":
			b.Dirty = s.Value == "true"
		}
	}
	return b
}
