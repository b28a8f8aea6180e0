package main

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/olafctl/olaf/cmd/olafctl/cli"
)

// scraper replaces the standard error of a command with a metrics server, and fetches the metrics on every write.
type scraper struct {
	mu   sync.Mutex
	t    *testing.T
	at   string
	told strings.Builder // all scrapes
	said strings.Builder
	seen func(told string) // called after each scrape; may be nil
}

var servedAt = regexp.MustCompile(`metrics: (http://127\.0\.0\.1:[0-9]+/metrics)`)

func (s *scraper) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.Write(p)
	if found := servedAt.FindSubmatch(p); found != nil {
		s.at = string(found[1])
	}
	if s.at == "" {
		return len(p), nil
	}
	told := s.scrape()
	s.told.WriteString(told)
	if s.seen != nil && told != "" {
		s.seen(told)
	}
	return len(p), nil
}

// scrape fetches the metrics once; it returns "" if the command has ended.
func (s *scraper) scrape() string {
	answer, err := http.Get(s.at)
	if err != nil {
		s.t.Log(err)
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Error(err)
	}
	return string(body)
}

// TestCommandsExportMetrics checks the metrics of commands while they run.
func TestCommandsExportMetrics(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"simulate --preset multihop --duration 1s --runs 2 --keep=false -o jsonl", []string{
			`olafctl_work_steps{work="simulate"} 2`, `olafctl_runs_total{configuration="olaf",experiment="simulate",valid="true"} 1`}},
		{"reproduce olaf/table1 --runs 2", []string{
			`olafctl_work_done{work="olaf/table1"} 8`, `olafctl_runs_planned{experiment="olaf/table1"} 8`, `olafctl_published_numbers{experiment="olaf/table1",verdict="`}},
		{"experiment run olaf/table1 --runs 2 --keep=false", []string{
			`olafctl_work_done{work="olaf/table1"} 8`, `olafctl_runs_planned{experiment="olaf/table1"} 8`, `olafctl_published_numbers{experiment="olaf/table1",verdict="`}},
		{"tui --plain --speed max --updates 5", []string{`olafctl_live_queue_counted{counter="in",queue="olaf"} `}},
		{"train --workers 2 --clusters 1 --iterations 2", []string{`olafctl_work_steps{work="train"} 4`, "olafctl_training_reward "}},
	} {
		out := &scraper{t: t}
		env := testEnvironment(out, out)
		env.Interactive = true
		if code := run(t.Context(), env, append(strings.Fields(c.args), "--metrics", "0")); code != cli.ExitDone && code != cli.ExitMissed {
			t.Errorf("%s: exit code %d: %s", c.args, code, &out.said)
		}
		for _, want := range c.want {
			if !strings.Contains(out.told.String(), want) {
				t.Errorf("%s: nobody told %s", c.args, want)
			}
		}
		if _, err := http.Get(out.at); err == nil {
			t.Errorf("%s is over and still tells", c.args)
		}
	}
}

// TestServeExportsMetrics checks the metrics of an agent while a client uses it.
func TestServeExportsMetrics(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	socket := "unix:" + t.TempDir() + "/s"
	out := &scraper{t: t}
	ready := regexp.MustCompile(`serving .* at `)
	began := make(chan struct{})
	out.seen = func(string) {
		if ready.MatchString(out.said.String()) {
			close(began)
			out.seen = nil
		}
	}
	env := testEnvironment(io.Discard, out)
	done := make(chan int, 1)
	go func() { done <- run(ctx, env, []string{"serve", "--listen", socket, "--metrics", "0"}) }()
	<-began
	client := testEnvironment(io.Discard, io.Discard)
	if code := run(ctx, client, []string{"tables", "show", "--target", socket}); code != cli.ExitDone {
		t.Fatalf("tables show: exit code %d", code)
	}
	// The client sees the end of a call before the server counts it.
	const want = `olafctl_calls_total{code="OK",method="/p4.v1.P4Runtime/Read"}`
	told := ""
	for looked := time.Now(); !strings.Contains(told, want); told = out.scrape() {
		if time.Since(looked) > time.Minute {
			t.Fatalf("nobody tells %s in\n%s", want, told)
		}
	}
	stop()
	if code := <-done; code != cli.ExitDone {
		t.Errorf("serve: exit code %d: %s", code, &out.said)
	}
}
