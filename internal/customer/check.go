package customer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/engine/verify"
)

// An applied event moves its key's watermark and the profile's version in one transaction, so they are always equal.
const selectOddProfiles = `
select coalesce(w.key, p.user_id::text), coalesce(w.version, 0), coalesce(p.version, 0)
from (select key, version from public.inbox_watermark where consumer = $1) w
full join profile p on p.user_id::text = w.key
where p.version is distinct from w.version
limit 1000`

// checkProfiles finds profiles that are not at the version up to which their events were applied.
func checkProfiles(ctx context.Context, tx pgx.Tx) (found []verify.Finding, err error) {
	rows, _ := tx.Query(ctx, selectOddProfiles, profileConsumer)
	var key string
	var applied, version int64
	_, err = pgx.ForEachRow(rows, []any{&key, &applied, &version}, func() error {
		found = append(found, verify.Finding{
			Key: key, Version: version, Detail: fmt.Sprintf("the profile is at version %d, its events at %d", version, applied),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("compare profiles: %w", err)
	}
	return found, nil
}
