package ledger

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/ops"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/verify"
)

func offerOperations(node *eventing.Node, _ Config) (prefix string, handler http.Handler, err error) {
	return ops.Offer(node, ops.Own{Checks: []verify.Check{{Name: "balances", Run: checkBalances}}})
}

// projection moves with their accounts' events.
var projection = verify.Projection{Table: "account_balance", Key: "account_id", Consumer: balanceConsumer}

// Write side and read side are of one database: an account that both have at the same version has one balance.
const selectOddBalances = `
select k.key, k.version
from account a
join outbox_key k on k.topic = $1 and k.key = a.id::text
join account_balance b on b.account_id = a.id and b.version = k.version
where b.balance <> a.balance or b.currency <> a.currency
limit 1000`

// checkBalances finds balances that are not at the version up to which their events were applied, or not the sum of
// their account's commands.
func checkBalances(ctx context.Context, tx pgx.Tx) ([]verify.Finding, error) {
	found, err := projection.Compare(ctx, tx)
	if err != nil {
		return nil, err
	}
	rows, _ := tx.Query(ctx, selectOddBalances, contract.TopicAccounts)
	var key string
	var version int64
	_, err = pgx.ForEachRow(rows, []any{&key, &version}, func() error {
		found = append(found, verify.Finding{
			Key: key, Version: version, Detail: "the balance is not that of the account at the same version",
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("compare balances: %w", err)
	}
	return found, nil
}
