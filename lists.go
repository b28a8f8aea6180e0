package olaf

// Map returns the results of calling of with each element of a list, in order. It returns nil for an empty list.
func Map[E, T any](list []E, of func(E) T) []T {
	var results []T
	for _, each := range list {
		results = append(results, of(each))
	}
	return results
}
