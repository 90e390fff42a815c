package customer

import (
	"context"

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
func checkProfiles(ctx context.Context, tx pgx.Tx) ([]verify.Finding, error) {
	return verify.CompareVersions(ctx, tx, "profile", selectOddProfiles, profileConsumer)
}
