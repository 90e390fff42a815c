package migrations_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	first := set("s", `create table a (n int);`)
	second := set("s", `create table a (n int);`, `create table b (n int);`)
	other := set("o", `create table o (n int);`)
	tests := map[string]struct {
		database, binary []migrations.Set
		want             []migrations.SchemaError
	}{
		"equal":          {database: []migrations.Set{second, other}, binary: []migrations.Set{second, other}},
		"never migrated": {nil, []migrations.Set{second}, []migrations.SchemaError{{"schema_older", "s", []int64{1, 2}}}},
		"older": {
			[]migrations.Set{first},
			[]migrations.Set{second},
			[]migrations.SchemaError{{"schema_older", "s", []int64{2}}},
		},
		"newer": {
			[]migrations.Set{second},
			[]migrations.Set{first},
			[]migrations.SchemaError{{"schema_newer", "s", []int64{2}}},
		},
		"one of each": {
			[]migrations.Set{second},
			[]migrations.Set{first, other},
			[]migrations.SchemaError{{"schema_newer", "s", []int64{2}}, {"schema_older", "o", []int64{1}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t, test.database...)
			err := migrations.Check(t.Context(), pool, test.binary...)
			require.Equal(t, test.want, schemaErrors(err))
			for _, want := range test.want {
				require.ErrorContains(t, err, want.Error())
			}
		})
	}
}

func schemaErrors(err error) []migrations.SchemaError {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var found []migrations.SchemaError
	for _, one := range joined.Unwrap() {
		if schema, ok := errors.AsType[*migrations.SchemaError](one); ok {
			found = append(found, *schema)
		}
	}
	return found
}

func TestCheckReportsAQueryThatFails(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	pool.Close()
	err := migrations.Check(t.Context(), pool, set("s", `select 1;`))
	require.ErrorContains(t, err, "read migrations of s")
}
