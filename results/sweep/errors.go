package sweep

import "github.com/olafctl/olaf"

// Kinds of errors; match them with errors.Is.
var (
	ErrFailed  = olaf.NewError(olaf.Failed, "cells of the sweep failed")
	ErrResult  = olaf.NewError(olaf.Failed, "what is stored is no result of a sweep")
	ErrDiffers = olaf.NewError(olaf.Missed, "a result came out otherwise a second time")
)
