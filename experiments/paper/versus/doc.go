// Package versus compares systems from different papers on one bench, which no paper has done.
package versus
