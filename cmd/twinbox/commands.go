package main

import (
	"context"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"

	"example.com/twinbox/internal/ops/admin/client"
)

// Commands are the subcommands. A change has the tags of an effect; listings have their rows below.
type Commands struct {
	Status   statusCommand    `cmd:"" help:"Why each service waits, or that all is well."`
	Verify   verifyCommand    `cmd:"" alone:"" help:"Whether anything is lost, doubled, altered, invented or reordered between outbox, Kafka and inbox."`
	Trace    traceCommand     `cmd:"" help:"The story of one user, event, request or mail, through all services, in the order of time."`
	DLQ      dlqCommands      `cmd:"" name:"dlq" help:"Operate the dead letters: events that a consumer could not handle."`
	Mail     mailCommands     `cmd:"" help:"Operate the mails that wait for an operator."`
	Inbox    inboxCommands    `cmd:"" help:"Look into the inboxes: which events were handled."`
	Consumer consumerCommands `cmd:"" help:"Pause consumers, and resume them."`
	Outbox   outboxCommands   `cmd:"" help:"Operate the outboxes: published and waiting events."`
	Audit    auditList        `cmd:"" help:"The operators' changes with their reasons: the newest, in the order of time."`
	Call     callCommand      `cmd:"" done:"Changed" would:"change" thing:"thing" help:"Call any operation of api/admin.yaml by its name."`

	Console consoleCommand `cmd:"" help:"Serve the operators' page: where events are, why they wait, what to do about it."`

	Completion completionCommand `cmd:"" alone:"" help:"Print the script that completes commands, flags and names in a shell."`
	Complete   completeCommand   `cmd:"" hidden:""`

	Connection `group:"Flags of every command:"`
	Answer     `group:"Flags of every command:"`

	Version kong.VersionFlag `help:"Show which build this is." env:"-"`
}

type dlqCommands struct {
	List    dlqList      `cmd:"" aliases:"ls" help:"The dead letters that wait, grouped by error. --since and --until are compared with the last failure."`
	Show    dlqShow      `cmd:"" aliases:"get" help:"One dead letter and its history."`
	Replay  dlqReplay    `cmd:"" parts:"" post:"/admin/v1/dead-letters/replay" done:"Replayed" would:"try to replay" thing:"dead letter" help:"Handle dead letters again: through the inbox, in the order of their key, for their consumer alone. --since and --until are compared with the last failure."`
	Edit    dlqEdit      `cmd:"" post:"/admin/v1/dead-letters/edit" done:"Edited" would:"edit" thing:"dead letter" help:"Replace the payload or headers; the original is kept."`
	Discard LetterChange `cmd:"" parts:"" post:"/admin/v1/dead-letters/discard" done:"Discarded" would:"discard" thing:"dead letter" help:"Settle dead letters without handling them; events parked behind them are resumed. --since and --until are compared with the last failure."`
}

type mailCommands struct {
	List     mailList   `cmd:"" aliases:"ls" help:"The mails that wait for an operator's decision: uncertain and failed ones."`
	Retry    mailChange `cmd:"" post:"/admin/v1/mails/retry" done:"Put back" would:"put back" thing:"mail" help:"Send uncertain or failed mails again. An uncertain one may then arrive twice."`
	MarkSent mailChange `cmd:"" post:"/admin/v1/mails/mark-sent" done:"Marked" would:"mark" thing:"mail" after:" as sent" help:"Settle uncertain mails of which you know that they arrived."`
	Skip     mailChange `cmd:"" post:"/admin/v1/mails/skip" done:"Skipped" would:"skip" thing:"mail" help:"Give up failed mails: the service does not send them."`
}

type mailList struct {
	Listing
	Window

	State     string `json:"state,omitempty" help:"In this state: open (uncertain or failed), all, pending, claimed, submitting, sent, failed, skipped or uncertain." enum:"open,all,pending,claimed,submitting,sent,failed,skipped,uncertain" default:"open" env:"-"`
	User      string `json:"user_id,omitempty" help:"To this user." env:"-" placeholder:"UUID"`
	EventID   string `json:"event_id,omitempty" help:"Because of this event." name:"event-id" env:"-"`
	Recipient bool   `json:"recipient,omitempty" help:"Show addresses, which are personal data." env:"-"`
	Limit     int    `json:"limit" default:"100" help:"How many of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
	After     string `json:"after,omitempty" help:"Those after this one; the next page." env:"-" placeholder:"ID"`
}

func (c *mailList) Run(ctx context.Context, to *streams, services []*client.Service) error {
	q, asked := questions["mail list"], values(c)
	if state := asked.text("state"); state != "" {
		q.none += " in the state " + state + " (--state all lists every one)"
	}
	return c.show(ctx, to, services, q, asked)
}

type mailChange struct {
	Change

	IDs []string `arg:"" name:"id" json:"ids" help:"Mails, as \"mail list\" shows them." names:"mail list: id"`
}

// AfterApply also accepts an id that is given twice.
func (c *mailChange) AfterApply() (err error) {
	c.IDs, err = uniqueIDs(c.IDs, "a mail")
	return err
}

func uniqueIDs(given []string, of string) (ids []string, err error) {
	for _, text := range given {
		id, err := uuid.Parse(text)
		if err != nil {
			return nil, usage(printable(text) + " is no id of " + of + ", which is a UUID")
		}
		if !slices.Contains(ids, id.String()) {
			ids = append(ids, id.String())
		}
	}
	return ids, nil
}

type inboxCommands struct {
	Stats   Listing      `cmd:"" help:"How far each consumer is behind, what waits for an operator, and the deliveries to the process that answers."`
	Lookup  inboxLookup  `cmd:"" help:"The outcome of one event in every consumer."`
	History inboxHistory `cmd:"" help:"The events of a type that consumers have applied, the newest first. --since and --until are compared with the time inside the event's id."`
}

type inboxLookup struct {
	Listing

	EventID string `arg:"" name:"event-id" json:"event_id" help:"The event."`
}

type inboxHistory struct {
	Listing
	Window

	Type     string `arg:"" json:"type" help:"The type of the events, such as user-registered." names:"dlq list: type"`
	Consumer string `json:"consumer,omitempty" help:"Applied by this consumer." env:"-" names:"inbox stats: consumer"`
	Limit    int    `json:"limit" help:"The newest of each service, 1 to 1000. Default: 100." default:"100" short:"n" env:"-" placeholder:"N"`
}

type consumerCommands struct {
	List   Listing        `cmd:"" help:"The consumers, which of them are paused, by whom and why."`
	Pause  consumerChange `cmd:"" post:"/admin/v1/consumers/pause" done:"Paused" would:"pause" thing:"consumer" help:"Pause a consumer: its instances handle no more records, its records wait on the topic."`
	Resume consumerChange `cmd:"" post:"/admin/v1/consumers/resume" done:"Resumed" would:"resume" thing:"consumer" help:"Let a paused consumer continue where it stopped."`
}

type consumerChange struct {
	Change

	Name string `arg:"" json:"consumer" help:"The consumer, as \"consumer list\" shows it." names:"inbox stats: consumer"`
}

type outboxCommands struct {
	Status    Listing         `cmd:"" help:"How far each service's events are published, and which keys are parked."`
	Tail      outboxTail      `cmd:"" help:"The newest events and their states."`
	Republish outboxRepublish `cmd:"" parts:"" post:"/admin/v1/outbox/republish" done:"Republished" would:"republish" thing:"event" help:"Send published events again, with the same ids; consumers skip what they have."`
	Scheduled outboxScheduled `cmd:"" help:"Events that are due later: list them, take one back."`
	Release   outboxRelease   `cmd:"" post:"/admin/v1/outbox/release" done:"Released" would:"release" thing:"key" help:"Let the relay try a parked key's events again."`
	Pause     Change          `cmd:"" one:"" post:"/admin/v1/outbox/pause" done:"Paused" would:"pause" thing:"relay" help:"Pause a service's relay: its events wait in the outbox."`
	Resume    Change          `cmd:"" one:"" post:"/admin/v1/outbox/resume" done:"Resumed" would:"resume" thing:"relay" help:"Let a paused relay publish again, where it stopped."`
	Confirm   outboxConfirm   `cmd:"" one:"" post:"/admin/v1/outbox/confirm" done:"Confirmed" would:"confirm" thing:"refusal" help:"Let a relay publish that refuses, because its database or its topics went back."`
	Lost      outboxLost      `cmd:"" help:"The events that a database lost when it went back, and that its topics hold."`
	Topics    Listing         `cmd:"" help:"How many partitions each topic has, and which consumer groups are behind."`
}

type outboxRepublish struct {
	Change
	Window

	From  *int64   `json:"from,omitempty" one:"" help:"First position. Positions are a service's own: give --service too." env:"-" placeholder:"N"`
	To    *int64   `json:"to,omitempty" one:"" help:"Last position." env:"-" placeholder:"N"`
	ID    []string `json:"event_ids,omitempty" help:"Event id; may be repeated." name:"id" env:"-" placeholder:"UUID"`
	Topic string   `json:"topic,omitempty" help:"Of this topic. Copies of dead letters are left out unless their topic (dlq.*) or --id asks for them." env:"-" names:"outbox topics: topic"`
	Key   string   `json:"key,omitempty" help:"Of this key." env:"-"`
}

func (c *outboxRepublish) AfterApply() (err error) {
	c.ID, err = uniqueIDs(c.ID, "an event")
	return err
}

type outboxRelease struct {
	Change

	Topic string `json:"topic" help:"Topic of the key." required:"" env:"-" names:"outbox status: topic"`
	Key   string `json:"key" help:"The key." required:"" env:"-" names:"outbox status: key"`
	Drop  *int64 `json:"drop,omitempty" done:"Dropped" would:"drop" thing:"event" help:"First give up the held event at this position, one that the broker refuses for good: it is never published." env:"-" placeholder:"POSITION"`
}

type outboxConfirm struct {
	Change

	Code string `arg:"" json:"code" help:"Its code, as \"outbox status\" shows it." names:"outbox status: refused.code"`
}

type outboxLost struct {
	Listing

	Topic   string `json:"topic,omitempty" help:"Of this topic." env:"-" names:"outbox topics: topic"`
	Key     string `json:"key,omitempty" help:"Of this key." env:"-"`
	Payload bool   `json:"payload,omitempty" help:"Show headers and payloads, which hold personal data." env:"-"`
}

type outboxScheduled struct {
	List   scheduledList   `cmd:"" aliases:"ls" help:"Events that are due later, in the order in which they are due."`
	Cancel scheduledCancel `cmd:"" one:"" post:"/admin/v1/outbox/scheduled/cancel" done:"Cancelled" would:"cancel" thing:"scheduled event" help:"Cancel a scheduled event: it is never added."`
}

type scheduledList struct {
	Listing

	Topic string `json:"topic,omitempty" help:"Of this topic." env:"-" names:"outbox topics: topic"`
	Key   string `json:"key,omitempty" help:"Of this key." env:"-"`
	Limit int    `json:"limit" default:"100" help:"The first of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
}

type scheduledCancel struct {
	Change

	Name string `arg:"" json:"name" help:"Its name, as \"outbox scheduled list\" shows it." names:"outbox scheduled list: name"`
}

type auditList struct {
	Listing
	Window

	By      string `json:"by,omitempty" help:"Done by this operator." env:"-" aliases:"operator" placeholder:"NAME"`
	Verb    string `json:"verb,omitempty" help:"This operation, such as replay, edit, discard, republish, retry." env:"-" aliases:"operation" placeholder:"NAME"`
	Kind    string `json:"kind,omitempty" help:"Of these, such as dead_letter, mail, outbox_key, consumer or scheduled_event." env:"-" placeholder:"NAME"`
	Subject string `json:"subject,omitempty" help:"On this subject: a dead letter such as customer/17, a mail, or a key as topic/key." env:"-" placeholder:"ID"`
	Limit   int    `json:"limit" default:"100" help:"The newest of each service, 1 to 1000. Default: 100." short:"n" env:"-" placeholder:"N"`
}

const (
	tailColumns = "EVENT position place, AGE occurred_at age, TYPE type type, KEY key, VERSION+ version, STATE state, " +
		"EVENT_ID+ event_id, PAYLOAD? payload payload"
	actionColumns = "TIME at time, SERVICE service, BY by, DID verb deed, KIND+ kind, TO ref, COUNT count, REASON reason"
	groupColumns  = "CONSUMER consumer, CODE code, TYPE type type, COUNT count, KEYS keys, AGE newest age, " +
		"LATEST example, ERROR error"
	letterColumns = "ID ref, CONSUMER+ consumer, TYPE type type, KEY key, VERSION version, CODE code, TRIES attempts, " +
		"AGE failed_at age, STATE+ state, ERROR error"
	mailColumns = "SERVICE service, ID id, STATE state, TEMPLATE template, USER user_id, TRIES attempts, " +
		"AGE created_at age, ERROR error, RECIPIENT? recipient"
	lostColumns = "SERVICE service, RECORD topic record, AGE appended_at age, TYPE type type, KEY key, VERSION version, " +
		"EVENT_ID event_id, HEADERS? headers json, PAYLOAD? payload bytes"
	stepColumns = "AT at ms, STATION station, WHO service who, WHAT outcome outcome, TYPE event_type type, " +
		"EVENT event_id, WHERE where where, DETAIL detail detail"
)

// questions has the rows of the listings, by the command.
var questions = map[string]question{
	"status": {
		request: "GET /admin/v1/stations",
		views: []view{{
			of: "causes", well: item{"what": "All is well."},
			columns: "SERVICE service, AGE since age, MORE command, WHAT what, MEANS+ means, DO+ do, DETAILS+ details",
		}},
	},
	"dlq list": {
		request: "POST /admin/v1/dead-letters/groups", example: item{"state": "waiting"}, none: "No dead letters",
		views: []view{{of: "items", columns: groupColumns}},
	},
	"dlq list --each": {
		request: "POST /admin/v1/dead-letters/query", none: "No dead letters",
		example: item{"state": "waiting"}, views: []view{{of: "items", columns: letterColumns}},
	},
	"mail list": {
		request: "POST /admin/v1/mails", example: item{"state": "open"}, none: "No mails",
		views: []view{{of: "items", columns: mailColumns}},
	},
	"inbox stats": {
		request: "GET /admin/v1/inbox/stats",
		views: []view{{of: "items", columns: "CONSUMER consumer, LAG lag_records known, OLDEST lag_seconds seconds, " +
			"DEAD_LETTERS dead known, PARKED parked known, DELIVERIES outcomes counts"}},
	},
	"inbox lookup": {
		request: "POST /admin/v1/inbox/events", absent: true,
		none: "No consumer remembers the event: it has not come, is forgotten, or is of a type without a handler",
		views: []view{{of: "items", columns: "CONSUMER consumer, OUTCOME outcome, PROCESSED processed_at time, " +
			"TYPE type type, RECORD topic record, DEAD_LETTER dead_letter, METADATA+ metadata json"}},
	},
	"inbox history": {
		request: "POST /admin/v1/inbox/history",
		none: "No consumer has applied an event of this type; its dead letters: " +
			"twinbox dlq list --each --state all --type TYPE",
		views: []view{{
			of: "items", order: "processed_at", newest: true,
			columns: "CONSUMER consumer, EVENT event_id, PROCESSED processed_at time, MS processing_time_ms, " +
				"OUTCOME+ outcome, RECORD topic record, METADATA+ metadata json",
		}},
	},
	"consumer list": {
		request: "GET /admin/v1/inbox/stats",
		views: []view{{of: "items", columns: "CONSUMER consumer, STATE paused paused, AGE paused.since age, " +
			"BY paused.by, REASON paused.reason"}},
	},
	"outbox status": {
		request: "GET /admin/v1/outbox/status",
		views: []view{
			{columns: "SERVICE service, RELAY leading relay, EPOCH epoch, HEAD head, WAITING waiting waiting, " +
				"OLDEST oldest_waiting age, PARKED_KEYS parked_keys, HELD held"},
			{with: "paused", columns: "SERVICE service, PAUSED paused.since age, BY paused.by, REASON paused.reason"},
			{with: "refused", columns: "SERVICE service, REFUSED refused.code, CONFIRMED refused.confirmed yes, " +
				"WHY refused.text"},
			{with: "database_back_at", columns: "SERVICE service, DATABASE_WENT_BACK database_back_at age, " +
				"EVENTS_LOST lost, HEALING healing"},
			{with: "broker_back_at", columns: "SERVICE service, BROKER_WENT_BACK broker_back_at age, HEALING healing"},
			{with: "scheduled", columns: "SERVICE service, SCHEDULED scheduled, OVERDUE overdue_seconds seconds"},
			{of: "parked", columns: "SERVICE service, TOPIC topic, KEY key, POSITION position, HELD held, " +
				"PARKED parked_at age, NEXT_TRY retry_at due, REASON reason"},
		},
	},
	"outbox tail": {
		request: "POST /admin/v1/outbox/events", none: "No events", all: true, tail: true,
		views: []view{{of: "items", order: "occurred_at", columns: tailColumns}},
	},
	"outbox lost": {
		request: "POST /admin/v1/outbox/lost", none: "No lost events", all: true,
		views: []view{{of: "items", columns: lostColumns}},
	},
	"outbox topics": {
		request: "GET /admin/v1/outbox/topics",
		views: []view{{of: "items", columns: "SERVICE service, TOPIC topic, PARTITIONS partitions, " +
			"GROUPS_BEHIND behind counts"}},
	},
	"outbox scheduled list": {
		request: "POST /admin/v1/outbox/scheduled", none: "No scheduled events",
		views: []view{{of: "items", columns: "SERVICE service, NAME name, DUE due_at due, " +
			"OVERDUE overdue_seconds seconds, TYPE type type, KEY key, SCHEDULED+ scheduled_at age"}},
	},
	"audit": {
		request: "POST /admin/v1/audit", none: "No operator changed anything",
		views: []view{{of: "items", order: "at", columns: actionColumns}},
	},
}
