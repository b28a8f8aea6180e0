package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/pktgen/trace"
)

// ReadInput reads a file that the user named, or standard input if path is "-". name is the name to use in messages.
func ReadInput(env *Env, path string) (name string, text []byte, err error) {
	if path == "-" {
		text, err = io.ReadAll(env.Stdin)
		return "standard input", text, err
	}
	if text, err = os.ReadFile(path); err != nil {
		return "", nil, &Exit{Kind: olaf.Usage, Err: err}
	}
	return path, text, nil
}

// PrintText prints the text returned by make and ends it with a newline.
func PrintText(env *Env, make func() ([]byte, error)) error {
	text, err := make()
	if err != nil {
		return err
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	_, err = env.Stdout.Write(text)
	return err
}

// CheckEnding rejects a file name that has none of the endings, and a name of an embedded trace.
func CheckEnding(path, what string, endings ...string) error {
	if strings.HasPrefix(path, trace.Builtin) {
		return UsageError("%s is embedded in olafctl and cannot be written; give a file", path)
	}
	if !slices.Contains(endings, strings.ToLower(filepath.Ext(path))) {
		return UsageError("%s: %s are %s", path, what, strings.Join(endings, " or "))
	}
	return nil
}

// WriteAtomically writes a file that becomes visible only when it is complete.
func WriteAtomically(path string, write func(io.Writer) error) (err error) {
	pending, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644))
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, pending.Cleanup()) }()
	if err := write(pending); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return pending.CloseAtomicallyReplace()
}

// RefuseSameFile returns an error if the output file is also the input file.
func RefuseSameFile(in, out string) error {
	a, errA := os.Stat(in)
	b, errB := os.Stat(out)
	if out != "" && (filepath.Clean(in) == filepath.Clean(out) || errA == nil && errB == nil && os.SameFile(a, b)) {
		return UsageError("%s is both read and written; choose another output file", in)
	}
	return nil
}
