package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/olafctl/olaf"
)

func TestConfirmTakesOnlyYesForYes(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		yes, asks    bool
		goesOn       bool
	}{
		{"yes", "y\n", false, true, true}, {"a whole yes", "Yes\n", false, true, true},
		{"no", "n\n", false, true, false}, {"return", "\n", false, true, false}, {"end of input", "", false, true, false},
		{"--yes", "n\n", true, true, true}, {"a script", "n\n", false, false, true},
	} {
		var stderr bytes.Buffer
		f := ConfirmFlag{yes: c.yes}
		err := f.Confirm(t.Context(), &Env{Stdin: strings.NewReader(c.answer), Stderr: &stderr, Asks: c.asks}, "delete 46 entries")
		if (err == nil) != c.goesOn {
			t.Errorf("%s: %v; the command should go on: %v", c.name, err, c.goesOn)
		}
		if asked := strings.Contains(stderr.String(), "delete 46 entries? [y/N]"); asked != (c.asks && !c.yes) {
			t.Errorf("%s: asked %v, printed %q", c.name, asked, stderr.String())
		}
	}
}

func TestConfirmEndsWithTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	silent, hold := io.Pipe()
	defer hold.Close()
	err := new(ConfirmFlag).Confirm(ctx, &Env{Stdin: silent, Stderr: io.Discard, Asks: true}, "go on")
	if exit := (*Exit)(nil); !errors.As(err, &exit) || exit.Kind != olaf.Interrupted {
		t.Errorf("an interrupted question gives %v, want an interruption", err)
	}
}
