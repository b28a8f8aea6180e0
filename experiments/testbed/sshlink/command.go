package sshlink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// hostWord is the first word of the line that agentScript prints. It is followed by the system, the machine, the path
// of olafctl, and the word cached or installed.
const hostWord = "olafctl-host"

// agentScript is the shell script that runs an agent on the other host. Its arguments are the private folder, olafctl's
// path or nothing, the build's hash, a command to put before olafctl, the arguments of a command to run after an agent
// that was killed or nothing, and the arguments of serve. The script removes the folder even after an agent that was
// killed.
const agentScript = `d=$1 b=$2 h=$3 s=$4 k=$5; shift 5
c=${XDG_CACHE_HOME:-$HOME/.cache}/olafctl/agents/$h/olafctl from=installed
if [ -z "$b" ]; then if [ -x "$c" ]; then b=$c from=cached; touch -c "${c%/*}" 2>/dev/null; else b=$(command -v olafctl) || b=-; fi; fi
echo "` + hostWord + ` $(uname -s) $(uname -m) $b $from"
[ "$b" != - ] || exit 127
mkdir -m 700 "$d" || exit 1
$s "$b" device serve --lifeline --listen "unix:$d/s" "$@"
r=$?
[ $r -le 128 ] || [ -z "$k" ] || $s "$b" $k </dev/null >/dev/null 2>&1
rm -rf "$d"
exit $r`

// copyScript is the shell script that stores standard input as the agent of a build. Its argument is the build's hash.
// It removes agents that were not used for 30 days.
const copyScript = `c=${XDG_CACHE_HOME:-$HOME/.cache}/olafctl/agents/$1
umask 077
mkdir -p "$c" && cat >"$c/new.$$" && chmod 700 "$c/new.$$" && mv "$c/new.$$" "$c/olafctl" && {
find "${c%/*}" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} + 2>/dev/null
exit 0; }
rm -f "$c/new.$$"
exit 1`

// command returns an ssh command with the given options that runs a script with its arguments on a host.
func (o *Options) command(a Address, options, script []string) *exec.Cmd {
	args := append([]string{"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=2",
		"-o", "ServerAliveCountMax=4"}, options...)
	args = append(args, a.arguments()...)
	args = append(args, "exec sh -c "+quote(script[0])+" olafctl-sh "+quoteAll(script[1:]))
	cmd := exec.Command("ssh", args...)
	if o.Program != "" {
		cmd = exec.Command("sh", append([]string{"-c", "exec " + o.Program + ` "$@"`, localShell}, args...)...)
	}
	cmd.WaitDelay = Patience
	leaveGroup(cmd) // Ctrl-C ends this program, which then ends ssh
	return cmd
}

// quote quotes a word for the shell on the other host. This shell need not be a POSIX shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}

// otherBuild is the error for a host that does not have this build.
type otherBuild struct {
	platform, binary, version string
	cached                    bool // the binary is our copy
	reached, greeted          bool // the script has started; the agent has started
}

func (e *otherBuild) Error() string { return "another build" }

// describe returns a description of the build that the host has.
func (e *otherBuild) describe() string {
	switch {
	case e.binary == "-" || e.binary == "":
		return "has no olafctl"
	case e.version == "":
		return "has an older olafctl (" + e.binary + ")"
	}
	return "has another build of olafctl (" + e.binary + ", " + strings.ReplaceAll(e.version, "_", " ") + ")"
}

// copyTo copies this program to the user's cache on another host. Errors match ErrBuild.
func (o *Options) copyTo(ctx context.Context, a Address, have *otherBuild) error {
	system, arch, _ := strings.Cut(have.platform, "/")
	switch {
	case have.platform != o.build.Platform:
		return fmt.Errorf("%w: %s %s, and is %s where this one is built for %s; run 'GOOS=%s GOARCH=%s go build ./cmd/olafctl' "+
			"at this commit and put the result into PATH there", ErrBuild, a.Name(), have.describe(), have.platform, o.build.Platform, system, arch)
	case o.Binary != "":
		return fmt.Errorf("%w: %s %s; put this build there", ErrBuild, a.Name(), have.describe())
	case have.cached:
		return fmt.Errorf("%w: %s %s; delete it", ErrBuild, a.Name(), have.describe())
	}
	path, err := o.Executable()
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("copy this program to %s: %w", a.Name(), err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("copy this program to %s: %w", a.Name(), err)
	}
	lacks := fmt.Errorf("%w: %s %s", ErrBuild, a.Name(), have.describe())
	if o.MayCopy == nil {
		return fmt.Errorf("%w; --push copies this one to the user's cache there (%d MB)", lacks, info.Size()>>20)
	}
	question := fmt.Sprintf("%s %s: copy this one to the user's cache there (%d MB)", a.Name(), have.describe(), info.Size()>>20)
	if err := o.MayCopy(ctx, question); err != nil {
		return errors.Join(lacks, err)
	}
	o.note(a, fmt.Sprintf("copying this olafctl (%d MB)…", info.Size()>>20))
	cmd := o.command(a, nil, []string{copyScript, o.build.Hash})
	words := new(tail)
	cmd.Stdin, cmd.Stderr = file, words
	if err := runUntil(ctx, cmd); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("copy this program: %w", explainEnd(a, cmd.ProcessState.ExitCode(), words.all()))
	}
	return nil
}

// runUntil runs a command and kills it when ctx ends.
func runUntil(ctx context.Context, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	cmd.WaitDelay = time.Second
	return cmd.Wait()
}
