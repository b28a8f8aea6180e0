package monitor

import "encoding/json"

// panel is a graph on the Grafana dashboard.
type panel struct {
	title, kind, unit string // in Grafana's terms
	queries           []query
	width             int // of 24
}

// query selects a set of lines in a panel.
type query struct{ expr, legend string }

// panels lists the panels of the Grafana dashboard from left to right and top to bottom.
var panels = []panel{
	{"Work", "bargauge", "percentunit", []query{{`olafctl_work_done / (olafctl_work_steps > 0)`, "{{work}}"}}, 8},
	{"Runs", "stat", "short", []query{{`sum by (valid) (olafctl_runs_total)`, "valid: {{valid}}"},
		{`olafctl_runs_planned`, "planned, {{experiment}}"}}, 8},
	{"Published numbers", "bargauge", "short", []query{{`sum by (verdict) (olafctl_published_numbers)`, "{{verdict}}"}},
		8},
	{"Sweep: cells", "stat", "short", []query{{`olafctl_sweep_cells_done`, "done"}, {`olafctl_sweep_cells`, "of"},
		{`olafctl_sweep_cells_failed`, "failed"}, {`olafctl_sweep_workers`, "workers"}}, 8},
	{"Sweep: results per second", "timeseries", "short",
		[]query{{`rate(olafctl_work_done{work="sweep"}[1m])`, "stored"}}, 8},
	{"Sweep: time left", "stat", "s", []query{
		{`(olafctl_work_steps{work="sweep"} - olafctl_work_done{work="sweep"}) / (rate(olafctl_work_done{work="sweep"}[1m]) > 0)`, "left"}}, 8},
	{"Age of Model per cluster", "timeseries", "ns",
		[]query{{`olafctl_metric_mean{metric="aom_cluster_ns"}`, "{{configuration}}"}}, 12},
	{"Updates lost, as the paper counts", "timeseries", "percent",
		[]query{{`olafctl_metric_mean{metric="lost_pct"}`, "{{configuration}}"}}, 12},
	{"Relative half-width of the 95 % interval", "timeseries", "percentunit",
		[]query{{`olafctl_metric_ci95{metric="aom_cluster_ns"} / olafctl_metric_mean{metric="aom_cluster_ns"}`,
			"{{configuration}}"}}, 12},
	{"Reward of the training", "timeseries", "short",
		[]query{{`olafctl_training_reward`, "mean of the newest updates"}}, 12},
	{"Watched run: Age of Model", "timeseries", "s",
		[]query{{`olafctl_live_queue_aom_seconds`, "{{queue}}, {{reading}}"}}, 12},
	{"Watched run: inside the queue", "timeseries", "short", []query{{`olafctl_live_queue_occupancy`, "{{queue}}"}},
		12},
	{"Agent: calls", "timeseries", "reqps",
		[]query{{`sum by (method, code) (rate(olafctl_calls_total[5m]))`, "{{method}} {{code}}"}}, 12},
	{"Agent: connected clients", "timeseries", "short", []query{{`olafctl_calls_open`, "{{method}}"}}, 12},
}

const (
	panelHeight = 8
	pageWidth   = 24
)

// Dashboard returns a Grafana dashboard with all metrics of a Monitor, in the JSON form that Grafana imports.
func Dashboard() ([]byte, error) {
	source := map[string]any{"type": "prometheus", "uid": "${source}"}
	var drawn []any
	x, y := 0, 0
	for i, p := range panels {
		if x+p.width > pageWidth {
			x, y = 0, y+panelHeight
		}
		var targets []any
		for k, q := range p.queries {
			targets = append(targets, map[string]any{"refId": string(rune('A' + k)), "datasource": source,
				"expr": q.expr, "legendFormat": q.legend})
		}
		drawn = append(drawn, map[string]any{
			"id": i + 1, "title": p.title, "type": p.kind, "datasource": source, "targets": targets,
			"gridPos":     map[string]any{"x": x, "y": y, "w": p.width, "h": panelHeight},
			"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit, "min": 0}, "overrides": []any{}},
		})
		x += p.width
	}
	return json.MarshalIndent(map[string]any{
		"title": "olafctl", "uid": "olafctl", "schemaVersion": 39, "refresh": "5s",
		"time": map[string]any{"from": "now-30m", "to": "now"},
		"templating": map[string]any{"list": []any{map[string]any{"name": "source", "label": "Prometheus",
			"type": "datasource", "query": "prometheus"}}},
		"panels": drawn,
	}, "", "  ")
}
