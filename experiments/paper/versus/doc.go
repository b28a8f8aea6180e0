// Package versus compares systems from different papers on one bench. No paper has made this comparison.
package versus
