package tables

import (
	"context"
	"errors"
	"fmt"
	"os"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"github.com/p4lang/p4runtime/go/p4/v1"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/cmd/olafctl/cli"
	"github.com/olafctl/olaf/p4ctl"
	"github.com/olafctl/olaf/p4ctl/conformance"
	"github.com/olafctl/olaf/p4ctl/p4"
)

// conformanceFlags are the flags of tables conformance.
type conformanceFlags struct {
	cli.ControllerFlags
	device uint64
	info   string
	config string
	write  bool
}

func newTablesConformanceCmd(env *cli.Env) *cobra.Command {
	var f conformanceFlags
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Test any P4Runtime server against the specification",
		Long: `Test any P4Runtime server against the specification, clause by clause. By default only clauses that change nothing are
tested; --write also pushes the pipeline, which empties the tables, and takes over as primary. A server with a live primary is
refused. Exit code 4: a clause failed.`,
		Example: `  olafctl tables conformance -d 127.0.0.1:9559
  olafctl tables conformance -d 127.0.0.1:9559 --write -o json
  olafctl tables conformance -d 10.0.0.7:9559 --device-id 3 --p4info switch.p4info.txtpb --p4-config switch.bin --write`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env) },
	}
	f.Target = "127.0.0.1:9559"
	cmd.Flags().VarP((*cli.TargetFlag)(&f.Target), "device", "d",
		"P4Runtime server: HOST:PORT or unix:PATH; 'olafctl device serve' starts one")
	cmd.Flags().Uint64Var(&f.device, "device-id", p4.DeviceID, "device id on the server")
	cmd.Flags().StringVar(&f.info, "p4info", "", "P4Info to push, text or binary")
	cmd.Flags().StringVar(&f.config, "p4-config", "", "device config to push with --p4info")
	cmd.Flags().BoolVar(&f.write, "write", false, "also run tests that clear tables or replace the primary")
	cli.AddFormatFlag(cmd, &f.Out)
	return cmd
}

func (f *conformanceFlags) run(ctx context.Context, env *cli.Env) error {
	config, err := f.readPipeline()
	if err != nil {
		return err
	}
	secure, err := env.TLS.Config(env.Now())
	if err != nil {
		return err
	}
	conn, err := p4ctl.Connect(f.Target, secure)
	if err != nil {
		return err
	}
	defer conn.Close()
	d := conformanceDocument{Head: cli.Check("tables"), Target: f.Target, DeviceID: f.device, Wrote: f.write,
		Clauses: []clauseRow{}}
	stopped := conformance.Run(ctx, conformance.Target{Conn: conn, DeviceID: f.device, Config: config}, f.write,
		d.addResult)
	if len(d.Clauses) > 0 {
		if err := d.printClauses(env, f.Out); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() == nil && d.Failed > 0:
		return &cli.Exit{Kind: olaf.Missed, Err: fmt.Errorf("%d of %d clauses failed", d.Failed, len(d.Clauses))}
	case errors.Is(stopped, conformance.ErrInUse) && f.device == p4.DeviceID:
		return fmt.Errorf("%s: %w; %s ends its run, and then this command works", f.Target, stopped,
			env.TLS.Takeover(f.Target))
	case errors.Is(stopped, conformance.ErrInUse):
		return fmt.Errorf("%s: %w; end it there first", f.Target, stopped)
	case stopped != nil:
		return cli.ExplainAgent(f.Target, fmt.Errorf("%s: %w", f.Target, stopped))
	}
	return nil
}

// readPipeline returns the pipeline to push, or nil to keep the pipeline that the server has.
func (f *conformanceFlags) readPipeline() (*v1.ForwardingPipelineConfig, error) {
	if f.info == "" {
		if f.config != "" {
			return nil, cli.UsageError("--p4-config goes with --p4info")
		}
		return nil, nil
	}
	text, err := os.ReadFile(f.info)
	if err != nil {
		return nil, cli.UsageError("%v", err)
	}
	c := &v1.ForwardingPipelineConfig{P4Info: new(configv1.P4Info)}
	if err := prototext.Unmarshal(text, c.P4Info); err != nil {
		if proto.Unmarshal(text, c.P4Info) != nil {
			return nil, cli.UsageError("%s is not a P4Info, neither as text (%v) nor in binary form", f.info, err)
		}
	}
	if f.config != "" {
		if c.P4DeviceConfig, err = os.ReadFile(f.config); err != nil {
			return nil, cli.UsageError("%v", err)
		}
	}
	return c, nil
}

// conformanceDocument is the JSON document olafctl.check/v1.
type conformanceDocument struct {
	cli.Head
	Target   string      `json:"target"`
	DeviceID uint64      `json:"device_id"`
	Wrote    bool        `json:"wrote"`
	Passed   int         `json:"passed"`
	Failed   int         `json:"failed"`
	Skipped  int         `json:"skipped"`
	Clauses  []clauseRow `json:"clauses"`
}

type clauseRow struct {
	ID       string              `json:"id"`
	Section  string              `json:"section"`
	Sentence string              `json:"sentence"`
	Writes   bool                `json:"writes"`
	Outcome  conformance.Outcome `json:"outcome"`
	Seen     string              `json:"seen"`
}

func (d *conformanceDocument) addResult(r conformance.Result) {
	switch r.Outcome {
	case conformance.Passed:
		d.Passed++
	case conformance.Failed:
		d.Failed++
	case conformance.Skipped:
		d.Skipped++
	}
	d.Clauses = append(d.Clauses, clauseRow{r.ID, r.Section, r.Sentence, r.Writes, r.Outcome, cli.OnTerminal(r.Seen)})
}

func (d *conformanceDocument) printClauses(env *cli.Env, out cli.Format) error {
	if out == cli.JSON {
		return cli.WriteJSON(env.Stdout, d)
	}
	list := cli.Grid{Header: []string{"CLAUSE", "RESULT", "PROMISE", "SEEN", "SECTION"}}
	for _, c := range d.Clauses {
		seen, section := c.Seen, c.Section
		if out == cli.Table { // a table has room only for the details of failed and skipped clauses
			section = ""
			if c.Outcome == conformance.Passed {
				seen = ""
			}
		}
		list.Add(c.ID, string(c.Outcome), c.Sentence, seen, section)
	}
	if out == cli.Table {
		list.Header = list.Header[:4]
	}
	if err := list.Write(env, out); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "%d clauses passed, %d failed, %d skipped\n", d.Passed, d.Failed, d.Skipped)
	return nil
}
