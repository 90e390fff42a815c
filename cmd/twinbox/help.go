package main

import "strings"

// examples are the end of a command's help. A test parses each of them.
func examples(lines ...string) string {
	return "Examples:\n\n  " + strings.Join(lines, "\n  ") + "\n\n" + exitCodes
}

const exitCodes = "Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused, 5 partly done."

// Help is shown behind a command's own line.
func (AuditCommand) Help() string {
	return examples(
		"twinbox audit --since 1h",
		"twinbox audit --by ada --verb discard",
		"twinbox audit --subject customer/17",
	)
}

// Help is shown behind a command's own line.
func (CompletionCommand) Help() string {
	return "For this shell alone: source <(twinbox completion bash). For every new one, put that line into ~/.bashrc; " +
		"zsh takes it in ~/.zshrc, and fish takes twinbox completion fish | source.\n\n" +
		examples("twinbox completion bash", "twinbox completion fish")
}

// Help is shown behind a command's own line.
func (DLQList) Help() string {
	return examples("twinbox dlq list", "twinbox dlq ls --each --since 1h -o wide",
		"twinbox dlq list --each --service customer --state all --all --json", "twinbox dlq list --watch")
}

// Help is shown behind a command's own line.
func (DLQShow) Help() string {
	return examples("twinbox dlq show customer/17", "twinbox dlq show customer/17 --payload --json")
}

// Help is shown behind a command's own line.
func (DLQReplay) Help() string {
	return examples(
		"twinbox dlq replay customer/17",
		"twinbox dlq replay --code handler_failed --rate 50 --yes --reason mended",
		"twinbox dlq replay --all --yes --reason mended",
	)
}

// Help is shown behind a command's own line.
func (DLQEdit) Help() string {
	return examples(
		"twinbox dlq edit customer/17",
		"twinbox dlq edit customer/17 --payload mended.json --yes --reason typo",
		"twinbox dlq edit customer/17 --header ce_id=01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10",
	)
}

// Help is shown behind a command's own line.
func (DLQDiscard) Help() string {
	return examples(
		"twinbox dlq discard customer/17",
		"twinbox dlq discard --code schema_violation --since 2d --yes --reason agreed",
	)
}

// Help is shown behind a command's own line.
func (DLQExport) Help() string {
	return examples("twinbox dlq export --state all --out letters.jsonl", "twinbox dlq export customer/17")
}

// Help is shown behind a command's own line.
func (DLQImport) Help() string {
	return examples("twinbox dlq import letters.jsonl", "twinbox dlq import letters.jsonl --yes --reason restored")
}

// Help is shown behind a command's own line.
func (MailList) Help() string {
	return examples("twinbox mail list", "twinbox mail ls --state sent --since 1h", "twinbox mail list --watch")
}

// Help is shown behind a command's own line.
func (MailRetry) Help() string {
	return examples("twinbox mail retry 01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10 --yes --reason lost")
}

// Help is shown behind a command's own line.
func (MailMarkSent) Help() string {
	return examples("twinbox mail mark-sent 01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10 --yes --reason arrived")
}

// Help is shown behind a command's own line.
func (InboxStats) Help() string {
	return examples("twinbox inbox stats", "twinbox inbox stats --watch --every 5s")
}

// Help is shown behind a command's own line.
func (InboxLookup) Help() string {
	return examples("twinbox inbox lookup 01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10")
}

// Help is shown behind a command's own line.
func (OutboxStatus) Help() string {
	return examples("twinbox outbox status", "twinbox outbox status --watch", "twinbox outbox status -o json")
}

// Help is shown behind a command's own line.
func (OutboxTail) Help() string {
	return examples("twinbox outbox tail -n 50", "twinbox outbox tail -f --service customer")
}

// Help is shown behind a command's own line.
func (OutboxRepublish) Help() string {
	return examples(
		"twinbox outbox republish --since 1h",
		"twinbox outbox republish --service customer --from 1 --to 500 --yes --reason restored",
	)
}

// Help is shown behind a command's own line.
func (OutboxRelease) Help() string {
	return examples(
		"twinbox outbox release --topic customer.users.v1 --key 01980a5c-52d4-7c3b-9a44-0d6f3f1f2a10 --yes --reason mended",
	)
}

// Help is shown behind a command's own line.
func (OutboxTopics) Help() string { return examples("twinbox outbox topics") }

// Help is shown behind a command's own line.
func (OutboxConfirmRestore) Help() string {
	return examples(
		"twinbox outbox confirm-restore --service customer",
		"twinbox outbox confirm-restore --service customer --yes --reason restored",
	)
}

// Help is shown behind a command's own line.
func (OutboxConfirm) Help() string {
	return examples("twinbox outbox confirm --topic customer.users.v1 --partitions 12 --yes --reason grown")
}
