package sshlink

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/olafctl/olaf"
)

var (
	// ErrSSH reports that the ssh program could not connect or that the connection broke.
	ErrSSH = olaf.NewError(olaf.Device, "no ssh connection")
	// ErrShell reports that the shell that starts the agent on the other host failed.
	ErrShell = olaf.NewError(olaf.Device, "the shell there failed")
	// ErrForward reports that the other host's sshd does not forward unix sockets.
	ErrForward = olaf.NewError(olaf.Device, "sshd forwards no unix sockets")
	// ErrBuild reports that the other host does not have this build of the program.
	ErrBuild = olaf.NewError(olaf.Device, "not this build of olafctl")
)

// messagePrefix is the first part of the messages that agents print.
const messagePrefix = "olafctl: "

// localShell is the name by which the shell that runs the ssh program of OLAFCTL_SSH reports its errors.
const localShell = "olafctl-ssh"

// exitSSH is the exit code that ssh itself uses. All other exit codes come from programs on the other host.
const exitSSH = 255

// remedy is advice for the user about a message that contains the words. LOGIN stands for the arguments of ssh for the
// host, KEY for the host's name in the file of known keys.
type remedy struct{ words, advice string }

// sshRemedies are for messages of ssh.
var sshRemedies = []remedy{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", "the host's key is not the known one: ask its owner, then 'ssh-keygen -R KEY'"},
	{"Host key verification failed", "its key is not known here: compare it once with 'ssh LOGIN'"},
	{"Permission denied", "ssh may not ask for a password here: load a key with ssh-add, or try 'ssh -o BatchMode=yes LOGIN true'"},
	{"Too many authentication failures", "name one key with IdentityFile and IdentitiesOnly in ~/.ssh/config"},
	{"Could not resolve hostname", "check the name, or add the host to ~/.ssh/config"},
	{"Connection refused", "start sshd there, or give its port: ssh://HOST:PORT/DEVICE"},
	{"timed out", "check that the host is up and reachable"},
	{"No route to host", "check that the host is up and reachable"},
	{"Could not request local forwarding", "another forwarding of the ssh configuration is in the way"},
	{localShell + ": ", "correct OLAFCTL_SSH"},
}

// shellRemedies are for messages of the shell on the other host.
var shellRemedies = []remedy{
	{"No space left on device", "free some space there"},
	{"sudo: not found", "install sudo there, or log in as root and leave sudo out of the file"},
	{"sudo: command not found", "install sudo there, or log in as root and leave sudo out of the file"},
	{"a password is required", "sudo may not ask for a password there: allow olafctl without one"},
}

// explainEnd returns the error of a session that has ended. It contains ssh's message with advice, or the error from
// the other host.
func explainEnd(a Address, code int, lines []string) error {
	all := strings.Join(lines, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if message, ok := strings.CutPrefix(lines[i], messagePrefix); ok {
			return fmt.Errorf("%s: %w", a.Name(), olaf.NewError(kindOf(code), message))
		}
	}
	reason := "it ended without a word"
	if len(lines) > 0 {
		reason = strings.TrimSuffix(lines[len(lines)-1], ".")
	}
	isSSH := code == exitSSH || code < 0 || strings.Contains(all, localShell+": ")
	remedies := shellRemedies
	if isSSH {
		remedies = sshRemedies
	}
	if i := slices.IndexFunc(remedies, func(r remedy) bool { return strings.Contains(all, r.words) }); i >= 0 {
		reason += "; " + a.completeAdvice(remedies[i].advice)
	}
	if isSSH {
		return fmt.Errorf("%w to %s: %s", ErrSSH, a.Name(), reason)
	}
	return fmt.Errorf("%s: %w with exit code %d: %s", a.Name(), ErrShell, code, reason)
}

// completeAdvice replaces the words in capitals of a text by the host's names.
func (a Address) completeAdvice(text string) string {
	login, key := a.Host, a.Host
	if a.User != "" {
		login = a.User + "@" + login
	}
	if a.Port != 0 {
		login, key = fmt.Sprintf("-p %d %s", a.Port, login), fmt.Sprintf(`"[%s]:%d"`, a.Host, a.Port)
	}
	return strings.NewReplacer("LOGIN", login, "KEY", key, "HOST", a.Host).Replace(text)
}

// kindOf returns the kind of failure for an agent's exit code.
func kindOf(code int) olaf.Kind {
	if code == exitUsage {
		return olaf.Usage
	}
	return olaf.Device
}

// tail stores the last lines of a program's messages.
type tail struct {
	mu   sync.Mutex
	text string
}

// maxTail is the maximum amount of text, in bytes, that a tail stores.
const maxTail = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text += string(p)
	if more := len(t.text) - maxTail; more > 0 {
		t.text = t.text[more:]
	}
	return len(p), nil
}

// all returns the stored lines, without empty lines and the frames around ssh's warnings.
func (t *tail) all() (lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.Lines(t.text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "@@@@") {
			lines = append(lines, strings.Trim(line, "@ "))
		}
	}
	return lines
}

// last returns the last stored line.
func (t *tail) last() string {
	if lines := t.all(); len(lines) > 0 {
		return lines[len(lines)-1]
	}
	return "no message"
}
