package main

import (
	"context"
	"errors"
	"time"
)

// benchmark is a plan on its stage. R is what it finds.
type benchmark[R report] interface {
	// prepare makes what all steps need, before the first.
	prepare(ctx context.Context) error
	// steps are those of the parts asked for, or all, in the order in which they run.
	steps(only []string) []step
	report(f facts, quick bool, took time.Duration) R
}

// terms are what a plan asks of its stage and of the time.
type terms struct {
	keep   bool          // databases, until the end
	noSync bool          // fsync off, for tests
	budget time.Duration // after which further rounds are left out; 0: none is
}

// perform measures, prints the table and, if everything was measured, writes the results.
func perform[R interface {
	comparable
	report
}](ctx context.Context, o options, whole bool, to streams, measure func(context.Context) (R, error)) error {
	ctx, cancel := o.limited(ctx)
	defer cancel()
	result, err := measure(ctx)
	var nothing R
	if result == nothing {
		return err
	}
	return errors.Join(err, o.show(result, whole, to))
}

// onStage runs the benchmark on a stage of its own. It returns a report and an error when all was measured and
// something could not be put away.
func onStage[R report](
	ctx context.Context, o options, only []string, t terms, to streams, on func(*stage) benchmark[R],
) (result R, err error) {
	began := time.Now()
	st, err := openStage(ctx, o.stage(to, !t.noSync))
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	st.keep = t.keep
	b := on(st)
	facts, err := st.facts(ctx)
	if err != nil {
		return result, err
	}
	if err := b.prepare(ctx); err != nil {
		return result, err
	}
	if err := runSteps(ctx, to, b.steps(only), t.budget); err != nil {
		return result, err
	}
	return b.report(facts, o.Quick, time.Since(began)), nil
}
