package ledger

import (
	"example.com/twinbox/examples/ledger/contract"
	"example.com/twinbox/internal/ops"
	"example.com/twinbox/internal/service/eventing"
)

func offerOperations(node *eventing.Node, _ Config) error {
	return ops.Offer(node, ops.Own{})
}

// Write side and read side are in one database: at the same version they have the same balance.
const selectOddBalances = `
select '' as event_id, k.key, k.version, 'the balance is not that of the account at the same version' as detail
from account a
join outbox_key k on k.topic = $1 and k.key = a.id::text
join account_balance b on b.account_id = a.id and b.version = k.version
where b.balance <> a.balance or b.currency <> a.currency
limit 1000`

// checks compare the balances with the versions of their events and with the sum of the commands.
func checks(Config) []eventing.Check {
	return []eventing.Check{
		eventing.CheckProjection("balance versions", "account_balance", "account_id", balanceConsumer),
		{Name: "balances", SQL: selectOddBalances, Args: []any{contract.TopicAccounts}},
	}
}
