package migrations_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/migrations"
	"example.com/twinbox/test/pgtest"
)

// breaking is a migration after which older binaries may not go on.
func breaking(statement string) string { return "-- Older binaries may not go on.\n" + statement }

func TestCheck(t *testing.T) {
	t.Parallel()
	first := set("s", `create table a (n int);`)
	second := set("s", `create table a (n int);`, `create table b (n int);`)
	third := set("s", `create table a (n int);`, `create table b (n int);`, breaking(`create table c (n int);`))
	fourth := set("s", `create table a (n int);`, `create table b (n int);`, breaking(`create table c (n int);`),
		`create table d (n int);`)
	other := set("o", `create table o (n int);`)
	wrong := func(code, set string, database, binary int64) migrations.SchemaError {
		return migrations.SchemaError{
			Code: code, Difference: migrations.Difference{Set: set, Database: database, Binary: binary},
		}
	}
	const older, tooNew = migrations.CodeOlder, migrations.CodeNewer
	tests := map[string]struct {
		database, binary []migrations.Set
		newer            []migrations.Difference
		wrong            []migrations.SchemaError
	}{
		"equal":          {database: []migrations.Set{second, other}, binary: []migrations.Set{second, other}},
		"never migrated": {binary: []migrations.Set{second}, wrong: []migrations.SchemaError{wrong(older, "s", 0, 2)}},
		"older": {
			database: []migrations.Set{first}, binary: []migrations.Set{second},
			wrong: []migrations.SchemaError{wrong(older, "s", 1, 2)},
		},
		"newer": {
			database: []migrations.Set{second}, binary: []migrations.Set{first}, newer: []migrations.Difference{{"s", 2, 1}},
		},
		"newer, and older binaries may not go on": {
			database: []migrations.Set{third}, binary: []migrations.Set{first},
			wrong: []migrations.SchemaError{wrong(tooNew, "s", 3, 1)},
		},
		"newer than a binary that knows the breaking one": {
			database: []migrations.Set{fourth}, binary: []migrations.Set{third}, newer: []migrations.Difference{{"s", 4, 3}},
		},
		"one of each": {
			database: []migrations.Set{third}, binary: []migrations.Set{second, other},
			wrong: []migrations.SchemaError{wrong(tooNew, "s", 3, 2), wrong(older, "o", 0, 1)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t, test.database...)
			newer, err := migrations.Check(t.Context(), pool, test.binary...)
			require.Equal(t, test.newer, newer)
			require.Equal(t, test.wrong, schemaErrors(err))
			for _, want := range test.wrong {
				require.ErrorContains(t, err, want.Error())
			}
		})
	}
}

// An older binary continues until the breaking migration is applied: one that fails keeps nobody out.
func TestABreakingMigrationThatFailsKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	_, err := migrations.Apply(t.Context(), pgtest.DSN(pool),
		set("s", `create table a (n int);`, `create table b (n int);`, breaking(`select 1/0;`)))
	require.Error(t, err)
	newer, err := migrations.Check(t.Context(), pool, set("s", `create table a (n int);`))
	require.NoError(t, err)
	require.Equal(t, []migrations.Difference{{Set: "s", Database: 2, Binary: 1}}, newer)
}

// A file that means the mark has it word for word, and in its place.
func TestTheMarkOfABreakingMigrationIsExact(t *testing.T) {
	t.Parallel()
	const mark = "-- Older binaries may not go on."
	for _, set := range allSets() {
		names, err := fs.Glob(set.FS, "*.sql")
		require.NoError(t, err)
		for _, name := range names {
			content, err := fs.ReadFile(set.FS, name)
			require.NoError(t, err)
			if strings.Contains(strings.ToLower(string(content)), "older binar") {
				require.Contains(t, string(content), "-- +goose Up\n"+mark+"\n", "%s/%s", set.Name, name)
			}
		}
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
