// Package sshlink starts an agent on another host through the ssh program and forwards the agent's socket to this host.
// The agent ends when its standard input ends, or when it receives no sign of life from the other side during Patience.
// The agent runs the same build as this program, which is copied to the other host if it is missing there.
package sshlink

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/olafctl/olaf"
)

// ErrAddress reports that a text is not an address of a device on another host.
var ErrAddress = olaf.NewError(olaf.Usage, "no address of a device on another host")

// Address is the address of another host in the form that ssh uses.
type Address struct {
	User string // empty for ssh's choice
	Host string // name, alias of the user's ssh configuration, or IP address
	Port int    // 0 for ssh's choice
}

// form is the syntax of addresses that messages show.
const form = "ssh://[user@]host[:port]/DEVICE"

// Parse splits an address of the form //[user@]host[:port]/DEVICE, which may begin with ssh:. The device may be empty.
// Errors match ErrAddress.
func Parse(text string) (a Address, device string, err error) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "ssh:"), "//")
	if !ok {
		return a, "", fmt.Errorf("%w: %q; write %s", ErrAddress, text, form)
	}
	place, device, ok := strings.Cut(rest, "/")
	if !ok {
		return a, "", fmt.Errorf("%w: %q has no device after the host; write %s", ErrAddress, text, form)
	}
	if at := strings.LastIndexByte(place, '@'); at >= 0 {
		if a.User, place = place[:at], place[at+1:]; !isPlain(a.User) {
			return a, "", fmt.Errorf("%w: %q is no name of a user; write %s", ErrAddress, a.User, form)
		}
	}
	if a.Host, a.Port, err = splitPort(place); err != nil {
		return a, "", err
	}
	if !isPlain(a.Host) {
		return a, "", fmt.Errorf("%w: %q is no name of a host; write %s", ErrAddress, a.Host, form)
	}
	return a, device, nil
}

// splitPort splits an address of the form host, host:port, [v6] or [v6]:port.
func splitPort(place string) (host string, port int, err error) {
	if v6, ok := strings.CutPrefix(place, "["); ok && strings.HasSuffix(v6, "]") {
		return strings.TrimSuffix(v6, "]"), 0, nil
	}
	if !strings.Contains(place, ":") {
		return place, 0, nil
	}
	host, text, err := net.SplitHostPort(place)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%w: the port of %q is not 1 to 65535; write %s", ErrAddress, place, form)
	}
	return host, port, nil
}

// isPlain reports whether the name of a user or a host can be passed to ssh. Such a name is not an option and needs no
// quotes in a shell.
func isPlain(name string) bool {
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`"'`+"`"+`$&|;<>()*?[]{}#~!\/@,`, r)
	})
}

// Name returns the address as [user@]host[:port] for messages.
func (a Address) Name() string {
	name := a.Host
	if a.Port != 0 {
		name = net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
	}
	if a.User != "" {
		name = a.User + "@" + name
	}
	return name
}

// URL returns the address of a device on the host.
func (a Address) URL(device string) string {
	host := a
	if strings.Contains(a.Host, ":") && a.Port == 0 {
		host.Host = "[" + a.Host + "]"
	}
	return "ssh://" + host.Name() + "/" + device
}

// arguments returns the address in the form of arguments for ssh.
func (a Address) arguments() []string {
	args := []string{"--", a.Host}
	if a.User != "" {
		args = []string{"-l", a.User, "--", a.Host}
	}
	if a.Port != 0 {
		args = append([]string{"-p", strconv.Itoa(a.Port)}, args...)
	}
	return args
}
