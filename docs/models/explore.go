package main

import (
	"fmt"
	"hash/maphash"
	"slices"
)

type node[S any] interface {
	*S
	steps(describe bool) []step[S]
	simplify()
	brokenBy() string // by the step into this state
	checkEnd() string // when only faults are left
	String() string
}

// A fault need not happen.
type step[S any] struct {
	what  string
	fault bool
	to    S
}

type stepList[S any] struct {
	describe bool
	list     []step[S]
}

func (l *stepList[S]) add(to S, format string, args ...any) {
	s := step[S]{to: to}
	if l.describe {
		s.what = fmt.Sprintf(format, args...)
	}
	l.list = append(l.list, s)
}

func (l *stepList[S]) addFault(to S, format string, args ...any) {
	l.add(to, format, args...)
	l.list[len(l.list)-1].fault = true
}

type steps = stepList[state]

func (s *state) steps(describe bool) []step[state] {
	l := steps{describe: describe}
	s.addCommits(&l)
	s.addRelay(&l)
	s.addWrites(&l)
	s.addRefusals(&l)
	s.addReads(&l)
	s.addFaults(&l)
	return l.list
}

func (s *state) brokenBy() string { return s.broken }

type result struct {
	states int
	broken string
	trace  []line
}

type line struct{ what, state string }

type parent struct{ id, step int32 }

// explorer visits near states first and keeps a fingerprint of 128 bits of each.
type explorer[S comparable, P node[S]] struct {
	start   S
	seeds   [2]maphash.Seed
	ids     map[[2]uint64]int32
	parents []parent
	calm    [][]int32 // by a step without a fault
	queue   []S
}

func explore(r run) result {
	r.setDefaults()
	return exploreFrom(initialState(&r))
}

func exploreFrom[S comparable, P node[S]](start S) result {
	x := explorer[S, P]{
		start: start, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, ids: map[[2]uint64]int32{},
	}
	x.put(start, parent{id: -1})
	broken, at := x.visitAll()
	if broken == "" {
		if id, found := findCycle(x.calm); found {
			broken, at = "S3: the relay repeats the same steps for ever", parent{id, -1}
		}
	}
	if broken == "" {
		return result{states: len(x.parents)}
	}
	return result{len(x.parents), broken, x.trace(at)}
}

func (x *explorer[S, P]) put(s S, from parent) int32 {
	P(&s).simplify()
	fingerprint := [2]uint64{maphash.Comparable(x.seeds[0], s), maphash.Comparable(x.seeds[1], s)}
	id, known := x.ids[fingerprint]
	if !known {
		id = int32(len(x.parents))
		x.ids[fingerprint] = id
		x.parents = append(x.parents, from)
		x.queue = append(x.queue, s)
	}
	return id
}

func (x *explorer[S, P]) visitAll() (broken string, at parent) {
	for id := int32(0); len(x.queue) > 0; {
		level := x.queue
		x.queue = nil
		for i := range level {
			if broken, step := x.visit(&level[i], id); broken != "" {
				return broken, parent{id, step}
			}
			id++
		}
	}
	return "", parent{}
}

func (x *explorer[S, P]) visit(s P, id int32) (broken string, step int32) {
	var calm []int32
	for i, next := range s.steps(false) {
		if broken := P(&next.to).brokenBy(); broken != "" {
			return broken, int32(i)
		}
		if to := x.put(next.to, parent{id, int32(i)}); !next.fault && to != id {
			calm = append(calm, to)
		}
	}
	x.calm = append(x.calm, slices.Clip(calm))
	if len(calm) == 0 {
		broken = s.checkEnd()
	}
	return broken, -1
}

func (x *explorer[S, P]) trace(at parent) []line {
	var path []int32
	for ; at.id >= 0; at = x.parents[at.id] {
		path = append(path, at.step)
	}
	s := x.start
	trace := []line{{"start", P(&s).String()}}
	for _, i := range slices.Backward(path) {
		P(&s).simplify()
		if i >= 0 {
			next := P(&s).steps(true)[i]
			s = next.to
			trace = append(trace, line{next.what, P(&s).String()})
		}
	}
	return trace
}

func findCycle(edges [][]int32) (id int32, found bool) {
	const unseen, open, done = 0, 1, 2
	status := make([]byte, len(edges))
	var visit func(int32) bool
	visit = func(from int32) bool {
		status[from] = open
		for _, to := range edges[from] {
			if status[to] == open || status[to] == unseen && visit(to) {
				id = from
				return true
			}
		}
		status[from] = done
		return false
	}
	for start := range edges {
		if status[start] == unseen && visit(int32(start)) {
			return id, true
		}
	}
	return 0, false
}
