package queues

// panel is a box on the Run page.
type panel int

const (
	panelQueue panel = iota
	panelAoM
	panelLoss
	panelCDF
	panelSaw
	panelLog
	panelCounters
	panelKinds
)

// shape defines the heights of a panel on the Run page and the order in which panels are dropped. Heights include the
// border.
type shape struct {
	least, good int
	// comfort is the height that a panel gets before less important panels get any height.
	comfort int
	// drop is the order in which panels are dropped if there are too few rows, smallest first. The queue is never
	// dropped.
	drop int
}

var shapes = [panelKinds]shape{
	panelQueue:    {5, 7, 7, 7},
	panelAoM:      {6, 14, 6, 6},
	panelLoss:     {6, 10, 6, 5},
	panelCDF:      {5, 10, 5, 3},
	panelSaw:      {6, 11, 6, 2},
	panelLog:      {3, 7, 6, 4},
	panelCounters: {5, 8, 5, 1},
}

// place is a box that can have the focus.
type place struct {
	panel panel
	queue int
}

// row is a row of panels with the same height.
type row struct {
	panels []panel
	height int
}

// arrangePanels arranges the panels for one queue in a column, in page order, and omits panels that do not fit. Spare
// rows first extend panels to their good height and then the log or the age panel.
func arrangePanels(width, height int) []row {
	var kept [panelKinds]bool
	for i := range kept {
		kept[i] = true
	}
	// Panels that are dropped late get their comfort height at the cost of those that are dropped earlier.
	for totalHeight(stackPanels(kept, width))+missingRows(kept) > height {
		victim := panel(-1)
		for p := range panelKinds {
			if kept[p] && p != panelQueue && (victim < 0 || shapes[p].drop < shapes[victim].drop) {
				victim = p
			}
		}
		if victim < 0 || totalHeight(stackPanels(kept, width)) <= height && shapes[victim].drop > luxuries {
			break
		}
		kept[victim] = false
	}
	out := stackPanels(kept, width)
	spare := height - totalHeight(out)
	for _, p := range []panel{panelQueue, panelLog} { // complete boxes first, then some lines for events
		for i := range out {
			if out[i].panels[0] == p {
				more := min(max(shapes[p].comfort-out[i].height, 0), max(spare, 0))
				out[i].height += more
				spare -= more
			}
		}
	}
	for grown := true; grown && spare > 0; {
		grown = false
		for i := range out {
			if spare > 0 && out[i].height < out[i].goodHeight() {
				out[i].height++
				spare--
				grown = true
			}
		}
	}
	if spare > 0 {
		out[len(out)-1].height += spare
	} else if spare < 0 {
		out[0].height = max(out[0].height+spare, 0)
	}
	return out
}

// luxuries is the largest drop order of the panels that are shown only if all other panels have their comfort height.
const luxuries = 2

// missingRows returns the number of additional rows that the kept panels would need to reach their comfort heights.
func missingRows(visible [panelKinds]bool) int {
	n := 0
	for p := range panelKinds {
		if visible[p] {
			n += shapes[p].comfort - shapes[p].least
		}
	}
	return n
}

// stackPanels returns the kept panels in rows of minimum height. If the column is wide enough, the loss and CDF panels
// share a row.
func stackPanels(visible [panelKinds]bool, width int) []row {
	order := []panel{panelQueue, panelAoM, panelLoss, panelCDF, panelSaw, panelCounters, panelLog}
	var out []row
	for _, p := range order {
		if !visible[p] {
			continue
		}
		if n := len(out); p == panelCDF && visible[panelLoss] && width >= 56 {
			out[n-1].panels = append(out[n-1].panels, p)
			continue
		}
		out = append(out, row{[]panel{p}, shapes[p].least})
	}
	return out
}

func (r *row) goodHeight() int {
	h := 0
	for _, p := range r.panels {
		h = max(h, shapes[p].good)
	}
	return h
}

func totalHeight(rows []row) int {
	n := 0
	for _, r := range rows {
		n += r.height
	}
	return n
}

// places returns the boxes that can have the focus, in page order. There is always at least one.
func (s *session) places() []place {
	n := 1
	if s.snapshot != nil {
		n = max(len(s.snapshot.Queues), 1)
	}
	var out []place
	for q := range n {
		if s.run.zoom {
			for p := range panelKinds {
				out = append(out, place{p, q})
			}
			continue
		}
		for _, r := range arrangePanels(s.run.area.W/n, s.run.area.H) {
			for _, p := range r.panels {
				out = append(out, place{p, q})
			}
		}
	}
	return out
}

// focusedPlace returns the box that has the focus.
func (s *session) focusedPlace() place {
	places := s.places()
	return places[min(s.run.focus, len(places)-1)]
}
