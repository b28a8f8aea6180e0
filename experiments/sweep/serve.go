package sweep

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
)

// hello is the first line that a worker process prints. It identifies the process's build.
type hello struct {
	Build string `json:"build"`
}

// reply is a worker process's answer to a job.
type reply struct {
	Key    string          `json:"key"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Do carries out a job in this process.
func (c Commands) Do(ctx context.Context, j Job) (json.RawMessage, error) {
	command, err := c.Find(j.Command)
	if err != nil {
		return nil, err
	}
	if command.Piece != nil {
		return command.Piece(ctx, j.Spec)
	}
	lot, err := command.Run(ctx, j.Spec, j.From, j.Runs)
	if err != nil {
		return nil, err
	}
	return json.Marshal(lot)
}

// ServeJobs runs a worker process. It reads one job per line from r and writes one reply per line to w. When r ends, it
// abandons the current job, because the caller is gone.
func ServeJobs(ctx context.Context, all Commands, build Build, r io.Reader, w io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out := json.NewEncoder(w)
	if err := out.Encode(hello{build.Hash()}); err != nil {
		return err
	}
	jobs := make(chan Job)
	read := make(chan error, 1)
	go func() {
		defer close(jobs)
		defer stop()
		read <- readJobs(ctx, r, jobs)
	}()
	for j := range jobs {
		answer := reply{Key: j.Key}
		result, err := all.Do(ctx, j)
		if ctx.Err() != nil {
			break // the caller is gone
		}
		if answer.Result = result; err != nil {
			answer.Result, answer.Error = nil, oneLine(err)
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		select {
		case err := <-read:
			return err
		default:
			return err
		}
	}
	return <-read
}

// readJobs sends the jobs that it reads from r to the channel, until r or ctx ends.
func readJobs(ctx context.Context, r io.Reader, jobs chan<- Job) error {
	in := json.NewDecoder(bufio.NewReader(r))
	for {
		var j Job
		if err := in.Decode(&j); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		select {
		case jobs <- j:
		case <-ctx.Done():
			return nil
		}
	}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// process is a Worker that runs in a separate process.
type process struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	output *tail
	ended  sync.Once
	err    error
}

// StartProcess starts a worker process. The error matches ErrBuild if the process reports a different build.
func StartProcess(ctx context.Context, name string, cmd *exec.Cmd, build Build) (Worker, error) {
	p := &process{name: name, cmd: cmd, output: new(tail)}
	cmd.Stderr = p.output
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = json.NewDecoder(bufio.NewReader(pipe))
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	var first hello
	if err := p.out.Decode(&first); err != nil {
		return nil, fmt.Errorf("start a worker: %w", errors.Join(p.describeEnd(), p.Close()))
	}
	if first.Build != build.Hash() {
		return nil, errors.Join(fmt.Errorf(
			"%w: the program at %s is not the one that started the sweep; was it rebuilt in the meantime?", ErrBuild,
			cmd.Path),
			p.Close())
	}
	return p, nil
}

func (p *process) Name() string { return p.name }

// Do sends one job to the process and waits for the reply. If ctx ends, it kills the process.
func (p *process) Do(ctx context.Context, j Job) (json.RawMessage, error) {
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	defer stop()
	raw, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Write(append(raw, '\n')); err != nil {
		return nil, p.describeEnd()
	}
	var answer reply
	if err := p.out.Decode(&answer); err != nil {
		return nil, p.describeEnd()
	}
	switch {
	case answer.Key != j.Key:
		return nil, fmt.Errorf("%w: it returned the result of another job", ErrGone)
	case answer.Error != "":
		return nil, errors.New(answer.Error)
	}
	return answer.Result, nil
}

// describeEnd returns an error that describes how the process ended.
func (p *process) describeEnd() error {
	p.wait()
	how := "it ended"
	if p.err != nil {
		how = p.err.Error()
	}
	if last := p.output.firstLine(); last != "" {
		how += ": " + last
	}
	return fmt.Errorf("%w (%s)", ErrGone, how)
}

func (p *process) wait() {
	p.ended.Do(func() {
		_ = p.in.Close() // it may be closed already
		p.err = p.cmd.Wait()
	})
}

// Close ends the process.
func (p *process) Close() error {
	p.wait()
	return nil
}

// tail stores the beginning of a program's error output. The first line explains why a Go program ended.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := tailBytes - len(t.text); room > 0 {
		t.text = append(t.text, b[:min(room, len(b))]...)
	}
	return len(b), nil
}

func (t *tail) firstLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(string(t.text)), "\n")
	return line
}
