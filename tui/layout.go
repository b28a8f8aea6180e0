package tui

import (
	"github.com/olafctl/olaf/experiments/live"
)

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
	panels
)

// shape says how a panel of the Run page takes part in the layout. Heights include the border.
type shape struct {
	least, good int
	// comfort is the height that a panel has before less important ones get any.
	comfort int
	// drop is the order in which panels give way when rows are short, smallest first; the queue never does.
	drop int
}

var shapes = [panels]shape{
	panelQueue:    {5, 7, 7, 7},
	panelAoM:      {6, 14, 6, 6},
	panelLoss:     {5, 10, 5, 5},
	panelCDF:      {5, 10, 5, 3},
	panelSaw:      {6, 11, 6, 2},
	panelLog:      {4, 7, 6, 4},
	panelCounters: {5, 8, 5, 1},
}

// slot is one focusable place on the Run page.
type slot struct {
	panel panel
	queue int
}

// smallest terminal that shows anything.
const (
	minWidth  = 60
	minHeight = 16
)

// row is panels side by side, at one height.
type row struct {
	panels []panel
	height int
}

// rows arranges the panels of one queue in a column of a size: those that fit, in the order of the page, with the rows
// that are left over given to panels up to their good height and then to the log, or to the age.
func rows(width, height int) []row {
	var kept [panels]bool
	for i := range kept {
		kept[i] = true
	}
	// The last panels to give way take their comfort from those that are dropped before them.
	for total(stacked(kept, width))+missing(kept) > height {
		victim := panel(-1)
		for p := range panels {
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
func missing(kept [panels]bool) int {
	n := 0
	for p := range panels {
		if kept[p] {
			n += shapes[p].comfort - shapes[p].least
		}
	}
	return n
}

// stacked is the kept panels in rows of least height. Loss and CDF share a row where the column is wide enough.
func stacked(kept [panels]bool, width int) []row {
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

// columns is how many queues stand side by side.
func (m *Model) columns() int {
	if m.snapshot == nil {
		return 1
	}
	return max(len(m.snapshot.Queues), 1)
}

// slots lists what can have the focus on the Run page, in the order of the page.
func (m *Model) slots() []slot {
	var out []slot
	width, height := m.width/m.columns(), m.height-m.chrome()
	for q := range m.columns() {
		if m.zoom {
			for p := range panels {
				out = append(out, slot{p, q})
			}
			continue
		}
		for _, r := range rows(width, height) {
			for _, p := range r.panels {
				out = append(out, slot{p, q})
			}
		}
	}
	return out
}

func (m *Model) focusOn(i int) {
	n := len(m.slots())
	m.focus = ((i % n) + n) % n
}

// focused is the panel that keys concern. Before anybody chose one, it is the log where there is one.
func (m *Model) focused() slot {
	slots := m.slots()
	if m.focus >= len(slots) {
		return slots[len(slots)-1]
	}
	return slots[m.focus]
}

func (m *Model) queue(i int) *live.QueueSnapshot {
	if m.snapshot == nil || i < 0 || i >= len(m.snapshot.Queues) {
		return nil
	}
	return &m.snapshot.Queues[i]
}
