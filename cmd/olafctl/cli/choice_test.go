package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestChoose(t *testing.T) {
	type colour string
	picked := colour("red")
	cmd := &cobra.Command{Use: "paint", Run: func(*cobra.Command, []string) {}}
	Choose(cmd, &picked, "colour", "what to paint with", "red", "blue")
	flag := cmd.Flags().Lookup("colour")
	if flag.DefValue != "red" || flag.Usage != "what to paint with: red|blue" {
		t.Errorf("default %q, usage %q", flag.DefValue, flag.Usage)
	}
	err := cmd.Flags().Parse([]string{"--colour", "Blue"})
	var refused *ChoiceError
	if !errors.As(err, &refused) || !strings.Contains(refused.Error(), `"Blue" is not one of red, blue`) || picked != "red" {
		t.Errorf("%v, picked %s", err, picked)
	}
	if err := cmd.Flags().Parse([]string{"--colour", "blue"}); err != nil || picked != "blue" {
		t.Errorf("%v, picked %s", err, picked)
	}
	offers, found := cmd.GetFlagCompletionFunc("colour")
	if !found {
		t.Fatal("nothing is offered")
	}
	if words, _ := offers(cmd, nil, ""); strings.Join(words, " ") != "red blue" {
		t.Errorf("offers %v", words)
	}
	other := colour("")
	Choose(cmd, &other, "other", "red when it is warm, blue otherwise", "red", "blue")
	if usage := cmd.Flags().Lookup("other").Usage; usage != "red when it is warm, blue otherwise" {
		t.Errorf("usage %q", usage)
	}
}
