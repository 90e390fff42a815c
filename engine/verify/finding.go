package verify

// finding puts a suspect into words.
func (s suspect) finding(labels map[uint64]string, found map[suspect]Finding) Finding {
	if f, registered := found[s]; registered {
		return f
	}
	return Finding{
		Kind: s.Kind, Rule: s.Rule, Subject: s.Subject, EventID: labels[s.ID], Key: labels[s.Key], Version: s.Version,
		Detail: details[s.Rule][s.Kind],
	}
}

var details = map[Rule]map[Kind]string{
	"V1": {
		Lost:    "the outbox has it as published, and the topic does not hold it",
		Altered: "a record of it is not what the outbox has",
	},
	"V2": {Ghost: "the topic holds it as this service's, and the outbox does not know it"},
	"V3": {
		Gap:       "the outbox has the versions around it, and not this one",
		Reordered: "it lies behind a later version of its key",
		Misplaced: "a record of it lies in another partition than its key belongs to",
	},
	"V4": {
		Lost:    "the group has committed its offset, and neither inbox nor dead letters have it",
		Altered: "the inbox has it with another payload, and no dead letter has this one",
	},
	"V5": {
		Twice: "it has two rows",
		Ghost: "the inbox says where its record lies, and there is none",
	},
	"V6": {Reordered: "the key's watermark and the versions on the topic contradict each other"},
	"V7": {Lost: "the inbox says that it was set aside, and no dead letter has it"},
}
