//go:build faults

package fault

import "sync"

// Enabled reports whether crash points are compiled in.
const Enabled = true

var (
	mu    sync.Mutex
	armed = map[string]func(hit int){}
	hits  = map[string]int{}
)

// Here counts the hit and runs the function armed at this crash point, if any.
func Here(point string) {
	mu.Lock()
	hits[point]++
	hit := hits[point]
	do := armed[point]
	mu.Unlock()
	if do != nil {
		do(hit)
	}
}

// Arm makes the crash point run do each time it is reached.
func Arm(point string, do func()) {
	mu.Lock()
	defer mu.Unlock()
	armed[point] = func(int) { do() }
}

// ArmNth is [Arm] for the nth hit from now on alone, counted from 1.
func ArmNth(point string, n int, do func()) {
	mu.Lock()
	defer mu.Unlock()
	due := hits[point] + n
	armed[point] = func(hit int) {
		if hit == due {
			do()
		}
	}
}

// Disarm removes the function armed at the crash point.
func Disarm(point string) {
	mu.Lock()
	defer mu.Unlock()
	delete(armed, point)
}

// Hits returns how often the crash point was reached in this process.
func Hits(point string) int {
	mu.Lock()
	defer mu.Unlock()
	return hits[point]
}
