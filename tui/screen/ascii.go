package screen

import "math/bits"

// ASCII replaces all non-ASCII characters with similar ASCII characters, cell by cell, for terminals that can show only
// ASCII. Braille curves become slopes and dashes, " ± " becomes "+/-", " ≤" becomes "<=", and characters without a
// similar one become question marks.
func (s *Screen) ASCII() {
	for i := range s.cells {
		c := &s.cells[i]
		switch {
		case c.Rune == 0: // second half of a wide character; its first half becomes one question mark
			c.Rune = '?'
		case c.Rune == '±' && s.blank(i, -1) && s.blank(i, 1):
			s.cells[i-1].Rune, c.Rune, s.cells[i+1].Rune = '+', '/', '-'
		case (c.Rune == '≤' || c.Rune == '≥') && s.blank(i, -1):
			s.cells[i-1].Rune, c.Rune = likenesses[c.Rune], '='
		case c.Rune > '~':
			c.Rune = asciiFor(c.Rune)
		}
	}
}

// blank reports whether there is a blank cell in the same row at the offset beside from cell i.
func (s *Screen) blank(i, beside int) bool {
	x := i%s.width + beside
	return x >= 0 && x < s.width && s.cells[i+beside].Rune == ' '
}

// likenesses maps characters to similar ASCII characters.
var likenesses = map[rune]rune{
	'─': '-', '━': '-', '┄': '-', '│': '|', '┃': '|', '┆': '|', '‖': '|',
	'▁': '_', '▂': '.', '▃': ':', '▄': '-', '▅': '=', '▆': '+', '▇': '*', '█': '#', '▀': '"', '▐': '#',
	'▏': ':', '▎': ':', '▍': ':', '▌': '=', '▋': '=', '▊': '=', '▉': '#', '░': '.', '▒': ':', '▓': '%', '▮': '#',
	'▯': '-', '■': '#',
	'✗': 'x', '✓': 'v', '◀': '<', '▶': '>', '▸': '>', '◆': '*', '◎': 'o', '⊕': '+', '↻': '@', '❄': '*', '●': '*', '○': 'o',
	'↑': '^', '↓': 'v', '→': '>', '←': '<', '≤': '<', '≥': '>', '≈': '~', '±': '~', '…': '~', '·': '|', '×': 'x',
	'µ': 'u', 'μ': 'u',
	'–': '-', '—': '-', '−': '-', '’': '\'', '‘': '\'', '“': '"', '”': '"', 'Δ': 'D', 'α': 'a', 'ε': 'e', '²': '2',
	'³': '3',
}

// asciiFor returns the ASCII character that replaces another character.
func asciiFor(c rune) rune {
	switch l, ok := likenesses[c]; {
	case ok:
		return l
	case c >= 0x2500 && c < 0x2580: // corners and crossings of boxes
		return '+'
	case c >= 0x2800 && c <= 0x28ff:
		return nearestStroke(uint8(c - 0x2800))
	}
	return '?'
}

// nearestStroke returns the ASCII stroke that is most similar to a braille pattern. Bit i of dots stands for dot i + 1.
func nearestStroke(dots uint8) rune {
	const left, right = 0b0100_0111, 0b1011_1000
	if dots == 0 {
		return ' '
	}
	l, r := meanRow(dots&left), meanRow(dots&right>>3&0b111|dots&right>>1&0b0100_0000)
	switch {
	case bits.OnesCount8(dots) > 5:
		return '#'
	case l < 0 && bits.OnesCount8(dots) > 2, r < 0 && bits.OnesCount8(dots) > 2:
		return '|'
	case l >= 0 && r >= 0 && r-l >= 1:
		return '\\'
	case l >= 0 && r >= 0 && l-r >= 1:
		return '/'
	}
	if l < 0 || r < 0 {
		return horizontalStroke(max(l, r))
	}
	return horizontalStroke((l + r) / 2)
}

// horizontalStroke returns a horizontal stroke at a height between 0 (top) and 3 (bottom).
func horizontalStroke(height float64) rune {
	switch {
	case height < 1:
		return '\''
	case height <= 2:
		return '-'
	}
	return '_'
}

// meanRow returns the mean row of the dots in a braille column, between 0 (top) and 3 (bottom). It returns −1 if there
// are no dots.
func meanRow(column uint8) float64 {
	sum, n := 0, 0
	for row, bit := range [4]uint8{1, 2, 4, 0x40} {
		if column&bit != 0 {
			sum, n = sum+row, n+1
		}
	}
	if n == 0 {
		return -1
	}
	return float64(sum) / float64(n)
}
