package tui

import (
	tea "github.com/charmbracelet/bubbletea"
)

// export writes the current view to a file, with the caption of the page.
func (f *Frame) export(kind string) tea.Cmd {
	if f.options.Save == nil {
		f.ShowNote("nowhere to write to")
		return nil
	}
	page := f.shownPage()
	caption := page.Title
	if page.Caption != nil {
		caption = page.Caption()
	}
	f.draw()
	data := f.grid.Text() + "\n" + caption + "\n"
	if kind == "svg" {
		looks, fore, back := f.options.Theme.Looks()
		data = f.grid.SVG(caption, looks, fore, back)
	}
	save, name := f.options.Save, "olafctl-"+page.Title+"."+kind
	return func() tea.Msg {
		path, err := save(name, []byte(data))
		return ReportSaved("view", path, err)
	}
}

// ReportSaved returns a message that reports whether a file was written.
func ReportSaved(what, path string, err error) Then {
	return func(f *Frame) {
		if err != nil {
			f.ShowNote(what + " failed: " + err.Error())
			return
		}
		f.ShowNote(what + ": " + path)
	}
}
