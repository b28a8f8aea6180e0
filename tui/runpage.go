package tui

import (
	"fmt"

	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/tui/aom"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/eventlog"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/loss"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/queue"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// runPage draws one column a queue, or one panel of each when it is maximised. Columns share their axes.
func (m *Model) runPage(r screen.Region) {
	n, focus := m.columns(), 0
	span := aom.Window(m.snapshot, m.whole)
	shared := axes{span, aom.Top(m.snapshot, span), aom.SawTop(m.snapshot, span)}
	for i := range m.snapshot.Queues {
		column := r.Sub(i*r.W/n, 0, (i+1)*r.W/n-i*r.W/n, r.H)
		if m.zoom {
			p := m.focused().panel
			m.panel(column, p, i, i*int(panels)+int(p), shared)
			continue
		}
		y := 0
		for _, row := range rows(r.W/n, r.H) {
			for j, p := range row.panels {
				from, to := j*column.W/len(row.panels), (j+1)*column.W/len(row.panels)
				m.panel(column.Sub(from, y, to-from, row.height), p, i, focus, shared)
				focus++
			}
			y += row.height
		}
	}
}

// axes are what the charts of all queues share.
type axes struct {
	span        aom.Span
	top, sawTop float64
}

func (m *Model) panel(r screen.Region, p panel, i, focus int, a axes) {
	q := &m.snapshot.Queues[i]
	focused := m.focused() == slot{p, i}
	frame, border, title := screen.Thin, theme.Border, theme.Queue(i)
	if focused {
		frame, border = screen.Heavy, theme.Focus
	}
	if p != panelQueue {
		title = theme.Title
	}
	inside := r.Box(frame, border, title, m.title(p, q))
	if p == panelLog {
		m.list(r, inside, tabRun, i, eventlog.Columns(inside.W), focused)
		m.cache.hits[len(m.cache.hits)-1].focus = focus
		return
	}
	m.cache.hits = append(m.cache.hits, hit{region: r, tab: tabRun, focus: focus})
	switch p {
	case panelQueue:
		selected := -1
		if focused && (m.frozen || m.snapshot.State != live.Running) {
			selected = min(m.lists[tabRun].Selected, len(q.Items)-1)
		}
		queue.Draw(inside, q, m.snapshot.Sampled, selected)
	case panelAoM:
		aom.Mean(inside, q, m.snapshot.Now, a.span, a.top, theme.Queue(i))
	case panelSaw:
		aom.Sawtooth(inside, q, m.snapshot.Now, a.span, a.sawTop, theme.Cluster(int(m.snapshot.Watched)))
	case panelLoss:
		m.fates(inside, q, a.span)
	case panelCDF:
		m.aggregations(inside, q, theme.Queue(i))
	case panelCounters:
		loss.Counters(inside, q)
	}
}

// overTime is how tall the panel of fates must be to show the drops against time as well.
const overTime = 8

func (m *Model) fates(r screen.Region, q *live.QueueSnapshot, span aom.Span) {
	if r.H < overTime {
		loss.Draw(r, q)
		return
	}
	loss.Draw(r.Sub(0, 0, r.W, r.H-2), q)
	r.Text(0, r.H-2, theme.Dim, "dropped, against the time axis of the age")
	chart.Spark(r.Sub(0, r.H-1, r.W, 1), loss.Drops(q, span.From, span.To, r.W), theme.Bad)
}

// aggregations draws the CDF, and the histogram beside it where the panel is maximised.
func (m *Model) aggregations(r screen.Region, q *live.QueueSnapshot, style screen.Style) {
	if !m.zoom || r.H < 3 {
		chart.CDF(r, q.Merges, style)
		return
	}
	left, right := r.Sub(0, 0, r.W/2, r.H), r.Sub(r.W/2+1, 0, r.W-r.W/2-1, r.H)
	left.Text(0, 0, theme.Dim, "at most so many")
	chart.CDF(left.Sub(0, 1, left.W, left.H-1), q.Merges, style)
	right.Text(0, 0, theme.Dim, "exactly so many")
	chart.Histogram(right.Sub(0, 1, right.W, right.H-1), q.Merges, style)
}

func (m *Model) title(p panel, q *live.QueueSnapshot) string {
	switch p {
	case panelQueue:
		return fmt.Sprintf("%s, %d slots, out at %v", q.Name, q.Slots, q.OutRate)
	case panelAoM:
		return aom.Title(q)
	case panelSaw:
		return fmt.Sprintf("AoM of cluster %d (%s: next)", m.snapshot.Watched, m.options.Keys.Key(keys.Watch))
	case panelLoss:
		return fmt.Sprintf("fate of %s sent", num.Count(q.Counters.Sent))
	case panelCDF:
		return "CDF of aggregations"
	case panelCounters:
		return "counters (registers)"
	}
	return fmt.Sprintf("events, newest first (%s)", num.Count(q.Events))
}
