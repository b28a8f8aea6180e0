package network

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/netsim"
	"github.com/olafctl/olaf/results"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/keys"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// View is the frame as terminal text.
func (m Model) View() string {
	m.draw()
	return m.grid.ANSI(m.options.Theme.Palette())
}

// Text is the frame without styles.
func (m Model) Text() string {
	m.draw()
	return m.grid.Text()
}

func (m *Model) draw() {
	m.grid.Resize(m.width, m.height)
	r := m.grid.All()
	switch {
	case m.over == showHelp:
		m.drawHelp(r)
	case m.snapshot == nil:
		r.Text(0, 0, theme.Dim, "starting …")
	default:
		m.drawPage(r)
	}
	m.drawFooter(r.Sub(0, r.H-1, r.W, 1))
}

const (
	headRows   = 2
	fateRows   = 4
	footerRows = 1
	frameRows  = 2
	headings   = 1
)

func (m *Model) drawPage(r screen.Region) {
	m.drawHead(r.Sub(0, 0, r.W, headRows))
	free := r.H - headRows - fateRows - footerRows
	ports := min(len(m.snapshot.Ports)+headings+frameRows, max(free/2, headings+frameRows+1))
	y := headRows
	m.drawPorts(r.Sub(0, y, r.W, ports))
	y += ports
	m.drawFate(r.Sub(0, y, r.W, fateRows))
	y += fateRows
	m.drawClusters(r.Sub(0, y, r.W, r.H-footerRows-y))
}

// instant writes an instant in the unit of the run's length, so that it does not jump about.
func instant(t, end olaf.Time) string {
	for _, u := range []struct {
		worth olaf.Duration
		name  string
	}{{olaf.Second, "s"}, {olaf.Millisecond, "ms"}, {olaf.Microsecond, "us"}} {
		if end >= 10*olaf.Time(u.worth) || u.worth == olaf.Microsecond {
			return strconv.FormatFloat(float64(t)/float64(u.worth), 'f', 2, 64) + u.name
		}
	}
	return ""
}

func (m *Model) drawHead(r screen.Region) {
	v := m.snapshot
	x := r.Text(0, 0, theme.Strong, v.Topology)
	control := "off"
	if v.Control {
		control = "on"
	}
	text := fmt.Sprintf("  queue %s  tc %s  seed %d", v.Queue, control, v.Seed)
	if m.seeds.Total > 1 {
		text += fmt.Sprintf("  %d/%d seeds done", m.seeds.Done, m.seeds.Total)
	}
	r.Text(x, 0, theme.Text, text)
	state, style := m.state()
	r.Right(r.W, 0, style, " "+state)

	x = r.Text(0, 1, theme.Text, instant(v.Now, v.End)+" of "+instant(v.End, v.End)+" ")
	right := m.progress()
	width := max(r.W-x-len([]rune(right))-1, 0)
	chart.Gauge(r.Sub(x, 1, width, 1), float64(v.Now), float64(v.End), theme.Good)
	r.Right(r.W, 1, theme.Text, right)
}

// state is the run's in a word or two.
func (m *Model) state() (string, screen.Style) {
	v := m.snapshot
	switch {
	case m.done():
		return "done", theme.Good
	case m.ended():
		return "this seed is done", theme.Good
	case m.pace.Paused:
		return "paused, " + pace(m.pace.Speed), theme.Warn
	case v.Now < v.Warmup:
		return "warm-up " + pace(m.pace.Speed), theme.Title
	}
	return "running " + pace(m.pace.Speed), theme.Good
}

func pace(s Speed) string {
	if s == Full {
		return "at full speed"
	}
	return "at " + perSecond(s)
}

// perSecond writes a speed as simulated time in a second.
func perSecond(s Speed) string { return num.NS(float64(s)*1e9) + "/s" }

// progress is the share, the time that is left and the speed.
func (m *Model) progress() string {
	v := m.snapshot
	text := fmt.Sprintf("%3.0f %%", 100*float64(v.Now)/math.Max(float64(v.End), 1))
	speed, known := m.speed.rate()
	if !known || m.ended() {
		return text
	}
	left := float64(v.End-v.Now) / float64(olaf.Second) / float64(speed)
	return text + fmt.Sprintf("  ETA %5s %9s", wait(left), perSecond(speed))
}

// wait writes seconds of watching as 1:02.
func wait(seconds float64) string {
	if !(seconds < 1e6) {
		return num.Unknown
	}
	d := time.Duration(math.Ceil(seconds)) * time.Second
	if d >= time.Hour {
		return fmt.Sprintf("%d:%02d h", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// box draws a frame, heavy around what has the focus.
func (m *Model) box(r screen.Region, f focus, name string) screen.Region {
	if m.focus == f {
		return r.Box(screen.Heavy, theme.Focus, theme.Title, name)
	}
	return r.Box(screen.Thin, theme.Border, theme.Title, name)
}

// The widths of a port's parts; gauges and the name take what is left.
const (
	fillWidth    = 9
	countWidth   = 8
	percentWidth = 8
	portName     = 10
)

func (m *Model) drawPorts(r screen.Region) {
	ports := m.snapshot.Ports
	in := m.box(r, onPorts, fmt.Sprintf("Ports %d", len(ports)))
	body := in.Sub(0, headings, in.W, in.H-headings)
	state := m.lists[onPorts]
	state.Move(0, len(ports))
	top := state.Top(len(ports), body.H)
	gauge := min(max((in.W-fillWidth-3*countWidth-percentWidth-portName)/3, 0), 30)
	name := max(in.W-fillWidth-3*countWidth-percentWidth-2*gauge, portName)
	in.Text(0, 0, theme.Strong, "PORT")
	x := name
	in.Text(x, 0, theme.Strong, "WAITING")
	x += gauge + fillWidth
	for _, heading := range []string{"LEFT", "MERGED", "DROPPED"} {
		x += countWidth
		in.Right(x, 0, theme.Strong, heading)
	}
	in.Text(x+1, 0, theme.Strong, "LINK IN USE")
	for y := 0; y < body.H && top+y < len(ports); y++ {
		row := body.Sub(0, y, body.W, 1)
		drawPort(row, &ports[top+y], name, gauge)
		if m.focus == onPorts && top+y == state.Selected {
			row.Sub(0, 0, name-1, 1).Restyle(theme.Selected)
		}
	}
}

func drawPort(r screen.Region, p *netsim.PortSnapshot, name, gauge int) {
	r.Sub(0, 0, name-1, 1).Text(0, 0, theme.Text, p.Port)
	style := theme.Good
	if p.Occupancy >= p.Slots {
		style = theme.Warn
	}
	x := name
	chart.Gauge(r.Sub(x, 0, gauge, 1), float64(p.Occupancy), float64(p.Slots), style)
	x += gauge
	r.Sub(x, 0, fillWidth, 1).Text(1, 0, theme.Text, fmt.Sprintf("%d/%d", p.Occupancy, p.Slots))
	x += fillWidth
	dropped := theme.Text
	if p.Dropped > 0 {
		dropped = theme.Bad
	}
	for _, c := range []struct {
		n     uint64
		style screen.Style
	}{{p.Left, theme.Text}, {p.Aggregated + p.Replaced, theme.Text}, {p.Dropped, dropped}} {
		x += countWidth
		r.Right(x, 0, c.style, num.Count(int64(c.n)))
	}
	if p.Down {
		r.Text(x+1, 0, theme.Bad, "link down")
		return
	}
	if x+percentWidth > r.W {
		return // too narrow for more
	}
	chart.Gauge(r.Sub(x+1, 0, gauge-1, 1), float64(p.Utilisation), 1, theme.Subject)
	r.Right(r.W, 0, theme.Text, num.Percent(100*float64(p.Utilisation)))
}

// drawFate shows what became of the updates as one bar whose parts have signs of their own.
func (m *Model) drawFate(r screen.Region) {
	f := &m.snapshot.Fate
	title := num.Count(int64(f.Sent)) + " updates sent"
	if m.snapshot.Control {
		title += ", " + num.Count(int64(m.snapshot.Withheld)) + " withheld by transmission control"
	}
	in := r.Box(screen.Thin, theme.Border, theme.Title, title)
	x, legend, done := 0, 0, uint64(0)
	for _, part := range []struct {
		sign  rune
		name  string
		n     uint64
		style screen.Style
	}{
		{'█', "delivered", f.Delivered, theme.Good}, {'▓', "dropped", f.Dropped, theme.Bad}, {'▒', "replaced", f.Replaced, theme.Warn},
		{'×', "lost", f.LostOnLinks, theme.Bad}, {'·', "moving", f.Queued + f.Flying, theme.Dim},
	} {
		done += part.n
		end := int(math.Round(float64(in.W) * float64(done) / math.Max(float64(f.Sent), 1)))
		for ; x < end; x++ {
			in.Set(x, 0, part.sign, part.style)
		}
		in.Set(legend, 1, part.sign, part.style)
		share := 100 * float64(part.n) / math.Max(float64(f.Sent), 1)
		legend = in.Text(legend+2, 1, theme.Text, fmt.Sprintf("%s %.1f%%", part.name, share)) + 1
	}
}

// The columns of the clusters.
const (
	columnID = iota
	columnGroup
	columnWorkers
	columnSent
	columnMerged
	columnLoss
	columnMean
	columnNow
	columnBar
)

var columns = [...]list.Column{
	columnID: {Name: "CLUSTER", Width: 8}, columnGroup: {Name: "GROUP", Width: 8}, columnWorkers: {Name: "WORKERS", Width: 7, Right: true},
	columnSent: {Name: "SENT", Width: 7, Right: true}, columnMerged: {Name: "MERGED", Width: 7, Right: true},
	columnLoss: {Name: "LOSS", Width: 7, Right: true}, columnMean: {Name: "AoM MEAN", Width: 9, Right: true},
	columnNow: {Name: "AoM NOW", Width: 9, Right: true}, columnBar: {},
}

func (m *Model) drawClusters(r screen.Region) {
	v := m.snapshot
	shown := m.shownClusters()
	title := fmt.Sprintf("Clusters %d", len(v.Clusters))
	state := m.lists[onClusters]
	if state.Filter != "" {
		title = fmt.Sprintf("Clusters %d of %d, /%s", len(shown), len(v.Clusters), state.Filter)
	}
	if v.Now < v.Warmup {
		title += ", counted from " + instant(v.Warmup, v.End) + " on"
	}
	in := m.box(r, onClusters, title)
	state.Move(0, len(shown))
	rows := make([]list.Row, len(shown))
	height := in.H - headings
	top := state.Top(len(shown), height)
	oldest := 0.0
	for i := range v.Clusters {
		oldest = max(oldest, known(v.Clusters[i].AoM))
	}
	for i := top; i < min(top+height, len(shown)); i++ {
		rows[i] = clusterRow(&v.Clusters[shown[i]], oldest, in.W)
	}
	named := columns
	if sorted := &named[sortings[m.sort].column]; m.sort > 0 {
		sorted.Name = "▼" + sorted.Name
	}
	list.Draw(in, named[:], rows, state, m.focus == onClusters)
}

func clusterRow(c *netsim.ClusterSnapshot, oldest float64, width int) list.Row {
	loss := list.Cell{Text: num.Percent(float64(c.Loss.Updates))}
	if c.DroppedUpdates > 0 {
		loss.Style = theme.Bad
	}
	bar := ""
	if c.AoM.Known() && oldest > 0 {
		bar = strings.Repeat("▪", max(int(math.Round(float64(c.AoM)/oldest*float64(width-barFrom-2))), 0))
	}
	return list.Row{ID: int64(c.Cluster), Cells: []list.Cell{
		{Text: strconv.Itoa(c.Cluster), Style: theme.Cluster(c.Cluster)}, {Text: c.Group}, {Text: num.Count(int64(c.Workers))},
		{Text: num.Count(int64(c.Sent))}, {Text: num.Count(int64(c.Aggregated + c.Counts.Replaced))}, loss,
		{Text: age(c.MeanAoM)}, {Text: age(c.AoM)}, {Text: bar, Style: theme.Cluster(c.Cluster)},
	}}
}

// barFrom is where the last column begins.
const barFrom = 8 + 8 + 7 + 7 + 7 + 7 + 9 + 9 + 8

func age(f results.Float) string {
	if !f.Known() {
		return num.Unknown
	}
	return num.NS(float64(f))
}

// bindings are the actions that this dashboard knows, with what they do here.
var bindings = []struct {
	action       keys.Action
	about, brief string
}{
	{keys.Help, "this help", "help"},
	{keys.Quit, "quit: ends the run and prints what was simulated", "quit"},
	{keys.Pause, "pause or go on", "pause"},
	{keys.Faster, "faster: 1, 2, 5, 10 … times the simulated time in a second", "faster"},
	{keys.Slower, "slower", "slower"},
	{keys.FullSpeed, "as fast as possible", ""},
	{keys.RealTime, "a simulated second in a second", ""},
	{keys.NextTab, "ports or clusters", "list"},
	{keys.Up, "up", ""},
	{keys.Down, "down", ""},
	{keys.PageUp, "page up", ""},
	{keys.PageDown, "page down", ""},
	{keys.Top, "first line", ""},
	{keys.Bottom, "last line", ""},
	{keys.SortBy, "sort clusters by id, AoM now, mean AoM, loss, sent", "sort"},
	{keys.Filter, "show clusters by id or group; !S1 leaves S1 out", "filter"},
	{keys.Back, "clear the filter", ""},
}

func (m *Model) drawHelp(r screen.Region) {
	in := r.Sub(0, 0, r.W, r.H-footerRows).Box(screen.Thin, theme.Border, theme.Title, "Keys")
	y := 0
	for _, b := range bindings {
		in.Sub(0, y, 16, 1).Text(1, 0, theme.Key, m.label(b.action))
		in.Text(16, y, theme.Text, b.about)
		y++
	}
	for _, line := range chart.Wrap("WAITING counts slots in use. MERGED are updates that joined one in the queue, LOSS those in dropped frames, moving those in queues and on links. "+
		"Ports and updates count from the start, clusters from the end of the warm-up.", max(in.W-2, 20)) {
		y++
		in.Text(1, y, theme.Dim, line)
	}
}

// label is all keys of an action.
func (m *Model) label(a keys.Action) string {
	for _, b := range m.options.Keys.Bindings() {
		if b.Action == a {
			return keys.Label(b.Keys)
		}
	}
	return ""
}

func (m *Model) drawFooter(r screen.Region) {
	switch {
	case m.over == typeFilter:
		x := r.Text(0, 0, theme.Key, "/")
		m.filter.Draw(r.Sub(x, 0, r.W-x, 1), theme.Text, true)
		return
	case m.over == showHelp:
		r.Text(0, 0, theme.Dim, "any key closes the help")
		return
	case m.done():
		r = r.Sub(r.Text(0, 0, theme.Good, m.options.Keys.Key(keys.Quit)+" prints the report")+2, 0, r.W, 1)
	}
	x := 0
	for _, b := range bindings {
		if b.brief == "" {
			continue
		}
		label := m.options.Keys.Key(b.action)
		if x+len([]rune(label))+len(b.brief)+1 > r.W {
			return
		}
		x = r.Text(x, 0, theme.Key, label) + 1
		x = r.Text(x, 0, theme.Dim, b.brief) + 2
	}
}
