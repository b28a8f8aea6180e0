package sshlink

import (
	"errors"
	"strings"
	"testing"
)

// TestParse checks the parts of addresses.
func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		Address
		device string
	}{
		"ssh://lab/twin:":                     {Address{Host: "lab"}, "twin:"},
		"//lab/":                              {Address{Host: "lab"}, ""},
		"ssh://me@lab.example:2222/xdp:":      {Address{"me", "lab.example", 2222}, "xdp:"},
		"ssh://lab@fpga1/pci:0000:3b:00.0":    {Address{User: "lab", Host: "fpga1"}, "pci:0000:3b:00.0"},
		"ssh://[fe80::1%eth0]/enp1s0f0":       {Address{Host: "fe80::1%eth0"}, "enp1s0f0"},
		"ssh://root@[::1]:22/playback:/a/b@c": {Address{"root", "::1", 22}, "playback:/a/b@c"},
	} {
		a, device, err := Parse(text)
		if err != nil || a != want.Address || device != want.device {
			t.Errorf("%s is %+v and %q, %v; want %+v", text, a, device, err, want)
		}
	}
	for _, text := range []string{"", "ssh:", "ssh:lab/x", "ssh://", "ssh:///x", "ssh://lab", "ssh://-l/x", "ssh://a b/x", "ssh://@lab/x",
		"ssh://-oX=y@lab/x", "ssh://lab:/x", "ssh://lab:0/x", "ssh://lab:70000/x", "ssh://lab:ssh/x", "ssh://a$(b)/x", "ssh://[::1/x"} {
		if a, device, err := Parse(text); !errors.Is(err, ErrAddress) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is %+v and %q, %v; want ErrAddress in one line", text, a, device, err)
		}
	}
}

// FuzzParse checks that an accepted address is unchanged by a round trip through text and is not an option to ssh.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"ssh://lab/twin:", "//me@lab:22/x", "ssh://[::1]:2/x", "ssh://[::1]/x", "ssh://-x/y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, device, err := Parse(text)
		if err != nil {
			return
		}
		again, same, err := Parse(a.URL(device))
		if err != nil || again != a || same != device {
			t.Errorf("%q is %+v and %q, written out again %+v and %q, %v", text, a, device, again, same, err)
		}
		if strings.HasPrefix(a.Host, "-") || strings.HasPrefix(a.User, "-") || strings.ContainsAny(a.Host+a.User, " '\"\n") {
			t.Errorf("%q gives %+v to ssh", text, a)
		}
	})
}
