package engine

import (
	"math/big"

	"github.com/olafctl/olaf"
)

// IsExact reports whether i represents r without rounding.
func (i Increment) IsExact(r olaf.Rate) bool {
	have := new(big.Int).Mul(big.NewInt(int64(i)), big.NewInt(8*cyclesPerSecond))
	want := new(big.Int).Lsh(big.NewInt(int64(r)), incrementBits)
	return have.Cmp(want) == 0
}
