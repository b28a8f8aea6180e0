package olaf

import (
	"fmt"
	"strconv"
	"strings"
)

// Shares is a list of loss shares, such as 0,0.01%,0.001. An empty list means 0. It implements pflag.Value.
type Shares []float64

func (l *Shares) Set(text string) error {
	*l = nil
	for _, one := range strings.Split(text, ",") {
		number, percent := strings.CutSuffix(strings.TrimSpace(one), "%")
		v, err := ParseNumber(number)
		if err != nil {
			return fmt.Errorf("%q is not a share, such as 0.001 or 0.1%%", one)
		}
		if percent {
			v /= 100
		}
		*l = append(*l, v)
	}
	return nil
}

func (l *Shares) String() string {
	var parts []string
	for _, v := range *l {
		parts = append(parts, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return strings.Join(parts, ",")
}

func (l *Shares) Type() string { return "shares" }

func (l *Shares) First() float64 {
	if len(*l) == 0 {
		return 0
	}
	return (*l)[0]
}
