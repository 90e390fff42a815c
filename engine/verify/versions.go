package verify

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// CompareVersions is for a [Check] of what a consumer has made of its events: a row that moves with its key's
// watermark, in one transaction, is always at its version. The SQL, given the consumer, selects what is not: the key,
// the version up to which its events were applied, and the row's. What is what a row is called in a finding.
func CompareVersions(ctx context.Context, tx pgx.Tx, what, sql, consumer string) (found []Finding, err error) {
	rows, _ := tx.Query(ctx, sql, consumer)
	var key string
	var applied, version int64
	_, err = pgx.ForEachRow(rows, []any{&key, &applied, &version}, func() error {
		found = append(found, Finding{
			Key: key, Version: version, Detail: fmt.Sprintf("the %s is at version %d, its events at %d", what, version, applied),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("compare versions of each %s: %w", what, err)
	}
	return found, nil
}
