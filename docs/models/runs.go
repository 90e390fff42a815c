package main

import "cmp"

type run struct {
	name, note string
	bounds
	faults
	omit   omitted
	states int
	broken string
}

// Zero means the default.
type bounds struct {
	events int8 // default 3; the key of each is chosen freely
	keys   int8 // default 2
	parts  int8 // default 1
	page   int8 // records of a page or of a part of a pass; default 2
	points int8 // most points, with (0, {}); default 3
	drop   int8 // retention may drop the rows below; default: none

	late        bool // a former leader's record may be written later, until a wait or a last pass
	asleep      bool // a running consumer may overlook that it is beyond the end
	away        bool // the consumer is down from a loss until its restart
	groups      bool // the offsets that groups have committed count as expected
	everyRead   bool // shows that leaving these steps out changes no outcome
	onlyReports bool // check D3, D4 and S1 alone
}

type faults struct {
	losses        int8 // of the log's last records
	restores      int8 // of the producer's database, from any earlier commit
	crashes       int8
	restarts      int8
	inboxRestores int8
	refusals      int8 // of a row and its key's later records in a call
	blinds        int8 // pages whose keys are parked because the partition does not answer
}

func (f faults) mayPark() bool { return f.refusals+f.blinds > 0 }

// omitted names the steps of the protocol that a mutant leaves out.
type omitted struct {
	wait           bool // after a restore, until a former leader's records are written or dead
	lookUp         bool // of each record above the newest valid point
	renumber       bool // rows that no page has sent; without, the heal only raises outbox_key
	oneTransaction bool // for the heal, the lost events and from
	outboxLost     bool // a look knows the events there
	republishLost  bool
	times          bool // a point is valid while the record below its end has its time
	cursorEnds     bool
	consumerTime   bool
	idleEnds       bool
	offsets        bool // acknowledged below the known end, or twice
	gaps           bool // offsets that are not one after the other are not clean
	morePasses     bool // until one began at the needed end
	expect         bool
	pointAfterPass bool // a pass looks again when no point is valid any more
	rowsBeforeLost bool // also those that no page has sent
	pageFirst      bool // a pass without rows waits for a page
	skipLater      bool // a pass sends no row behind a held one of its key
	holdLater      bool // a row that a pass cannot send holds its key's later rows
	renumberHeld   bool // also held rows
	forgetPoints   bool // above a held row that is sent
	releasedAgain  bool // a pass sends the rows again that were released in an ill partition
	acknowledged   bool // an offset behind the expected end raises the end that a pass needs
	releasedLost   bool // a pass follows if lost events belong behind a released row
}

func (b *bounds) setDefaults() {
	b.events = cmp.Or(b.events, 3)
	b.keys = cmp.Or(b.keys, 2)
	b.parts = cmp.Or(b.parts, 1)
	b.page = cmp.Or(b.page, 2)
	b.points = cmp.Or(b.points, 3)
}

var (
	two          = bounds{events: 2}
	twoOfOneKey  = bounds{events: 2, keys: 1}
	loss         = faults{losses: 1}
	restore      = faults{restores: 1}
	both         = faults{losses: 1, restores: 1}
	crash        = faults{losses: 1, restores: 1, crashes: 1}
	restart      = faults{losses: 1, restores: 1, restarts: 1}
	inboxRestore = faults{losses: 1, inboxRestores: 1}
	refusal      = faults{losses: 1, restores: 1, refusals: 1}
)

type anyRun struct {
	name, note string
	states     int
	broken     string
	explore    func() result
}

func allRuns() (all []anyRun) {
	for _, r := range runs() {
		all = append(all, anyRun{r.name, r.note, r.states, r.broken, func() result { return explore(r) }})
	}
	for _, r := range windowRuns() {
		start := window{run: &r}
		all = append(all, anyRun{r.name, r.note, r.states, r.broken, func() result { return exploreFrom(start) }})
	}
	for _, r := range leaderRuns() {
		start := leaders{run: &r, lock: nobody}
		all = append(all, anyRun{r.name, r.note, r.states, r.broken, func() result { return exploreFrom(start) }})
	}
	return all
}

func runs() []run { return append(mutants(), protocol()...) }

func mutants() []run { //nolint:funlen // a table
	return []run{
		{
			"mut-no-mark", "points have no times",
			bounds{},
			both,
			omitted{times: true},
			120_358, "S4: a2#2 comes before the version below it",
		},
		{
			"mut-no-cursor", "the cursor row has no ends",
			bounds{},
			both,
			omitted{cursorEnds: true},
			237_247, "D2: a1#1 is never applied",
		},
		{
			"mut-two-tx", "the heal of the database has a transaction of its own",
			two, crash,
			omitted{oneTransaction: true},
			167_417, "D2: a2#2 is parked for ever",
		},
		{
			"mut-no-lost", "a look does not know the events of outbox_lost",
			two, crash,
			omitted{outboxLost: true},
			289_300, "D2: a3#2 is parked for ever",
		},
		{
			"mut-no-again", "lost events are not published again",
			bounds{},
			both,
			omitted{republishLost: true},
			143_286, "D2: #3 is parked for ever",
		},
		{
			"mut-no-rows-before", "a pass sends a lost event, and not the rows before it",
			two, both,
			omitted{rowsBeforeLost: true},
			8_841, "S4: a2#2 comes before the version below it",
		},
		{
			"mut-no-row", "a pass without rows does not wait for a page",
			two, both,
			omitted{pageFirst: true},
			40_458, "S3: the relay repeats the same steps for ever",
		},
		{
			"mut-no-point", "a pass does not ask whether a point is still valid",
			bounds{keys: 1, drop: 1},
			faults{losses: 1, crashes: 1},
			omitted{pointAfterPass: true},
			89_838, "D2: a1#1 is never applied",
		},
		{
			"mut-no-time", "the consumer's point has no time, and it is down while the log is written again",
			bounds{events: 2, away: true},
			both,
			omitted{consumerTime: true},
			36_978, "D2: a1#1 is never applied",
		},
		{
			"mut-asleep", "a running consumer overlooks that it is beyond the end",
			bounds{asleep: true},
			both,
			omitted{},
			145_103, "D2: a1#1 is never applied",
		},
		{
			"mut-no-wait", "a leader does not wait after a restore",
			bounds{late: true},
			restore,
			omitted{wait: true},
			5_638, "D1: a1#2 and a1#1 are both visible",
		},
		{
			"mut-no-look", "records are not looked up",
			bounds{},
			restore,
			omitted{lookUp: true},
			3_524, "D4: #1 was published, is lost, and no look reports it",
		},
		{
			"mut-no-shift", "the heal only raises outbox_key",
			bounds{},
			restore,
			omitted{renumber: true},
			4_569, "D1: a1#1 and a1#3 are both visible",
		},
		{
			"mut-no-acks", "acknowledged offsets are not compared with the known end",
			bounds{},
			loss,
			omitted{offsets: true, gaps: true},
			2_760, "D2: a2#2 is never applied",
		},
		{
			"mut-no-gap", "gaps between offsets are not looked up, and a record is written after the wait",
			bounds{late: true, onlyReports: true},
			restore,
			omitted{wait: true, gaps: true},
			13_022, "D4: #2 was published, is lost, and no look reports it",
		},
		{
			"mut-one-pass", "one pass is enough",
			bounds{},
			loss,
			omitted{morePasses: true},
			6_099, "D2: b1#2 is never applied",
		},
		{
			"mut-no-expect", "only acknowledged records are expected",
			bounds{},
			faults{losses: 1, crashes: 1},
			omitted{expect: true},
			53_538, "D2: b1#3 is never applied",
		},
		{
			"mut-no-idle", "an idle relay does not ask for the ends",
			bounds{},
			loss,
			omitted{idleEnds: true},
			2_181, "D2: a1#1 is never applied",
		},
		{
			"mut-send-behind-held", "a pass sends the rows behind a held one",
			bounds{keys: 1},
			faults{losses: 1, crashes: 1, refusals: 1},
			omitted{skipLater: true},
			53_480, "S4: a3#3 comes before the version below it",
		},
		{
			"mut-no-acknowledged", "an acknowledged offset behind the expected end is not expected",
			bounds{events: 2, late: true},
			faults{losses: 1, crashes: 1, blinds: 1},
			omitted{acknowledged: true},
			340_415, "D2: b1#2 is never applied",
		},
		{
			"mut-no-hold-later", "a pass parks a key, and does not hold its later rows",
			bounds{keys: 1},
			faults{losses: 1, refusals: 1},
			omitted{holdLater: true},
			16_811, "D2: a3#3 is never applied",
		},
		{
			"mut-no-shift-held", "the heal does not renumber held rows",
			twoOfOneKey,
			faults{restores: 1, blinds: 1},
			omitted{renumberHeld: true},
			758, "D1: a1#1 and a1#2 are both visible",
		},
		{
			"mut-old-points", "the release of a held row leaves the points above it",
			twoOfOneKey,
			faults{losses: 1, refusals: 1},
			omitted{forgetPoints: true},
			2_173, "D2: a1#1 is never applied",
		},
		{
			"mut-released-once", "rows released in an ill partition are not sent again",
			twoOfOneKey,
			faults{losses: 1, crashes: 1, blinds: 1},
			omitted{releasedAgain: true},
			5_065, "D2: a1#1 is never applied",
		},
		{
			"mut-released-last", "no pass sends the lost events behind a released row",
			twoOfOneKey,
			faults{losses: 1, restores: 1, blinds: 1},
			omitted{releasedLost: true},
			21_294, "S5: version 2 of key a comes before the one below it",
		},
	}
}

func protocol() []run { //nolint:funlen // a table
	return []run{
		{"final", "a loss, a restore", bounds{}, both, omitted{}, 901_035, ""},
		{
			"final-full", "two events, each read a step, no states made equal",
			bounds{events: 2, everyRead: true},
			both,
			omitted{},
			883_314, "",
		},
		{"final-one-key", "three events of one key", bounds{keys: 1}, both, omitted{}, 135_192, ""},
		{"final-four-key", "four events of one key", bounds{events: 4, keys: 1}, both, omitted{}, 775_216, ""},
		{
			"final-page3", "pages of three, one point more than the first",
			bounds{page: 3, points: 2},
			both,
			omitted{},
			1_263_965, "",
		},
		{"final-parts", "two partitions", bounds{parts: 2}, both, omitted{}, 842_630, ""},
		{"final-late", "late records", bounds{late: true}, both, omitted{}, 938_197, ""},
		{
			"final-lands-late", "a record is written after the wait: it is reported, not healed",
			bounds{late: true, onlyReports: true},
			restore,
			omitted{wait: true},
			32_778, "",
		},
		{"final-drop", "retention", bounds{drop: 1}, both, omitted{}, 1_472_416, ""},
		{
			"final-drop-restore", "retention: never refused",
			bounds{drop: 1},
			faults{restores: 1, crashes: 1},
			omitted{},
			331_633, "",
		},
		{
			"final-drop-loss", "retention: a loss, a crash",
			bounds{drop: 1},
			faults{losses: 1, crashes: 1},
			omitted{},
			438_316, "",
		},
		{
			"final-drop-crash", "retention, late records, three crashes: never refused",
			bounds{drop: 1, late: true},
			faults{crashes: 3},
			omitted{},
			884_056, "",
		},
		{
			"final-restore", "a restore, a crash, late records",
			bounds{late: true},
			faults{restores: 1, crashes: 1},
			omitted{},
			786_609, "",
		},
		{"final-loss", "a loss, a crash", bounds{}, faults{losses: 1, crashes: 1}, omitted{}, 209_667, ""},
		{
			"final-loss-crashes", "a loss, two crashes",
			bounds{},
			faults{losses: 1, crashes: 2},
			omitted{},
			2_227_935, "",
		},
		{
			"final-losses-crash", "two losses, a crash",
			bounds{},
			faults{losses: 2, crashes: 1},
			omitted{},
			7_363_359, "",
		},
		{"final-crash", "two events: a loss, a restore, a crash", two, crash, omitted{}, 807_597, ""},
		{
			"final-crash-late", "the same with late records",
			bounds{events: 2, late: true},
			crash,
			omitted{},
			3_273_636, "",
		},
		{
			"final-crash-parts", "the same with two partitions",
			bounds{events: 2, parts: 2},
			crash,
			omitted{},
			966_275, "",
		},
		{
			"final-crash-key", "the same with three events of one key",
			bounds{keys: 1},
			crash,
			omitted{},
			2_958_247, "",
		},
		{
			"final-two-crashes", "two events, two crashes",
			two,
			faults{losses: 1, restores: 1, crashes: 2},
			omitted{},
			10_444_401, "",
		},
		{
			"final-two-losses", "two events, two losses",
			two,
			faults{losses: 2, restores: 1},
			omitted{},
			1_127_374, "",
		},
		{
			"final-two-restores", "two events, two restores",
			two,
			faults{losses: 1, restores: 2},
			omitted{},
			642_525, "",
		},
		{"final-restart", "the consumer restarts", bounds{}, restart, omitted{}, 4_768_492, ""},
		{
			"final-away", "two events: the consumer is down after a loss",
			bounds{events: 2, away: true},
			both,
			omitted{},
			598_903, "",
		},
		{
			"final-groups", "two events; a group's committed offsets instead of the consumer's time",
			bounds{events: 2, groups: true},
			restart,
			omitted{consumerTime: true},
			184_424, "",
		},
		{"final-con", "the consumer's database goes back, a loss", bounds{}, inboxRestore, omitted{}, 190_830, ""},
		{
			"final-con-plain", "the same without the consumer's time",
			bounds{},
			inboxRestore,
			omitted{consumerTime: true},
			193_544, "",
		},
		{
			"final-con-crash", "two events: the consumer's database goes back, a loss, a crash",
			two,
			faults{losses: 1, crashes: 1, inboxRestores: 1},
			omitted{},
			1_987_832, "",
		},
		{
			"final-con-both", "two events: both databases go back, a loss",
			two,
			faults{losses: 1, restores: 1, inboxRestores: 1},
			omitted{},
			2_527_405, "",
		},
		{"final-parked-loss", "a refusal, a loss", bounds{}, faults{losses: 1, refusals: 1}, omitted{}, 167_697, ""},
		{"final-parked-restore", "a refusal, a restore", bounds{}, faults{restores: 1, refusals: 1}, omitted{}, 178_591, ""},
		{"final-parked-both", "two events: a refusal and both", two, refusal, omitted{}, 705_593, ""},
		{"final-parked-one-key", "three events of one key", bounds{keys: 1}, refusal, omitted{}, 3_199_371, ""},
		{"final-parked-parts", "two events, two partitions", bounds{events: 2, parts: 2}, refusal, omitted{}, 565_538, ""},
		{
			"final-parked-crash", "two events: a refusal, a restore, a crash, late records",
			bounds{events: 2, late: true},
			faults{restores: 1, crashes: 1, refusals: 1},
			omitted{},
			1_351_735, "",
		},
		{
			"final-parked-restart", "two events: the consumer restarts",
			two,
			faults{losses: 1, restores: 1, restarts: 1, refusals: 1},
			omitted{},
			4_053_074, "",
		},
		{
			"final-parked-blind", "three events of one key; a partition does not answer",
			bounds{keys: 1},
			faults{losses: 1, restores: 1, blinds: 1},
			omitted{},
			344_417, "",
		},
		{
			"final-parked-blind-late", "two events: a loss, a crash, late records",
			bounds{events: 2, late: true},
			faults{losses: 1, crashes: 1, blinds: 1},
			omitted{},
			553_403, "",
		},
		{
			"final-parked-blind-refusal", "two events: the same with a refusal",
			two,
			faults{losses: 1, restores: 1, refusals: 1, blinds: 1},
			omitted{},
			1_083_940, "",
		},
	}
}

// A mutant that breaks no property is a finding.
func windowRuns() []windowRun {
	return []windowRun{
		{"window-final", "two transactions, three rows", 2, 3, 1, 1, false, false, windowOmitted{}, 124_216, ""},
		{"window-final-tx", "three transactions, two rows", 3, 2, 1, 1, false, false, windowOmitted{}, 704_068, ""},
		{"window-final-page", "pages of two rows, two crashes", 2, 3, 2, 2, false, false, windowOmitted{}, 162_886, ""},
		{"window-final-3", "three transactions, three rows", 3, 3, 1, 1, false, false, windowOmitted{}, 3_723_344, ""},
		{
			"window-final-3-page", "the same, pages of two, two crashes",
			3, 3, 2, 2, false, false,
			windowOmitted{},
			4_982_342, "",
		},
		{
			"window-last", "position > last, without a window",
			2, 2, 1, 0, false, false,
			windowOmitted{window: true},
			8_308, "W1: a committed row is never sent",
		},
		{
			"window-lost", "the row has the end of a page before it is sent",
			1, 1, 1, 1, false, false,
			windowOmitted{pageStart: true},
			255, "W1: a committed row is never sent",
		},
		{
			"window-xmin", "only ids below xmin",
			2, 2, 1, 0, false, false,
			windowOmitted{running: true},
			95, "W4: a committed row waits for an open transaction",
		},
		{
			"window-jump", "only ids below xmin, and the next window begins at xmax",
			2, 2, 1, 0, true, false,
			windowOmitted{running: true, xminDone: true},
			4_264, "W1: a committed row is never sent",
		},
		{
			"window-cut", "the next page of a window has a new snapshot",
			2, 2, 1, 0, false, false,
			windowOmitted{remember: true},
			7_676, "W1: a committed row is never sent",
		},
		{
			"window-open", "a page has no upper snapshot",
			2, 2, 1, 0, false, false,
			windowOmitted{upper: true},
			8_944, "W3: a row is sent again, and no crash explains it",
		},
		{
			"window-xid", "a page is ordered by id",
			2, 2, 1, 0, false, false,
			windowOmitted{byPosition: true},
			2_144, "W2: a row is sent before an earlier one of its key",
		},
		{
			"window-final-server", "the server crashes, and writers do not wait for the disk",
			2, 2, 1, 1, false, true,
			windowOmitted{},
			33_567, "",
		},
		{
			"window-server", "the same, and a page is stored behind its send",
			2, 2, 1, 1, false, true,
			windowOmitted{storeFirst: true},
			1_032, "W5: a row that was sent is taken back",
		},
		{
			"window-late", "not refuted: a page is stored behind its send",
			2, 3, 1, 1, false, false,
			windowOmitted{storeFirst: true},
			143_287, "",
		},
	}
}

func leaderRuns() []leaderRun {
	return []leaderRun{
		{"leader-final", "sessions end, a relay dies", 2, 1, false, leaderOmitted{}, 13_472, ""},
		{"leader-final-proxy", "a proxy opens sessions unnoticed", 2, 1, true, leaderOmitted{}, 19_932, ""},
		{
			"leader-no-epoch", "no epoch, behind a proxy",
			1, 0, true,
			leaderOmitted{epoch: true},
			254, "L1: a former leader changes the cursor",
		},
		{
			"leader-check", "the epoch is read before the update, behind a proxy",
			1, 0, true,
			leaderOmitted{inStatement: true},
			556, "L1: a former leader changes the cursor",
		},
		{
			"leader-lock", "a session that ends keeps the lock",
			1, 0, false,
			leaderOmitted{sessionLock: true},
			337, "L4: rows are left, and no relay leads",
		},
		{
			"leader-memory", "a new leader starts from its memory",
			2, 0, false,
			leaderOmitted{load: true},
			2_151, "L2: the cursor goes back",
		},
		{
			"leader-skip", "the row has the end of a page before it is sent",
			1, 0, false,
			leaderOmitted{pageStart: true},
			101, "L2: the cursor passes a row that is not sent",
		},
		{
			"leader-acks", "a record does not wait for the one before",
			0, 0, false,
			leaderOmitted{acks: true},
			79, "L3: a row is on the log before the one before it",
		},
		{"leader-session", "not refuted: no epoch, no proxy", 2, 1, false, leaderOmitted{epoch: true}, 13_472, ""},
		{
			"leader-late", "not refuted: a page is stored behind its send",
			2, 1, false,
			leaderOmitted{storeFirst: true},
			9_232, "",
		},
	}
}
