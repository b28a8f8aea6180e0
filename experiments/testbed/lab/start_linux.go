package lab

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
)

// StartHolder starts a holder in a new session, passes the testbed to its standard input, and returns the line that it
// prints when the testbed is up. The holder outlives this process. If the context ends before the line is printed, the
// holder is asked to remove what it has built.
func StartHolder(ctx context.Context, holder *exec.Cmd, stdin []byte) (line string, err error) {
	holder.Stdin, holder.Dir = bytes.NewReader(stdin), "/"
	holder.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := holder.StdoutPipe()
	if err != nil {
		return "", err
	}
	words, err := holder.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := holder.Start(); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = holder.Process.Signal(syscall.SIGTERM) }) // the holder may have ended
	line, err = bufio.NewReader(out).ReadString('\n')
	if stop() && err == nil && strings.HasPrefix(line, HeldPrefix) {
		go func() { _ = holder.Wait() }() // the holder may end before this process
		return line, nil
	}
	why, _ := io.ReadAll(words)
	_ = holder.Wait() // the reason is in stderr
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return "", fmt.Errorf("%w: %s", ErrNotUp, bytes.TrimPrefix(bytes.TrimSpace(why), []byte("olafctl: ")))
}
