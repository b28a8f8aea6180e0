package tui

import (
	"fmt"
	"strings"

	"github.com/olafctl/olaf/experiments/live"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/clusters"
	"github.com/olafctl/olaf/tui/eventlog"
	"github.com/olafctl/olaf/tui/form"
	"github.com/olafctl/olaf/tui/help"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/life"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/registers"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/tables"
	"github.com/olafctl/olaf/tui/testbed"
	"github.com/olafctl/olaf/tui/theme"
)

// View is the frame as terminal text. It is drawn again only after something changed.
func (m Model) View() string {
	if !m.cache.fresh {
		m.draw()
		m.cache.frame = m.cache.grid.ANSI(m.options.Theme.Palette())
		m.cache.fresh = true
	}
	return m.cache.frame
}

// Text is the frame without styles.
func (m *Model) Text() string {
	m.draw()
	return m.cache.grid.Text()
}

// SVG is the frame as a picture.
func (m *Model) SVG() string {
	m.draw()
	looks, fore, back := m.options.Theme.Looks()
	return m.cache.grid.SVG(looks, fore, back)
}

func (m *Model) draw() {
	g := &m.cache.grid
	g.Resize(m.width, m.height)
	m.cache.hits = m.cache.hits[:0]
	all := g.All()
	if m.width < minWidth || m.height < minHeight {
		tooSmall(all)
		return
	}
	m.tabBar(all.Sub(0, 0, all.W, 1))
	m.header(all.Sub(0, 1, all.W, 1))
	top := 2
	if m.gauges() {
		m.rates(all.Sub(0, 2, all.W, 1))
		top++
	}
	body := all.Sub(0, top, all.W, m.height-m.chrome())
	m.body(body)
	if caption := m.caption(); caption != "" {
		n := m.captionRows()
		m.drawCaption(all.Sub(0, m.height-1-n, all.W, n), caption)
	}
	m.footer(all.Sub(0, m.height-1, all.W, 1))
	m.overlay(all)
}

// chrome is how many rows are not the page's.
func (m *Model) chrome() int {
	n := 3
	if m.gauges() {
		n++
	}
	return n + m.captionRows()
}

// captionRows is how many rows the tour's words take; at least two, so that the page moves rarely.
func (m *Model) captionRows() int {
	caption := m.caption()
	if caption == "" {
		return 0
	}
	return min(max(len(chart.Wrap(caption, m.width-captionMargin)), 2), 4)
}

const captionMargin = 4

func (m *Model) gauges() bool { return m.tab == tabRun }

func tooSmall(r screen.Region) {
	for y, line := range chart.Wrap(fmt.Sprintf("The terminal is too small: %d×%d. The dashboard needs %d×%d; 'olafctl tui --plain' works anywhere.", r.W, r.H, minWidth, minHeight), max(r.W, 1)) {
		r.Text(0, y, theme.Warn, line)
	}
}

func (m *Model) tabBar(r screen.Region) {
	x := 1
	for i, name := range tabNames {
		label := fmt.Sprintf(" %d %s ", i+1, name)
		switch {
		case r.W < 80 && tab(i) != m.tab:
			label = fmt.Sprintf("%d %.4s", i+1, name)
		case r.W < 100:
			label = fmt.Sprintf("%d %s", i+1, name)
		}
		style := theme.Dim
		if tab(i) == m.tab {
			style = theme.Selected
		}
		next := r.Text(x, 0, style, label)
		m.cache.hits = append(m.cache.hits, hit{region: r.Sub(x, 0, next-x, 1), tab: tab(i)})
		x = next + 1
	}
	text, style := m.state()
	if x+len([]rune(text)) >= r.W {
		text, _, _ = strings.Cut(text, " ")
		text += " " + m.snapshot.Speed.String()
	}
	r.Right(r.W-1, 0, style, text)
}

// state is one mark and word for how time goes.
func (m *Model) state() (string, screen.Style) {
	s := m.snapshot
	if s == nil {
		return "… starting", theme.Dim
	}
	speed := s.Speed.String()
	switch {
	case s.State == live.Failed:
		return "✗ FAILED", theme.Bad
	case m.frozen:
		return "❄ VIEW FROZEN, run " + s.State.String() + " at " + speed, theme.Warn
	case s.State == live.Paused:
		return "‖ PAUSED, speed " + speed, theme.Warn
	case s.State == live.Done:
		return "■ DONE", theme.Good
	}
	return "▶ running at " + speed, theme.Good
}

// header says what runs where, whether it counts, and how far it is.
func (m *Model) header(r screen.Region) {
	s := m.snapshot
	if s == nil {
		return
	}
	x := r.Text(1, 0, theme.Strong, s.Plan.Spec.Experiment)
	x = r.Text(x+1, 0, theme.Dim, "on")
	x = r.Text(x+1, 0, theme.Text, s.Device.Address+" "+s.Device.Build)
	if s.Sampled {
		x = r.Text(x+1, 0, theme.Warn, "sampled")
	}
	word, style := m.validity()
	x = r.Text(x+2, 0, style, word)
	x = r.Text(x+2, 0, theme.Text, num.Time(s.Now))
	x = r.Text(x+1, 0, theme.Dim, "of "+num.Duration(s.End.Sub(0)))
	right := m.eta()
	if m.bench != nil {
		right += fmt.Sprintf("  bench %d/%d", m.bench.Done, m.bench.Total)
		if m.bench.Finished {
			right += " ✓"
		}
	}
	for _, short := range []string{right, num.Percent(m.percent())} {
		if right = short; x+1+len([]rune(right)) < r.W {
			break
		}
	}
	r.Right(r.W-1, 0, theme.Dim, right)
	if room := r.W - 2 - len([]rune(right)) - x - 2; room >= 6 {
		bar := r.Sub(x+1, 0, min(room, 40), 1)
		chart.Gauge(bar, float64(s.Now), float64(s.End), theme.Good)
		for _, at := range m.marks {
			bar.Set(int(float64(at)/float64(max(s.End, 1))*float64(bar.W-1)), 0, '◆', theme.Changed)
		}
	}
}

func (m *Model) validity() (string, screen.Style) {
	s := m.snapshot
	if s.Err != nil && s.State == live.Failed {
		return "✗ FAILED", theme.Bad
	}
	for i := range s.Queues {
		if s.Queues[i].Invalid != "" {
			return "✗ INVALID", theme.Bad
		}
	}
	if m.bench != nil && m.bench.Invalid > 0 {
		return fmt.Sprintf("✗ %d INVALID", m.bench.Invalid), theme.Bad
	}
	return "✓ valid", theme.Good
}

// percent is how much of the traffic was sent.
func (m *Model) percent() float64 {
	if m.snapshot.Total <= 0 {
		return 100
	}
	return 100 * float64(m.snapshot.Sent) / float64(m.snapshot.Total)
}

func (m *Model) eta() string {
	s := m.snapshot
	text := fmt.Sprintf("sent %s", num.Percent(m.percent()))
	if s.State == live.Running && s.Speed > 0 && s.End > s.Now {
		text += fmt.Sprintf(", %s left", num.NS(float64(s.End-s.Now)/float64(s.Speed)*1e9))
	}
	return text
}

// rates draws what comes in and what goes out, one queue a column.
func (m *Model) rates(r screen.Region) {
	if m.snapshot == nil {
		return
	}
	n := m.columns()
	for i := range m.snapshot.Queues {
		q := &m.snapshot.Queues[i]
		c := r.Sub(i*r.W/n, 0, (i+1)*r.W/n-i*r.W/n, 1)
		line := float64(m.snapshot.Plan.Spec.Workload.LineRate)
		bar := max((c.W-34)/2, 0)
		x := c.Text(1, 0, theme.Dim, "in ")
		chart.Gauge(c.Sub(x, 0, bar, 1), q.InRate, line, theme.Text)
		x = c.Text(x+bar, 0, theme.Text, fmt.Sprintf(" %-9s", num.Rate(q.InRate)))
		x = c.Text(x+1, 0, theme.Dim, "out ")
		chart.Gauge(c.Sub(x, 0, bar, 1), q.OutputRate, float64(q.OutRate), theme.Queue(i))
		c.Text(x+bar, 0, theme.Text, " "+num.Rate(q.OutputRate))
	}
}

func (m *Model) body(r screen.Region) {
	if m.snapshot == nil {
		r.Text(1, 0, theme.Dim, "starting…")
		return
	}
	switch m.tab {
	case tabRun:
		m.runPage(r)
	case tabClusters:
		m.clustersPage(r)
	case tabResults:
		m.resultsPage(r)
	default:
		m.inspectionPage(r)
	}
}

// clustersPage lists the clusters, one queue beside the other where there is room.
func (m *Model) clustersPage(r screen.Region) {
	n := m.columns()
	if r.W/n < 50 {
		n = 1
	}
	for i := range n {
		part := r.Sub(i*r.W/n, 0, r.W/n, r.H)
		q := &m.snapshot.Queues[i]
		title := fmt.Sprintf("%s at %v, by %s", q.Name, q.OutRate, clusters.Sorts[m.sortBy])
		inside := part.Box(screen.Thin, theme.Border, theme.Queue(i), title)
		m.list(part, inside, tabClusters, i, clusters.Columns(inside.W), i == 0 || n > 1)
	}
}

// inspectionPage lists tables, registers or devices.
func (m *Model) inspectionPage(r screen.Region) {
	in := m.inspection
	if in == nil {
		text := "asking the device…"
		if m.inspectErr != "" {
			text = m.inspectErr
		}
		r.Text(1, 0, theme.Dim, text)
		return
	}
	head := r.Sub(0, 0, r.W, 1)
	rest := r.Sub(0, 1, r.W, r.H-1)
	columns := tables.Columns
	switch m.tab {
	case tabTables:
		text, primary := tables.Role(in)
		style := theme.Warn
		if primary {
			style = theme.Good
		}
		head.Text(1, 0, style, text)
		if in.TablesError != nil {
			head.Text(1, 0, theme.Bad, in.TablesError.Error())
		}
	case tabRegisters:
		columns = registers.Columns(r.W)
		head.Text(1, 0, theme.Dim, "* changed since the last look; a look latches the counters")
	case tabTestbed:
		columns = testbed.Columns
		head.Text(1, 0, theme.Dim, fmt.Sprintf("%d device(s); tables over P4Runtime at %s", len(in.Cards), in.Target))
	}
	inside := rest.Box(screen.Thin, theme.Border, theme.Title, tabNames[m.tab])
	const aboutRows = 2
	if inside.H > 3*aboutRows {
		m.about(inside.Sub(0, inside.H-aboutRows, inside.W, aboutRows))
		inside = inside.Sub(0, 0, inside.W, inside.H-aboutRows)
	}
	m.list(rest, inside, m.tab, 0, columns, true)
}

// about shows the whole of the selected line.
func (m *Model) about(r screen.Region) {
	rows := m.rows()
	if len(rows) == 0 {
		return
	}
	state := m.lists[m.tab]
	state.Move(0, len(rows))
	row := &rows[state.Selected]
	text := ""
	for _, c := range row.Cells {
		text += strings.TrimSpace(c.Text) + "  "
	}
	if m.tab == tabRegisters {
		text = registers.About(m.inspection, row.ID)
	}
	for y, line := range chart.Wrap(text, r.W-2) {
		r.Text(1, y, theme.Dim, line)
	}
}

// allRows are a page's lines, before the filter.
func (m *Model) allRows(t tab, queue int) []list.Row {
	switch {
	case m.snapshot == nil:
		return nil
	case t == tabRun:
		if q := m.queue(queue); q != nil {
			return eventlog.Rows(q)
		}
	case t == tabClusters:
		return clusters.Rows(m.snapshot, queue, m.sortBy)
	case t == tabResults:
		return m.resultRows()
	case m.inspection == nil:
	case t == tabTables:
		return tables.Rows(m.inspection)
	case t == tabRegisters:
		return registers.Rows(m.inspection, m.changed)
	case t == tabTestbed:
		return testbed.Rows(m.inspection)
	}
	return nil
}

// list draws a page's list and remembers where it is.
func (m *Model) list(outer, inside screen.Region, t tab, queue int, columns []list.Column, focused bool) {
	state := m.lists[t]
	rows := state.Filtered(m.allRows(t, queue))
	state.Move(0, len(rows))
	list.Draw(inside, columns, rows, state, focused)
	m.cache.hits = append(m.cache.hits, hit{
		region: outer, tab: t, focus: m.focus,
		rows: list.Body(inside, columns), top: state.Top(len(rows), list.Body(inside, columns).H),
	})
	if state.Filter != "" {
		outer.Right(outer.W-2, 0, theme.Warn, fmt.Sprintf(" /%s: %d ", state.Filter, len(rows)))
	}
}

func (m *Model) resultsPage(r screen.Region) {
	title := "Results of this run so far"
	if m.bench != nil {
		title = fmt.Sprintf("Results of the whole experiment, %d of %d runs", m.bench.Done, m.bench.Total)
	}
	inside := r.Box(screen.Thin, theme.Border, theme.Title, title)
	m.list(r, inside, tabResults, 0, []list.Column{{Name: ""}}, false)
}

// resultRows is the report's text, or what the live run shows.
func (m *Model) resultRows() []list.Row {
	lines := m.liveResults()
	if m.bench != nil {
		switch {
		case m.bench.Err != nil:
			lines = append([]string{"✗ " + m.bench.Err.Error(), ""}, lines...)
		case len(m.bench.Lines) > 0:
			lines = m.bench.Lines
		}
	}
	rows := make([]list.Row, len(lines))
	for i, l := range lines {
		style := theme.Text
		switch {
		case strings.Contains(l, "deviates") || strings.HasPrefix(l, "✗"):
			style = theme.Bad
		case strings.Contains(l, "reproduced"):
			style = theme.Good
		}
		rows[i] = list.Row{ID: int64(i), Cells: []list.Cell{{Text: l, Style: style}}}
	}
	return rows
}

func (m *Model) liveResults() []string {
	out := []string{fmt.Sprintf("%-8s %-9s %8s %9s %9s %9s %10s", "queue", "out", "lost", "merged", "delivered", "dropped", "mean AoM")}
	for i := range m.snapshot.Queues {
		q := &m.snapshot.Queues[i]
		c := &q.Counters
		lost := 0.0
		if c.Sent > 0 {
			lost = 100 * float64(c.Lost()-c.Queued) / float64(c.Sent)
		}
		out = append(out, fmt.Sprintf("%-8s %-9v %8s %9d %9d %9d %10s", q.Name, q.OutRate, num.Percent(lost), c.Aggregated, c.Delivered, c.DroppedFull, num.NS(float64(q.MeanAoM))))
	}
	return append(out, "", "Statistics over all runs, and the paper beside them:", "olafctl bench --tui")
}

func (m *Model) drawCaption(r screen.Region, caption string) {
	r.Fill(' ', theme.Caption)
	for y, line := range chart.Wrap(caption, r.W-captionMargin) {
		r.Text(2, y, theme.Caption, line)
	}
}

func (m *Model) footer(r screen.Region) {
	switch {
	case m.over == typeFilter:
		x := r.Text(1, 0, theme.Key, "/")
		m.filter.Draw(r.Sub(x, 0, r.W-x, 1), theme.Text, true)
		r.Right(r.W-1, 0, theme.Dim, "words; !word leaves out; enter keeps, esc clears")
	case m.snapshot != nil && m.snapshot.Err != nil:
		r.Text(1, 0, theme.Bad, "✗ "+m.snapshot.Err.Error())
	case m.status != "":
		r.Text(1, 0, theme.Warn, m.status)
	default:
		help.Footer(r.Sub(1, 0, r.W-1, 1), m.options.Keys)
	}
}

// overlay draws what lies above the page.
func (m *Model) overlay(r screen.Region) {
	switch m.over {
	case showHelp:
		help.Draw(popup(r, r.W-4, r.H-2, "help: ↑↓ scroll, any other key closes"), m.options.Keys, m.helpTop)
	case showLife:
		life.Draw(popup(r, 78, len(m.story)+2, "the life of an update: any key closes"), m.story)
	case showForm:
		m.form.Draw(popup(r, 60, form.Height+1, "run again"))
	case askQuit:
		inside := popup(r, 58, 5, "quit?")
		inside.Text(1, 0, theme.Text, "A run is on. Quitting stops the generator and gives the")
		inside.Text(1, 1, theme.Text, "device back.")
		inside.Text(1, 2, theme.Key, "y or "+m.options.Keys.Key(keys.Quit)+" quits, any other key stays")
	}
}

// popup clears the middle of r and frames it.
func popup(r screen.Region, w, h int, title string) screen.Region {
	w, h = min(w, r.W), min(h, r.H)
	box := r.Sub((r.W-w)/2, (r.H-h)/2, w, h)
	box.Fill(' ', theme.Text)
	return box.Box(screen.Heavy, theme.Focus, theme.Title, title)
}
