package regmap

// readBank reads consecutive 64-bit registers, starting at addr, into counters.
func readBank(r Reader, addr uint32, counters []*uint64) error {
	for i, c := range counters {
		v, err := Read64(r, addr+uint32(8*i))
		if err != nil {
			return err
		}
		*c = v
	}
	return nil
}

// addBank adds each counter in from, multiplied by factor, to the counter with the same index in to.
func addBank(to, from []*uint64, factor uint64) {
	for i := range to {
		*to[i] += *from[i] * factor
	}
}
