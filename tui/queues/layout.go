package queues

// panel is one box of the Run page.
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

// shape says how a panel of the Run page takes part in the layout. Heights include the border.
type shape struct {
	least, good int
	// comfort is the height that a panel has before less important ones get any.
	comfort int
	// drop is the order in which panels give way when rows are short, smallest first; the queue never does.
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

// place is one box that can have the focus.
type place struct {
	panel panel
	queue int
}

// row is panels side by side, at one height.
type row struct {
	panels []panel
	height int
}

// rows arranges the panels of one queue in a column of a size: those that fit, in the order of the page, with the rows
// that are left over given to panels up to their good height and then to the log, or to the age.
func rows(width, height int) []row {
	var kept [panelKinds]bool
	for i := range kept {
		kept[i] = true
	}
	// The last panels to give way take their comfort from those that are dropped before them.
	for total(stacked(kept, width))+missing(kept) > height {
		victim := panel(-1)
		for p := range panelKinds {
			if kept[p] && p != panelQueue && (victim < 0 || shapes[p].drop < shapes[victim].drop) {
				victim = p
			}
		}
		if victim < 0 || total(stacked(kept, width)) <= height && shapes[victim].drop > luxuries {
			break
		}
		kept[victim] = false
	}
	out := stacked(kept, width)
	spare := height - total(out)
	for _, p := range []panel{panelQueue, panelLog} { // first whole boxes, then a few lines of what happened
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
			if spare > 0 && out[i].height < out[i].good() {
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

// luxuries are the panels up to this place in the order of dropping: they are not shown before others have their comfort.
const luxuries = 2

// missing is how many rows the kept panels lack to their comfort.
func missing(kept [panelKinds]bool) int {
	n := 0
	for p := range panelKinds {
		if kept[p] {
			n += shapes[p].comfort - shapes[p].least
		}
	}
	return n
}

// stacked is the kept panels in rows of least height. Loss and CDF share a row where the column is wide enough.
func stacked(kept [panelKinds]bool, width int) []row {
	order := []panel{panelQueue, panelAoM, panelLoss, panelCDF, panelSaw, panelCounters, panelLog}
	var out []row
	for _, p := range order {
		if !kept[p] {
			continue
		}
		if n := len(out); p == panelCDF && kept[panelLoss] && width >= 56 {
			out[n-1].panels = append(out[n-1].panels, p)
			continue
		}
		out = append(out, row{[]panel{p}, shapes[p].least})
	}
	return out
}

func (r *row) good() int {
	h := 0
	for _, p := range r.panels {
		h = max(h, shapes[p].good)
	}
	return h
}

func total(rows []row) int {
	n := 0
	for _, r := range rows {
		n += r.height
	}
	return n
}

// places lists what can have the focus, in the order of the page; at least one.
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
		for _, r := range rows(s.run.area.W/n, s.run.area.H) {
			for _, p := range r.panels {
				out = append(out, place{p, q})
			}
		}
	}
	return out
}

// focused is the box that keys concern.
func (s *session) focused() place {
	places := s.places()
	return places[min(s.run.focus, len(places)-1)]
}
