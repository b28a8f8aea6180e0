package results

import (
	"fmt"
	"strconv"
	"strings"
)

// shownReasons and shownRuns limit the output of ExclusionReasons. invalid_reasons in the document is complete.
const (
	shownReasons = 3
	shownRuns    = 3
)

// ExclusionReasons returns the first few reasons for which runs of the row were excluded, each with its runs. It parses
// the prefix that Summarise adds to reasons, because stored documents contain this form.
func (r *Row) ExclusionReasons() []string {
	var order []string
	runs := map[string][]string{}
	for _, s := range r.Reasons {
		run, why := "", s
		if index, rest, ok := strings.Cut(strings.TrimPrefix(s, "run "), ": "); ok {
			if _, err := strconv.Atoi(index); err == nil {
				run, why = index, rest
			}
		}
		if runs[why] == nil {
			order = append(order, why)
		}
		runs[why] = append(runs[why], run)
	}
	var lines []string
	rest := 0
	for i, why := range order {
		if i >= shownReasons {
			rest += len(runs[why])
			continue
		}
		lines = append(lines, joinRuns(runs[why])+why)
	}
	if rest > 0 {
		lines = append(lines, fmt.Sprintf("%d more for %d other reasons, which the JSON document lists", rest,
			len(order)-shownReasons))
	}
	return lines
}

// joinRuns returns the numbers of the first few runs in the form of a reason's prefix.
func joinRuns(runs []string) string {
	switch {
	case runs[0] == "":
		return ""
	case len(runs) == 1:
		return "run " + runs[0] + ": "
	case len(runs) <= shownRuns:
		return "runs " + strings.Join(runs, ", ") + ": "
	}
	return fmt.Sprintf("runs %s and %d more: ", strings.Join(runs[:shownRuns], ", "), len(runs)-shownRuns)
}
