package admin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/inbox"
	"example.com/twinbox/internal/ops/admin"
)

type object = map[string]any

type operation struct {
	method, path     string
	example, members object // of the body
}

func (o operation) changes() bool { return o.members["by"] != nil }

func (o operation) String() string { return o.method + " " + o.path }

func describedOperations(t *testing.T) (operations []operation) {
	t.Helper()
	var root object
	require.NoError(t, json.Unmarshal(api.Admin, &root))
	schemas := root["components"].(object)["schemas"].(object)
	var deref func(value any) object
	deref = func(value any) object {
		described, _ := value.(object)
		if name, is := described["$ref"].(string); is {
			return deref(schemas[strings.TrimPrefix(name, "#/components/schemas/")])
		}
		if parts, is := described["allOf"].([]any); is {
			return deref(parts[0])
		}
		return described
	}
	for path, methods := range root["paths"].(object) {
		for method, described := range methods.(object) {
			op := operation{method: strings.ToUpper(method), path: path}
			if body, is := described.(object)["requestBody"].(object); is {
				media := body["content"].(object)["application/json"].(object)
				op.example, op.members = media["example"].(object), object{}
				require.NotEmpty(t, op.example, "%s needs an example", op)
				for name, schema := range deref(media["schema"])["properties"].(object) {
					member := maps.Clone(deref(schema))
					if inner := maps.Clone(property(member)); inner != nil {
						for name := range inner {
							inner[name] = deref(inner[name])
						}
						member["properties"] = inner
					}
					op.members[name] = member
				}
			}
			operations = append(operations, op)
		}
	}
	return operations
}

// nothings leaves out false, which means no. The zero time in a text is a text like any other.
func nothings(schema any) []any {
	all := []any{nil, "", " ", "\t", 0, []any{}, []any{nil}, []any{""}, []any{0}, object{}}
	if described := schema.(object); described["type"] == "string" && described["format"] == nil {
		if described["pattern"] == nil { // an id or a type may be a blank
			all = append(all[:2:2], all[4:]...)
		}
		return all
	}
	return append(all, "0001-01-01T00:00:00Z", "0001-01-01T14:00:00+14:00", "0000-12-31T23:00:00-01:00")
}

// bodies say nothing, or something twice or unknown.
func (o operation) bodies(t *testing.T) (bodies []string) {
	t.Helper()
	clone := func(with object) object {
		request := maps.Clone(o.example)
		if o.changes() {
			request["dry_run"] = false
		}
		maps.Copy(request, with)
		return request
	}
	for name, schema := range o.members {
		for _, nothing := range nothings(schema) {
			bodies = append(bodies, text(t, clone(object{name: nothing})))
		}
		for inner, of := range property(schema) {
			for _, nothing := range nothings(of) {
				bodies = append(bodies, text(t, clone(object{name: object{"consumer": "a", "limit": 1000, inner: nothing}})))
			}
			twice := text(t, clone(object{name: "HERE"}))
			bodies = append(bodies, strings.Replace(twice, `"HERE"`, fmt.Sprintf(`{"code":"c",%q:null,%q:1}`, inner, inner), 1),
				text(t, clone(object{name: object{strings.ToUpper(inner): "c"}})))
		}
		bodies = append(bodies, text(t, clone(object{strings.ToUpper(name): o.example[name]})),
			strings.Replace(text(t, clone(nil)), "{", fmt.Sprintf(`{%q:null,%q:null,`, name, name), 1))
	}
	return append(bodies, text(t, clone(object{"unknown": 1})), "", "null", "[]", `{"dry_run":false}`)
}

func property(schema any) object {
	properties, _ := schema.(object)["properties"].(object)
	return properties
}

func text(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	require.NoError(t, err)
	return string(encoded)
}

// world has something to change for every operation.
func world(t *testing.T) (b *bundle, touched func() []any) {
	t.Helper()
	var calls []asked
	var mails []string
	for _, op := range describedOperations(t) {
		ids, _ := op.example["ids"].([]any)
		for _, id := range ids {
			mails = append(mails, id.(string))
		}
	}
	b = setup(t, withMails(t, mails...), func(cfg *admin.Config, _ *http.Server) {
		cfg.Consumers = []admin.Consumer{consumer("a", []inbox.Result{replayedOne}, nil, &calls)}
		for _, name := range []string{"customer.mail", "customer.profile"} { // of examples
			cfg.Consumers = append(cfg.Consumers, consumer(name, nil, nil, &calls))
		}
	})
	b.add(t, 3)
	b.file(t, filed{"a", "", "permanent", "schema_violation", "waiting", "", 3},
		filed{"a", "", "unknown", "handler_failed", "waiting", "", 3}, filed{"b", "", "unknown", "c", "waiting", "", 3})
	for _, op := range describedOperations(t) {
		if strings.HasSuffix(op.path, "/consumers/resume") {
			b.exec(t, `insert into public.inbox_pause (consumer, paused_by, reason)
				values ($1, 'grace', 'r')`, op.example["consumer"])
		}
		if strings.HasSuffix(op.path, "/scheduled/cancel") {
			b.exec(t, scheduleRowSQL, op.example["name"], "1 hour")
		}
		if strings.HasSuffix(op.path, "/release") {
			b.exec(t, `insert into public.outbox_parked (topic, key, reason, permanent)
				values ($1, $2, 'too large', true)`, op.example["topic"], op.example["key"])
		}
	}
	return b, func() []any {
		rows, err := b.pool.Query(t.Context(), `select format('select %L, md5(string_agg(t::text, '','' order by t::text))
			from %s t', oid::regclass, oid::regclass) from pg_class where relkind in ('r', 'p')
			and relnamespace = 'public'::regnamespace and not relispartition order by 1`)
		require.NoError(t, err)
		tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Greater(t, len(tables), 5)
		state := []any{len(calls), b.publisher.n}
		for _, table := range tables {
			var name string
			var sum *string
			require.NoError(t, b.pool.QueryRow(t.Context(), table).Scan(&name, &sum))
			state = append(state, name, sum)
		}
		return state
	}
}

// pauseFor pauses the relay if the operation resumes it, and resumes it for any other. It makes the relay refuse for
// the operation that confirms.
func (b *bundle) pauseFor(t *testing.T, op operation) {
	t.Helper()
	b.exec(t, `update public.outbox_cursor set paused_by = 'grace', paused_for = 'r',
		paused_at = case when $1 then '2026-01-02'::timestamptz end, refused = $2 || ': a sentence.', confirmed = null`,
		strings.HasSuffix(op.path, "/outbox/resume"), op.example["code"])
}

// The test walks the document, so it covers operations that are added later.
func TestARequestThatSaysNothingIsRefused(t *testing.T) {
	t.Parallel()
	b, state := world(t)
	tried := 0
	for _, op := range describedOperations(t) {
		b.pauseFor(t, op)
		before := state()
		status, answer := b.operate(t, op.method, op.path+"?limit=1", text(t, op.example))
		requireProblem(t, status, answer, http.StatusBadRequest, "invalid_parameter")
		if op.members == nil {
			continue
		}
		for _, body := range op.bodies(t) {
			status, answer := b.operate(t, op.method, op.path, body)
			require.True(t, status >= 400 && status < 500, "%s %s: %d %s", op, body, status, answer)
			require.Contains(t, string(answer), `"code":`)
			tried++
		}
		require.Equal(t, before, state(), "%s changed something", op)
	}
	require.Greater(t, tried, 1000)
	for _, op := range describedOperations(t) {
		b.pauseFor(t, op)
		if op.members != nil {
			status, answer := b.operate(t, op.method, op.path, text(t, op.example))
			require.Equal(t, http.StatusOK, status, "the example of %s, a dry run: %s", op, answer)
		}
	}
}

func TestAWrongMemberIsNamed(t *testing.T) {
	t.Parallel()
	b := withoutDatabase(t)
	for body, c := range map[string][2]string{
		`{"since":"2026-11-21T10:00:60Z","verb":"edit"}`: {"audit", "since"},
		`{"until":"2026-11-21t10:00:00Z"}`:               {"audit", "until"},
		`{"limit":1.5}`:                                  {"audit", "limit"},
		`{"after":9223372036854775808}`:                  {"outbox/events", "after"},
		`{"kind":"outboks"}`:                             {"audit", "kind"},
		`{}`:                                             {"inbox/events", "event_id"},
		`{"filter":{"code":null},"by":"a","reason":"r","dry_run":true}`: {"dead-letters/discard", "filter/code"},
	} {
		status, answer := b.call(t, "POST", "/admin/v1/"+c[0], body)
		require.Contains(t, []int{400, 422}, status, body)
		require.Contains(t, string(answer), `"pointer":"#/`+c[1]+`"`, body)
	}
}
