package sweep

import "github.com/olafctl/olaf"

// Kinds of errors; match them with errors.Is.
var (
	ErrFailed  = olaf.NewError(olaf.Failed, "cells of the sweep failed")
	ErrDiffers = olaf.NewError(olaf.Missed, "a result came out otherwise a second time")
)
