package figuretest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/olafctl/olaf/results/figure/figuretest"
)

// TestFaultsOfOldFigures checks that the faults of figures that olafctl once drew are found; the old figures are stored
// unchanged.
func TestFaultsOfOldFigures(t *testing.T) {
	for name, want := range map[string][]string{
		"fig10-age": {`label cut by the edge: "mean AoM in ms; FIFO per worker, Olaf per cluster"`,
			"panel 1 is pressed together: 332 × 101 of 400 × 270"},
		"fig10-loss": {`label cut by the edge: "dropped packets in % of updates sent, and workers with fewer than two deliveries"`, "panel 1 has no room",
			"panel 1 is empty"},
		"fig10-sawtooth": {"panel 1 has no room", "panel 1 is empty"},
		"fig10-cdf":      {"a mark outside of its axes", "label cut by the edge", "labels over each other", "no axes"},
		"fig7-closed":    {"2 units on one axis"},
	} {
		svg, err := os.ReadFile(filepath.Join("testdata", name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, name, string(svg), want)
	}
}

// expect checks that the faults begin with the wanted ones, that each occurs, and that there are no others.
func expect(t *testing.T, name, svg string, want []string) {
	t.Helper()
	found, err := figuretest.FindFaults(strings.NewReader(svg))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, w := range want {
		if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, w) }) {
			t.Errorf("%s: not found: %s", name, w)
		}
	}
	for _, f := range found {
		if !slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(f, w) }) {
			t.Errorf("%s: found %s", name, f)
		}
	}
}

// axes is a panel of 300 × 200 with one line, in a page of 400 × 270 whose y axis points up.
const axes = `<path d="M50,40L50,240" style="fill:none;stroke:#000000;stroke-width:0.5" />
<path d="M50,40L350,40" style="fill:none;stroke:#000000;stroke-width:0.5" />
<path d="M50,40L350,200" style="fill:none;stroke:#0072B2;stroke-width:1.75" />`

func paged(body string) string {
	return `<svg viewBox="0 0 400 270" xmlns="http://www.w3.org/2000/svg"><g transform="scale(1, -1) translate(0, -270)">` + body + `</g></svg>`
}

func text(x, y float64, words string) string {
	return fmt.Sprintf(`<text x="%v" y="%v" transform="scale(1, -1)" style="font-size:11px">%s</text>`, x, -y, words)
}

func TestEachFault(t *testing.T) {
	line := func(i int, path string) string {
		return fmt.Sprintf(`<path d="%s" style="fill:none;stroke:#0072B%d;stroke-width:1.75" />`, path, i)
	}
	many := axes
	for i := range 7 {
		many += line(i, "M50,60L350,90")
	}
	for name, c := range map[string]struct {
		svg  string
		want []string
	}{
		"well": {axes + text(60, 10, "time") + text(100, 10, "µs"), nil},
		"legend": {axes + `<path d="M60,255L78,255" style="fill:none;stroke:#0072B2;stroke-width:1.75" />` +
			text(82, 251, "olaf"), nil},
		"cut":  {axes + text(380, 10, "seconds"), []string{"label cut by the edge"}},
		"over": {axes + text(60, 10, "time") + text(70, 12, "age"), []string{`labels over each other: "time" and "age"`}},
		"turned": {axes + `<g transform="rotate(90)">` + text(100, -20, "age") + text(110, -20, "time") + `</g>`,
			[]string{"labels over each other"}},
		"data":   {axes + text(100, 100, "olaf"), []string{`label over the data: "olaf"`}},
		"beyond": {axes + line(3, "M50,60L350,260"), []string{"a mark outside of its axes"}},
		"lost":   {axes + line(3, "M60,255L78,255"), []string{"a mark outside of its axes"}},
		"empty":  {strings.Split(axes, "\n")[0] + strings.Split(axes, "\n")[1], []string{"panel 1 is empty"}},
		"none":   {text(60, 10, "time"), []string{"no axes"}},
		"flat": {strings.ReplaceAll(axes, "M50,40L50,240", "M50,40L50,100") + text(60, 10, "x"),
			[]string{"panel 1 is pressed together", "panel 1 is empty", "a mark outside of its axes"}},
		"many":  {many, []string{"panel 1 shows 7 series"}},
		"units": {axes + text(60, 251, "olaf µs") + text(160, 251, "olaf %"), []string{"2 units on one axis"}},
	} {
		expect(t, name, paged(c.svg), c.want)
	}
}

func TestInvalidFigureIsAnError(t *testing.T) {
	for _, svg := range []string{"", "<svg", `<svg viewBox="0 0 x 1"></svg>`, paged(`<path d="Mx,1"/>`), paged(`<path d="M1,1L2,2" style="fill:none;stroke:#-80-80-80"/>`),
		paged(`<text x="1">a</text>`), paged(`<g transform="scale(z)"></g>`)} {
		if _, err := figuretest.FindFaults(strings.NewReader(svg)); err == nil {
			t.Errorf("%q: no error", svg)
		}
	}
}
