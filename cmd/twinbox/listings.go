package main

// Columns that several listings show.
const (
	groupColumns = "CONSUMER consumer, CODE code, TYPE type type, COUNT count, KEYS keys, AGE newest age, " +
		"LATEST example, ERROR error"
	letterColumns = "ID ref, CONSUMER+ consumer, TYPE type type, KEY key, VERSION version, CODE code, TRIES attempts, " +
		"AGE failed_at age, STATE+ state, ERROR error"
	mailColumns = "SERVICE service, ID id, STATE state, TEMPLATE template, USER user_id, TRIES attempts, " +
		"AGE created_at age, ERROR error"
	lostColumns = "SERVICE service, RECORD topic record, AGE appended_at age, TYPE type type, KEY key, VERSION version, " +
		"EVENT_ID event_id"
	stepColumns = "AT at ms, STATION station, WHO service who, WHAT outcome outcome, TYPE event_type type, " +
		"EVENT event_id, WHERE where where, DETAIL detail detail"
)

var listings = map[string]listing{
	"status": {
		question: "GET /admin/v1/stations",
		views: []view{{
			of: "causes", well: item{"what": "All is well."},
			columns: "SERVICE service, AGE since age, MORE command, WHAT what, MEANS+ means, DO+ do",
		}},
	},
	"dlq list": {
		question: "POST /admin/v1/dead-letters/groups", example: item{"state": "waiting"}, none: "No dead letters",
		views: []view{{of: "items", columns: groupColumns}},
	},
	"dlq list --each": {
		question: "POST /admin/v1/dead-letters/query", none: "No dead letters", pages: true,
		example: item{"filter": item{"state": "waiting"}, "after": 0},
		views:   []view{{of: "items", columns: letterColumns}},
	},
	"mail list": {
		question: "GET /admin/v1/mails", example: item{"state": "open"}, none: "No mails", pages: true,
		extra: map[string]string{"recipient": "RECIPIENT recipient"},
		views: []view{{of: "items", columns: mailColumns}},
	},
	"inbox stats": {
		question: "GET /admin/v1/inbox/stats",
		views: []view{{of: "items", columns: "CONSUMER consumer, LAG lag_records known, OLDEST lag_seconds seconds, " +
			"DEAD_LETTERS dead, PARKED parked, DELIVERIES outcomes counts"}},
	},
	"inbox lookup": {
		question: "GET /admin/v1/inbox/events", absent: true,
		none: "No consumer remembers the event: it has not come, is forgotten, or is of a type without a handler",
		views: []view{{of: "items", columns: "CONSUMER consumer, OUTCOME outcome, PROCESSED processed_at time, " +
			"TYPE type type, RECORD topic record, DEAD_LETTER dead_letter, METADATA+ metadata json"}},
	},
	"inbox history": {
		question: "GET /admin/v1/inbox/history", order: "processed_at", newest: true,
		none: "No consumer has applied an event of this type; its dead letters: twinbox dlq list --each --state all --type",
		views: []view{{of: "items", columns: "CONSUMER consumer, EVENT event_id, PROCESSED processed_at time, " +
			"MS processing_time_ms, OUTCOME+ outcome, RECORD topic record, METADATA+ metadata json"}},
	},
	"consumer list": {
		question: "GET /admin/v1/inbox/stats",
		views: []view{{of: "items", columns: "CONSUMER consumer, STATE paused paused, AGE paused.since age, " +
			"BY paused.by, REASON paused.reason"}},
	},
	"outbox status": {
		question: "GET /admin/v1/outbox/status",
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
		question: "GET /admin/v1/outbox/events", none: "No events", order: "occurred_at", all: true,
		extra: map[string]string{"payload": "PAYLOAD payload payload"},
		views: []view{{of: "items", columns: "EVENT position place, AGE occurred_at age, TYPE type type, KEY key, " +
			"VERSION+ version, STATE state, EVENT_ID+ event_id"}},
	},
	"outbox lost": {
		question: "GET /admin/v1/outbox/lost", none: "No lost events", all: true,
		extra: map[string]string{"payload": "HEADERS headers json, PAYLOAD payload bytes"},
		views: []view{{of: "items", columns: lostColumns}},
	},
	"outbox topics": {
		question: "GET /admin/v1/outbox/topics",
		views: []view{{of: "items", columns: "SERVICE service, TOPIC topic, PARTITIONS partitions, " +
			"GROUPS_BEHIND behind counts"}},
	},
	"outbox scheduled list": {
		question: "GET /admin/v1/outbox/scheduled", none: "No scheduled events",
		views: []view{{of: "items", columns: "SERVICE service, NAME name, DUE due_at due, " +
			"OVERDUE overdue_seconds seconds, TYPE type type, KEY key, SCHEDULED+ scheduled_at age"}},
	},
	"audit": {
		question: "GET /admin/v1/audit", none: "No operator changed anything", order: "at",
		views: []view{{of: "items", columns: "TIME at time, SERVICE service, BY by, DID verb deed, KIND+ kind, TO ref, " +
			"COUNT count, REASON reason"}},
	},
}
