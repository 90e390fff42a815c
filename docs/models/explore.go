package main

import (
	"fmt"
	"hash/maphash"
	"slices"
)

// step leads to another state. A fault need not happen.
type step struct {
	what  string
	fault bool
	to    state
}

// steps collects what can happen next. Only traces need descriptions.
type steps struct {
	describe bool
	list     []step
}

func (l *steps) add(to state, format string, args ...any) { l.append(false, to, format, args) }

func (l *steps) addFault(to state, format string, args ...any) { l.append(true, to, format, args) }

func (l *steps) append(fault bool, to state, format string, args []any) {
	s := step{fault: fault, to: to}
	if l.describe {
		s.what = fmt.Sprintf(format, args...)
	}
	l.list = append(l.list, s)
}

func (s *state) steps(describe bool) []step {
	l := steps{describe: describe}
	s.addCommits(&l)
	s.addRelay(&l)
	s.addWrites(&l)
	s.addReads(&l)
	s.addFaults(&l)
	return l.list
}

// result is the outcome of a run. Ends are states in which no step but a fault is left.
type result struct {
	states                 int
	broken                 string // the first property found broken; empty: all hold
	trace                  []step // a shortest way there
	ends, refused, twoLost int
}

// explorer visits every state, the near ones first. It keeps a fingerprint of 128 bits of each.
type explorer struct {
	run     *run
	seeds   [2]maphash.Seed
	ids     map[[2]uint64]int32
	parents []int32
	calm    [][]int32 // the states that each leads to without a fault
	queue   []state   // not yet visited
	result  result
}

func explore(r *run) result {
	x := explorer{run: r, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, ids: map[[2]uint64]int32{}}
	x.put(initialState(r), -1)
	x.visitAll()
	if x.result.broken == "" {
		if id, found := findCycle(x.calm); found {
			x.result.broken, x.result.trace = "S3: the relay repeats the same steps for ever", x.trace(id)
		}
	}
	x.result.states = len(x.parents)
	return x.result
}

func (x *explorer) fingerprint(s *state) [2]uint64 {
	return [2]uint64{maphash.Comparable(x.seeds[0], *s), maphash.Comparable(x.seeds[1], *s)}
}

// put returns the number of the state. A new state is queued.
func (x *explorer) put(s state, parent int32) int32 {
	s.simplify()
	print := x.fingerprint(&s)
	id, known := x.ids[print]
	if !known {
		id = int32(len(x.parents))
		x.ids[print] = id
		x.parents = append(x.parents, parent)
		x.queue = append(x.queue, s)
	}
	return id
}

// visitAll ends at the first state that breaks a property, or when the queue is empty.
func (x *explorer) visitAll() {
	id := int32(0)
	for len(x.queue) > 0 {
		level := x.queue
		x.queue = nil
		for i := range level {
			if x.visit(&level[i], id); x.result.broken != "" {
				return
			}
			id++
		}
	}
}

func (x *explorer) visit(s *state, id int32) {
	var calm []int32
	for k, next := range s.steps(false) {
		if next.to.broken != "" {
			x.result.broken = next.to.broken
			x.result.trace = append(x.trace(id), s.steps(true)[k])
			return
		}
		if to := x.put(next.to, id); !next.fault && to != id {
			calm = append(calm, to)
		}
	}
	x.calm = append(x.calm, slices.Clip(calm))
	if len(calm) > 0 {
		return
	}
	x.count(s)
	if broken := s.checkEnd(); broken != "" {
		x.result.broken, x.result.trace = broken, x.trace(id)
	}
}

func (x *explorer) count(s *state) {
	x.result.ends++
	if s.relay.mode == refused {
		x.result.refused++
	}
	if s.lostTwice != [maxKeys]bool{} {
		x.result.twoLost++
	}
}

// trace repeats the steps from the start to a state.
func (x *explorer) trace(id int32) []step {
	var path []int32
	for ; id > 0; id = x.parents[id] {
		path = append(path, id)
	}
	at := initialState(x.run)
	at.simplify()
	trace := []step{{what: "start", to: at}}
	for _, next := range slices.Backward(path) {
		found := x.stepTo(&trace[len(trace)-1].to, next)
		trace = append(trace, found)
	}
	return trace
}

func (x *explorer) stepTo(s *state, id int32) step {
	for _, next := range s.steps(true) {
		next.to.simplify()
		if x.ids[x.fingerprint(&next.to)] == id {
			return next
		}
	}
	panic("simplify made two states equal that have different steps")
}

// findCycle returns a state that leads to itself.
func findCycle(edges [][]int32) (id int32, found bool) {
	const unseen, open, done = 0, 1, 2
	status := make([]byte, len(edges))
	type visit struct {
		id   int32
		next int
	}
	for start := range edges {
		if status[start] != unseen {
			continue
		}
		stack := []visit{{id: int32(start)}}
		status[start] = open
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(edges[top.id]) {
				status[top.id] = done
				stack = stack[:len(stack)-1]
				continue
			}
			to := edges[top.id][top.next]
			top.next++
			if status[to] == open {
				return to, true
			}
			if status[to] == unseen {
				status[to] = open
				stack = append(stack, visit{id: to})
			}
		}
	}
	return 0, false
}
