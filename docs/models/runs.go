package main

// run is the protocol less one step, or whole, within bounds, with the outcome that is due.
type run struct {
	name, note string
	bounds
	faults
	omit   omitted
	states int    // visited states, up to the one that breaks a property
	broken string // the property that breaks; empty: all hold
}

// bounds limit a run. Zero means the default.
type bounds struct {
	events int8 // default 3; the key of each is chosen freely
	keys   int8 // default 2
	parts  int8 // default 1
	page   int8 // most records of a page or of a part of a pass; default 2
	points int8 // most points, with (0, {}); default 3
	drop   int8 // retention may drop the rows below; default: none

	late        bool // a former leader's record may be written later, until a wait or a last pass
	asleep      bool // a running consumer may overlook that it is beyond the end, even during the wait
	groups      bool // the offsets that groups have committed count as expected
	everyRead   bool // each read is a step: shows that leaving these steps out changes no outcome
	onlyReports bool // check D3, D4 and S1 alone
}

// faults counts how often each fault may happen.
type faults struct {
	losses        int8 // of the log's last records
	restores      int8 // of the producer's database, from any earlier commit
	crashes       int8 // of the relay
	restarts      int8 // of the consumer
	inboxRestores int8 // of the consumer's database
}

// omitted names the steps of the protocol that a mutant leaves out.
type omitted struct {
	wait           bool // after a restore, until a former leader's records are written or dead
	lookUp         bool // of each record above the newest valid point
	renumber       bool // rows that no page has sent; without, the heal only raises outbox_key
	oneTransaction bool // for the heal, the lost events and from
	outboxLost     bool // a look knows the events there
	republishLost  bool // a pass sends the lost events, too
	times          bool // a point is valid while the record below its end has its time
	cursorEnds     bool // the cursor row is the newest point
	consumerTime   bool // the consumer's point has a time
	idleEnds       bool // the relay asks for the ends while it is idle
	offsets        bool // an acknowledged offset below the known end, or one that comes twice, is not clean
	gaps           bool // offsets that are not one after the other are not clean
	morePasses     bool // until one began at the needed end
	expect         bool // a page stores its expected end before it is sent
	pageFirst      bool // a pass without rows waits for a page
}

func (r run) withDefaults() run {
	for value, standard := range map[*int8]int8{&r.events: 3, &r.keys: 2, &r.parts: 1, &r.page: 2, &r.points: 3} {
		if *value == 0 {
			*value = standard
		}
	}
	return r
}

func runs() []run {
	both := faults{losses: 1, restores: 1}
	crash := faults{losses: 1, restores: 1, crashes: 1}
	loss, restore := faults{losses: 1}, faults{restores: 1}
	two := bounds{events: 2}
	list := []run{
		{name: "mut-no-mark", note: "points have no times",
			faults: both, omit: omitted{times: true},
			states: 149_970, broken: "D2: a1#1 is never applied"},
		{name: "mut-no-cursor", note: "the cursor row has no ends",
			faults: both, omit: omitted{cursorEnds: true},
			states: 266_286, broken: "D2: a1#1 is never applied"},
		{name: "mut-two-tx", note: "the heal of the database has a transaction of its own",
			bounds: two, faults: crash, omit: omitted{oneTransaction: true},
			states: 188_238, broken: "D2: a2#2 is parked for ever"},
		{name: "mut-no-lost", note: "a look does not know the events of outbox_lost",
			bounds: two, faults: crash, omit: omitted{outboxLost: true},
			states: 334_254, broken: "D2: a3#2 is parked for ever"},
		{name: "mut-no-again", note: "lost events are not published again",
			faults: both, omit: omitted{republishLost: true},
			states: 158_978, broken: "D2: #3 is parked for ever"},
		{name: "mut-no-row", note: "a pass without rows does not wait for a page",
			faults: both, omit: omitted{pageFirst: true},
			states: 1_096_462, broken: "S3: the relay repeats the same steps for ever"},
		{name: "mut-no-time", note: "the consumer's point has no time; it restarts before a page is written",
			bounds: two, faults: faults{losses: 1, restores: 1, restarts: 1}, omit: omitted{consumerTime: true},
			states: 60_606, broken: "D2: a1#1 is never applied"},
		{name: "mut-asleep", note: "a running consumer overlooks that it is beyond the end",
			bounds: bounds{asleep: true}, faults: both,
			states: 160_729, broken: "D2: a1#1 is never applied"},
		{name: "mut-no-wait", note: "a leader does not wait after a restore",
			bounds: bounds{late: true}, faults: restore, omit: omitted{wait: true},
			states: 5_774, broken: "D1: a1#2 and a1#1 are both visible"},
		{name: "mut-no-look", note: "records are not looked up",
			faults: restore, omit: omitted{lookUp: true},
			states: 3_653, broken: "D4: #1 was published, is lost, and no look reports it"},
		{name: "mut-no-shift", note: "the heal only raises outbox_key",
			faults: restore, omit: omitted{renumber: true},
			states: 6_790, broken: "D1: a1#1 and a1#2 are both visible"},
		{name: "mut-no-acks", note: "acknowledged offsets are not compared with the known end",
			faults: loss, omit: omitted{offsets: true, gaps: true},
			states: 3_264, broken: "D2: a2#2 is never applied"},
		{name: "mut-no-gap", note: "gaps between offsets are not looked up; a record is written after the wait",
			bounds: bounds{late: true, onlyReports: true}, faults: restore, omit: omitted{wait: true, gaps: true},
			states: 13_683, broken: "D4: #2 was published, is lost, and no look reports it"},
		{name: "mut-one-pass", note: "one pass is enough",
			faults: loss, omit: omitted{morePasses: true},
			states: 7_606, broken: "D2: b1#2 is never applied"},
		{name: "mut-no-expect", note: "only acknowledged records are expected",
			faults: faults{losses: 1, crashes: 1}, omit: omitted{expect: true},
			states: 56_532, broken: "D2: b1#3 is never applied"},
		{name: "mut-no-idle", note: "an idle relay does not ask for the ends",
			faults: loss, omit: omitted{idleEnds: true},
			states: 2_393, broken: "D2: a1#1 is never applied"},

		{name: "final", note: "a loss, a restore",
			faults: both, states: 1_097_960},
		{name: "final-full", note: "two events, each read a step, no states made equal",
			bounds: bounds{events: 2, everyRead: true}, faults: both, states: 1_165_164},
		{name: "final-one-key", note: "three events of one key",
			bounds: bounds{keys: 1}, faults: both, states: 173_304},
		{name: "final-four-key", note: "four events of one key",
			bounds: bounds{events: 4, keys: 1}, faults: both, states: 1_039_963},
		{name: "final-page3", note: "pages of three, one point more",
			bounds: bounds{page: 3, points: 2}, faults: both, states: 1_569_291},
		{name: "final-parts", note: "two partitions",
			bounds: bounds{parts: 2}, faults: both, states: 1_049_020},
		{name: "final-late", note: "late records",
			bounds: bounds{late: true}, faults: both, states: 1_139_483},
		{name: "final-lands-late", note: "a record is written after the wait: reported",
			bounds: bounds{late: true, onlyReports: true}, faults: restore, omit: omitted{wait: true},
			states: 35_611},
		{name: "final-drop", note: "retention",
			bounds: bounds{drop: 1}, faults: both, states: 1_804_179},
		{name: "final-drop-restore", note: "retention, no loss: never refused",
			bounds: bounds{drop: 1}, faults: faults{restores: 1, crashes: 1}, states: 372_957},
		{name: "final-drop-crash", note: "retention, three crashes, late records: never refused",
			bounds: bounds{drop: 1, late: true}, faults: faults{crashes: 3}, states: 1_110_574},
		{name: "final-restore", note: "a restore, a crash, late records",
			bounds: bounds{late: true}, faults: faults{restores: 1, crashes: 1}, states: 845_219},
		{name: "final-loss", note: "a loss, a crash",
			faults: faults{losses: 1, crashes: 1}, states: 270_377},
		{name: "final-loss-crashes", note: "a loss, two crashes",
			faults: faults{losses: 1, crashes: 2}, states: 3_068_378},
		{name: "final-losses-crash", note: "two losses, a crash",
			faults: faults{losses: 2, crashes: 1}, states: 12_560_841},
		{name: "final-crash", note: "two events: a loss, a restore, a crash",
			bounds: two, faults: crash, states: 1_105_817},
		{name: "final-crash-late", note: "the same with late records",
			bounds: bounds{events: 2, late: true}, faults: crash, states: 4_674_879},
		{name: "final-crash-parts", note: "the same with two partitions",
			bounds: bounds{events: 2, parts: 2}, faults: crash, states: 1_272_941},
		{name: "final-crash-key", note: "three events of one key",
			bounds: bounds{keys: 1}, faults: crash, states: 4_004_284},
		{name: "final-two-crashes", note: "two events, two crashes",
			bounds: two, faults: faults{losses: 1, restores: 1, crashes: 2}, states: 16_695_658},
		{name: "final-two-losses", note: "two events, two losses",
			bounds: two, faults: faults{losses: 2, restores: 1}, states: 1_798_008},
		{name: "final-two-restores", note: "two events, two restores",
			bounds: two, faults: faults{losses: 1, restores: 2}, states: 890_521},
		{name: "final-restart", note: "the consumer restarts",
			faults: faults{losses: 1, restores: 1, restarts: 1}, states: 6_705_944},
		{name: "final-groups", note: "two events; committed offsets instead of the consumer's time",
			bounds: bounds{events: 2, groups: true}, faults: faults{losses: 1, restores: 1, restarts: 1},
			omit: omitted{consumerTime: true}, states: 270_047},
		{name: "final-con", note: "the consumer's database goes back, a loss",
			faults: faults{losses: 1, inboxRestores: 1}, states: 203_991},
		{name: "final-con-plain", note: "the same without the consumer's time",
			faults: faults{losses: 1, inboxRestores: 1}, omit: omitted{consumerTime: true}, states: 207_497},
		{name: "final-con-crash", note: "two events: the consumer's database goes back, a loss, a crash",
			bounds: two, faults: faults{losses: 1, crashes: 1, inboxRestores: 1}, states: 3_167_437},
		{name: "final-con-both", note: "two events: both databases go back, a loss",
			bounds: two, faults: faults{losses: 1, restores: 1, inboxRestores: 1}, states: 3_750_882},
	}
	for i, r := range list {
		list[i] = r.withDefaults()
	}
	return list
}
