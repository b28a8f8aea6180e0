package queues

import (
	"fmt"

	"github.com/olafctl/olaf"
	"github.com/olafctl/olaf/experiments/bench/slowmotion"
	"github.com/olafctl/olaf/tui"
	"github.com/olafctl/olaf/tui/chart"
	"github.com/olafctl/olaf/tui/list"
	"github.com/olafctl/olaf/tui/num"
	"github.com/olafctl/olaf/tui/screen"
	"github.com/olafctl/olaf/tui/theme"
)

// devicesPage returns the page with the devices, their build parameters and links, and the capture losses.
func (s *session) devicesPage() tui.Page {
	return s.inspectionPage(inspection{
		title: "Testbed",
		head: func(in *slowmotion.Inspection) screen.Phrase {
			head := fmt.Sprintf("%d device(s); tables over P4Runtime at %s", len(in.Cards), in.Target)
			if on := s.options.Measured; on != "" {
				head = fmt.Sprintf("%s measures; the plan also plays on %s", on, head)
			}
			return screen.Phrase{Text: head, Style: theme.Dim}
		},
		columns: []list.Column{{Name: "device", Width: 20}, {Name: "what", Width: 14}, {Name: "value"}},
		rows: func(in *slowmotion.Inspection) list.Rows {
			return list.FromRows(append(s.measuredRows(),
				deviceRows(in)...))
		}, below: s.drawRates,
	}, "The devices, what they were built with, their generators, and what captures lost. Below, what came into "+
		"every queue and what left it.")
}

// measuredRows returns rows for the device that a bench measures next to the twins, or nil if there is none.
func (s *session) measuredRows() []list.Row {
	if s.options.Measured == "" || s.bench == nil {
		return nil
	}
	return []list.Row{{ID: -1, Cells: []list.Cell{{Text: s.options.Measured, Style: theme.Strong},
		{Text: "measures", Style: theme.Dim},
		{Text: fmt.Sprintf("%d of %d runs done; page Twin has their ages", s.bench.Done, s.bench.Total)}}}}
}

func deviceRows(in *slowmotion.Inspection) []list.Row {
	var rows []list.Row
	for i := range in.Cards {
		l := &in.Cards[i]
		name := fmt.Sprintf("%s (%s)", l.Device.Address, l.Queue)
		add := func(what, value string, good bool) {
			style := theme.Text
			if !good {
				style = theme.Bad
			}
			rows = append(rows, list.Row{ID: int64(len(rows)),
				Cells: []list.Cell{{Text: name, Style: theme.QueueStyle(i)}, {Text: what, Style: theme.Dim},
					{Text: value, Style: style}}})
		}
		add("kind, build", fmt.Sprintf("%s, %s, register map %s", l.Device.Kind, l.Device.Build, l.Device.MapVersion), true)
		add("clock", num.FormatHertz(l.Device.ClockHz), true)
		add("links", linkText(l), true)
		add("generator", l.Generator, l.Generator != "failed" && l.Generator != "error")
		add("late packets", num.FormatCount(int64(l.Late)), l.Late == 0)
		add("capture", fmt.Sprintf("%d updates seen, %d lost", l.Observed, l.CaptureLost), l.CaptureLost == 0)
		add("built with", fmt.Sprintf("%d slots, %d clusters, %d flows, %d descriptors", l.Slots, l.Clusters, l.Flows,
			l.Descriptors), true)
	}
	return rows
}

func linkText(l *slowmotion.CardState) string {
	if l.Virtual {
		return "virtual, always up"
	}
	return "not reported by this device"
}

// drawRates draws the arrival and departure rates over time. Each queue has a column, and all have the same scale.
func (s *session) drawRates(r screen.Region) {
	span, top := s.span(), 0.0
	type flow struct {
		name   string
		points []chart.Point
		style  screen.Style
	}
	flows := make([][]flow, len(s.snapshot.Queues))
	for i := range flows {
		in, out := rateSeries(s.snapshot.Queues[i].Series, span)
		flows[i] = []flow{{"in", in, theme.Text}, {"out", out, theme.QueueStyle(i)}}
		for _, p := range append(in[:len(in):len(in)], out...) {
			top = max(top, p.Y)
		}
	}
	top = chart.RoundUp(top)
	for i := range flows {
		inside := r.Column(i, len(flows)).Box(screen.Thin, theme.Border, theme.QueueStyle(i), s.snapshot.Queues[i].Name)
		for j, fl := range flows[i] {
			y, h := j*inside.H/2, inside.H/2
			inside.Text(0, y, theme.Dim, fmt.Sprintf("%s, up to %s, %s", fl.name, num.FormatRate(top), span.Label()))
			span.Sparkline(inside.Sub(0, y+1, inside.W, h-1), fl.points, top, fl.style)
		}
	}
}

// rateSeries returns the incoming and outgoing rates in bits per second for each interval.
func rateSeries(series []slowmotion.SeriesPoint, span chart.Span) (in, out []chart.Point) {
	last := olaf.Time(0)
	for _, p := range series {
		if seconds := p.At.Sub(last).Seconds(); seconds > 0 && span.Contains(p.At) {
			in = append(in, chart.PointAt(p.At, float64(p.InBits)/seconds))
			out = append(out, chart.PointAt(p.At, float64(p.OutBits)/seconds))
		}
		last = p.At
	}
	return in, out
}
