package cli

import (
	"os"
	"os/user"
	"path/filepath"
	"testing"
)

// TestSudoUsesThePersonsStore checks which store a command under root uses, depending on its environment.
func TestSudoUsesThePersonsStore(t *testing.T) {
	nobody, err := user.LookupId("65534")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("sudo: needs root and a user 65534")
	}
	persons := filepath.Join(nobody.HomeDir, ".local", "share", "olafctl")
	for name, c := range map[string]struct {
		environment map[string]string
		want        string
	}{
		"root alone":            {map[string]string{"HOME": "/root"}, "/root/.local/share/olafctl"},
		"sudo":                  {map[string]string{"HOME": "/root", "SUDO_UID": "65534"}, persons},
		"sudo that keeps HOME":  {map[string]string{"HOME": nobody.HomeDir, "SUDO_UID": "65534"}, persons},
		"sudo of root":          {map[string]string{"HOME": "/root", "SUDO_UID": "0"}, "/root/.local/share/olafctl"},
		"sudo of an unknown":    {map[string]string{"HOME": "/root", "SUDO_UID": "4000000"}, "/root/.local/share/olafctl"},
		"sudo with a folder":    {map[string]string{"HOME": "/root", "SUDO_UID": "65534", "OLAFCTL_HOME": "/srv/runs"}, "/srv/runs"},
		"sudo with a data home": {map[string]string{"HOME": "/root", "SUDO_UID": "65534", "XDG_DATA_HOME": "/data"}, "/data/olafctl"},
	} {
		got, err := new(StoreFlag).resolvePath(&Env{Getenv: func(key string) string { return c.environment[key] }})
		if err != nil || got != c.want {
			t.Errorf("%s: runs are kept in %s (%v), want %s", name, got, err, c.want)
		}
	}
}
