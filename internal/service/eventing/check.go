package eventing

import "fmt"

// Check is a query of a service's tables for events without their effect. A row has the event's id, its key, a version
// and a sentence. The first three may be empty or 0.
type Check struct {
	Name, SQL string
	Args      []any // text, numbers and booleans
}

const selectOddVersions = `
select '' as event_id, coalesce(w.key, p.%[2]s::text) as key, coalesce(p.version, 0) as version,
    format('the row in %[1]s is at version %%s, its events at %%s', coalesce(p.version, 0), coalesce(w.version, 0))
        as detail
from (select key, version from public.inbox_key where consumer = $1 and version > 0) w
full join %[1]s p on p.%[2]s::text = w.key
where p.version is distinct from w.version
    and not exists (select from public.dead_letter d where d.consumer = $1 and d.state = 'discarded'
        and d.key_start = convert_to(coalesce(w.key, p.%[2]s::text), 'UTF8'))
limit 1000`

// CheckProjection finds rows whose column "version" differs from the last version applied to their key. Discarded dead
// letters move only the inbox's version.
func CheckProjection(name, table, keyColumn, consumer string) Check {
	return Check{Name: name, SQL: fmt.Sprintf(selectOddVersions, table, keyColumn), Args: []any{consumer}}
}
