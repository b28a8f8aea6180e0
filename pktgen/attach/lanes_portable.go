//go:build !amd64 || purego

package attach

// Without vector instructions, every value is converted individually.

func convertLanes([]uint32, []byte, float64, uint32) (done int) { return 0 }

func convertValues([]byte, []uint32, float64) (done int) { return 0 }
